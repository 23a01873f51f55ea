// SPDX-License-Identifier: Apache-2.0
// Tests of registries that need none; the rest is in tests/registry.
#include <catch2/catch.hpp>

#include "base/code_of.h"
#include "codec/text/base64.h"
#include "image/registry/challenge.h"
#include "image/registry/credential_search.h"
#include "image/registry/docker_config.h"
#include "image/registry/registry_address.h"
#include "image/registry/registry_blob.h"
#include "image/registry/registry_source.h"

namespace image {
namespace {

std::string Shown(const std::string& header) {
  std::string text;
  for (const Challenge& challenge : ParseChallenges(header)) {
    text += challenge.scheme + "{";
    for (const auto& [name, value] : challenge.parameters) text += name + "=" + value + ";";
    text += "}";
  }
  return text;
}

TEST_CASE("ParseChallenges reads parameters, quoted or not, with escapes and commas") {
  CHECK(Shown(R"(Bearer realm="https://a/token",service="b",scope="repository:x:pull,push")") ==
        "bearer{realm=https://a/token;service=b;scope=repository:x:pull,push;}");
  CHECK(Shown(R"(BASIC Realm = "a \"b\" \\ c")") == R"(basic{realm=a "b" \ c;})");
  CHECK(Shown("Basic realm=x") == "basic{realm=x;}");
  CHECK(Shown("Basic") == "basic{}");
  CHECK(Shown("") == "");
}

TEST_CASE("ParseChallenges tells several challenges of one header apart") {
  CHECK(Shown(R"(Basic realm="a", Bearer realm="b",service=c, Digest)") ==
        "basic{realm=a;}bearer{realm=b;service=c;}digest{}");
  CHECK(Shown(R"(, ,Negotiate , Basic realm="a" ,)") == "negotiate{}basic{realm=a;}");
}

TEST_CASE("ParseChallenges stops at what is no challenge and keeps what came before") {
  CHECK(Shown(R"(Basic realm="a", Bearer realm="never closed)") == "basic{realm=a;}bearer{}");
  CHECK(Shown(R"(Basic realm="a" ; x)") == "basic{realm=a;}");
  CHECK(Shown("=x") == "");
  CHECK(ParseChallenges("Basic a=" + std::string(100'000, 'x'))[0].parameters[0].second.size() <
        10'000);
  std::string many = "Basic a=b";
  for (int at = 0; at < 1000; ++at) many += ",a=b";
  CHECK(ParseChallenges(many)[0].parameters.size() == 64);
}

net::Url Url(const std::string& text) { return net::ParseUrl(text).value(); }

TEST_CASE("CheckTarget lets a redirect lead to other hosts, never in clear or to this machine") {
  const net::Url origin = Url("https://ghcr.io/");
  for (const char* good : {"https://cdn.example/x", "https://ghcr.io:444/", "https://10.0.0.1/x",
                           "https://1.1.1.1/"}) {
    CAPTURE(good);
    CHECK(CheckTarget(origin, Url(good), TargetKind::kBlob).ok());
  }
  for (const char* bad : {"http://ghcr.io/", "http://cdn.example/x", "https://127.0.0.1/",
                          "https://localhost/", "https://169.254.169.254/", "https://0.0.0.0/",
                          "https://[::1]/", "https://[::ffff:169.254.169.254]/",
                          "https://[fe80::1]/", "https://127.1/", "https://0177.0.0.1/"}) {
    CAPTURE(bad);
    CHECK(CheckTarget(origin, Url(bad), TargetKind::kBlob).error().code == Code::kRefused);
  }
}

TEST_CASE("CheckTarget lets credentials go to no private address but the registry's own") {
  const net::Url origin = Url("https://10.0.0.5:5050/");
  CHECK(CheckTarget(origin, Url("https://10.0.0.5/jwt/auth"), TargetKind::kRealm).ok());
  CHECK(CheckTarget(origin, Url("https://auth.docker.io/token"), TargetKind::kRealm).ok());
  CHECK(CodeOf(CheckTarget(origin, Url("https://10.0.0.6/token"), TargetKind::kRealm)) ==
        Code::kRefused);
  CHECK(CodeOf(CheckTarget(origin, Url("http://10.0.0.5/token"), TargetKind::kRealm)) ==
        Code::kRefused);
  const net::Url insecure = Url("http://10.0.0.5:5050/");
  CHECK(CheckTarget(insecure, Url("http://10.0.0.5/token"), TargetKind::kRealm).ok());
  CHECK(CodeOf(CheckTarget(insecure, Url("http://auth.example/token"), TargetKind::kRealm)) ==
        Code::kRefused);
  CHECK(CheckTarget(insecure, Url("http://10.0.0.6/blob"), TargetKind::kBlob).ok());
}

TEST_CASE("CheckConnected lets no other host's name lead to this machine or its metadata") {
  const net::Url origin = Url("http://reg.example:5000/");
  for (const char* bad : {"127.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "fe80::1"}) {
    CAPTURE(bad);
    CHECK(CheckConnected(origin, Url("http://cdn.example/x"), bad).error().code == Code::kRefused);
    CHECK(CheckConnected(origin, Url("http://reg.example/x"), bad).ok());
  }
  for (const char* good : {"10.0.0.1", "93.184.216.34", "2606:4700::1111"}) {
    CAPTURE(good);
    CHECK(CheckConnected(origin, Url("http://cdn.example/x"), good).ok());
  }
}

TEST_CASE("MakeRegistryAddress knows where Docker's registry is, and what is asked over http") {
  RegistryAddress docker = MakeRegistryAddress("docker.io", "library/debian", {}).value();
  CHECK(docker.ApiUrl("manifests/12") ==
        "https://registry-1.docker.io/v2/library/debian/manifests/12");
  CHECK(docker.Name() == "docker.io/library/debian");
  CHECK(MakeRegistryAddress("[::1]:5", "a", {"[::1]:5"}).value().base.text == "http://[::1]:5/");
  CHECK(MakeRegistryAddress("localhost:5", "a", {"localhost:6"}).value().base.scheme == "https");
  CHECK(MakeRegistryAddress("a.example", "a", {"a.example"}).error().code == Code::kUsage);
  CHECK(MakeRegistryAddress("a.example", "a", {"a.example", "a.example"}).value().base.scheme ==
        "http");
  CHECK_FALSE(MakeRegistryAddress("a.example", "a", {"localhost/x"}).ok());
}

TEST_CASE("MirrorsOf gives the mirrors of that registry alone, in order") {
  const auto mirrors = [](const std::vector<std::string>& list) {
    return MirrorsOf("docker.io", "library/debian", list, {});
  };
  const std::vector<RegistryAddress> found =
      mirrors({"ghcr.io=g.example", "docker.io=a.example:5000", "docker.io=b.example/p/q/"})
          .value();
  REQUIRE(found.size() == 2);
  CHECK(found[0].ApiUrl("") == "https://a.example:5000/v2/library/debian/");
  CHECK(found[1].ApiUrl("") == "https://b.example/v2/p/q/library/debian/");
  for (const char* bad :
       {"", "docker.io", "docker.io=", "=a.example", "docker.io=a", "docker.io=https://a.example",
        "docker.io=oci:a", "docker.io=a.example/X"}) {
    CAPTURE(bad);
    CHECK(mirrors({bad}).error().code == Code::kUsage);
  }
}

TEST_CASE("IsRangeFrom wants exactly what was asked for") {
  CHECK(IsRangeFrom("bytes 5-9/10", 5, 10));
  CHECK(IsRangeFrom("bytes 5-9/*", 5, 10));
  for (const char* bad : {"", "bytes 0-9/10", "bytes 5-8/10", "bytes 5-9/11", "bytes */10",
                          "5-9/10", "bytes 5-9/10 "}) {
    CAPTURE(bad);
    CHECK_FALSE(IsRangeFrom(bad, 5, 10));
  }
}

TEST_CASE("NextPage finds the next page of a Link header") {
  CHECK(NextPage(R"(</v2/x?n=1>; rel="next")") == "/v2/x?n=1");
  CHECK(NextPage("<https://a/b>;rel=next") == "https://a/b");
  CHECK(NextPage(R"(</a>; title="b"; rel="next")") == "/a");
  for (const char* none : {"", "</a>", R"(</a>; rel="prev")", "a; rel=next", "<a", ">a<"}) {
    CAPTURE(none);
    CHECK(NextPage(none).empty());
  }
}

std::string Auth(const std::string& pair) {
  return R"({"auth":")" + codec::EncodeBase64(pair) + "\"}";
}

TEST_CASE("DockerConfig finds the most specific entry, by any of the keys people have") {
  DockerConfig config =
      ParseDockerConfig(R"({"auths":{"https://index.docker.io/v1/":)" + Auth("d:1") +
                        R"(,"ghcr.io":)" + Auth("h:2") + R"(,"ghcr.io/acme":)" + Auth("a:3:4") +
                        R"(,"https://reg.example/v2/":)" + Auth("r:5") +
                        R"(,"empty.example":{}},"HttpHeaders":{}})")
          .value();
  const auto user = [&](const std::string& host, const std::string& repository) {
    const Credential* found = config.Find(host, repository);
    return found == nullptr ? "nobody"
                            : found->username + ":" + std::string(found->password.reveal());
  };
  CHECK(user("docker.io", "library/debian") == "d:1");
  CHECK(user("ghcr.io", "other/x") == "h:2");
  CHECK(user("ghcr.io", "acme/x/y") == "a:3:4");
  CHECK(user("ghcr.io", "acmeother/x") == "h:2");
  CHECK(user("reg.example", "x") == "r:5");
  CHECK(user("empty.example", "x") == "nobody");
  CHECK(user("ghcr.io.evil.example", "x") == "nobody");
  CHECK(user("evil.example", "ghcr.io") == "nobody");
}

TEST_CASE("ParseDockerConfig refuses what it cannot read, without showing it") {
  CHECK(ParseDockerConfig(R"({"credHelpers":{"a.example":"ecr-login"},"credsStore":"pass"})")
            .value()
            .HelperFor("a.example") == "ecr-login");
  for (const std::string& bad : std::initializer_list<std::string>{
           "", "[]", R"({"auths":{"a":7}})", R"({"auths":{"a":{"auth":"hush!"}}})",
           R"({"auths":{"a":)" + Auth("hush") + "}}", R"({"credsStore":"../hush"})",
           R"({"credHelpers":{"a":"hush;x"}})", R"({"credsStore":7})",
           R"({"auths":{},"auths":{}})"}) {
    CAPTURE(bad);
    REQUIRE_FALSE(ParseDockerConfig(bad).ok());
    CHECK(ParseDockerConfig(bad).error().what.find("hush") == std::string::npos);
  }
}

TEST_CASE("ParseHelperAnswer tells a password, an identity token, nothing and nonsense apart") {
  std::optional<Credential> answer =
      ParseHelperAnswer(R"({"ServerURL":"x","Username":"u","Secret":"s"})").value();
  REQUIRE(answer.has_value());
  CHECK(answer->username == "u");
  CHECK(answer->password.reveal() == "s");
  answer = ParseHelperAnswer(R"({"Username":"<token>","Secret":"s"})").value();
  CHECK(answer->identity_token.reveal() == "s");
  CHECK(answer->password.empty());
  CHECK_FALSE(ParseHelperAnswer("credentials not found in native keychain\n").value());
  CHECK_FALSE(ParseHelperAnswer(R"({"Username":"","Secret":""})").value());
  CHECK(CodeOf(ParseHelperAnswer("")) == Code::kInvalid);
  CHECK(CodeOf(ParseHelperAnswer("hush")) == Code::kInvalid);
}

TEST_CASE("FindCredential gives GitHub's token to ghcr.io and to nobody else") {
  SourceOptions options;
  options.environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "GITHUB_TOKEN") return "hush";
    if (name == "GITHUB_ACTOR") return "octocat";
    return std::nullopt;
  };
  CHECK(FindCredential("ghcr.io", "a/b", options).credential.username == "octocat");
  CHECK(FindCredential("ghcr.io", "a/b", options).credential.password.reveal() == "hush");
  for (const char* host : {"docker.io", "xghcr.io", "ghcr.io:444", "ghcr.io.example"}) {
    CAPTURE(host);
    CHECK_FALSE(FindCredential(host, "a/b", options).credential.known());
  }
  Secret password("given");
  options.password_host = "ghcr.io";
  options.username = "me";
  options.password = &password;
  CHECK(FindCredential("ghcr.io", "a/b", options).credential.username == "me");
  CHECK_FALSE(FindCredential("docker.io", "a/b", options).credential.known());
}

TEST_CASE("FindCredential gives GitLab's password to the service it names, port and all") {
  SourceOptions options;
  options.environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "CI_DEPENDENCY_PROXY_SERVER") return "gitlab.example:443";
    if (name == "CI_DEPENDENCY_PROXY_PASSWORD") return "hush";
    return std::nullopt;
  };
  for (const char* host : {"gitlab.example", "gitlab.example:443"}) {
    CAPTURE(host);
    CHECK(FindCredential(host, "a/b", options).credential.known());
  }
  for (const char* host : {"gitlab.example:5050", "x.gitlab.example"}) {
    CAPTURE(host);
    CHECK_FALSE(FindCredential(host, "a/b", options).credential.known());
  }
}

}  // namespace
}  // namespace image
