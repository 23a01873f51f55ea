// SPDX-License-Identifier: Apache-2.0
#include "forge/gitlab/job_token.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>

#include "base/openssl_owner.h"
#include "codec/text/base64.h"
#include "forge/event_fields.h"
#include "forge/gitlab/event.h"

namespace forge {
namespace {

constexpr int64_t kNow = 1'790'000'000;
constexpr char kIssuer[] = "https://gitlab.example.com";

class Signer {
 public:
  explicit Signer(unsigned bits = 2048) : key_(::EVP_RSA_gen(bits)) {}

  std::string Number(const char* name) const {
    BIGNUM* number = nullptr;
    REQUIRE(::EVP_PKEY_get_bn_param(key_.get(), name, &number) == 1);
    std::string bytes(static_cast<size_t>(BN_num_bytes(number)), '\0');
    ::BN_bn2bin(number, reinterpret_cast<unsigned char*>(bytes.data()));
    ::BN_free(number);
    return codec::EncodeBase64Url(bytes);
  }

  std::string Jwk(const std::string& id = "one", const std::string& use = "sig") const {
    return R"({"kty":"RSA","alg":"RS256","kid":")" + id + R"(","use":")" + use + R"(","n":")" +
           Number(OSSL_PKEY_PARAM_RSA_N) + R"(","e":")" + Number(OSSL_PKEY_PARAM_RSA_E) + R"("})";
  }

  std::string Sign(const std::string& header, const std::string& claims,
                   const EVP_MD* digest = ::EVP_sha256()) const {
    std::string text = codec::EncodeBase64Url(header) + "." + codec::EncodeBase64Url(claims);
    DigestContextOwner context(::EVP_MD_CTX_new());
    std::string signature(512, '\0');
    size_t size = signature.size();
    REQUIRE(::EVP_DigestSignInit(context.get(), nullptr, digest, nullptr, key_.get()) == 1);
    REQUIRE(::EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()),
                             &size, reinterpret_cast<const unsigned char*>(text.data()),
                             text.size()) == 1);
    return text + "." + codec::EncodeBase64Url(signature.substr(0, size));
  }

 private:
  KeyOwner key_;
};

const Signer& Instance() {
  static const Signer signer;
  return signer;
}

constexpr char kHeader[] = R"({"alg":"RS256","typ":"JWT","kid":"one"})";

std::string Claims(const std::string& more = "", const std::string& audience = R"("agentic-ci")",
                   int64_t expires = kNow + 600, const std::string& issuer = kIssuer) {
  return R"({"iss":")" + issuer + R"(","aud":)" + audience + R"(,"exp":)" +
         std::to_string(expires) + R"(,"nbf":)" + std::to_string(kNow - 5) +
         R"(,"project_id":"21","job_project_id":"21","pipeline_source":"push","pipeline_id":"574",)"
         R"("job_id":"302","ref":"main","sha":")" +
         std::string(40, 'a') + R"(","ref_protected":"true")" + more + "}";
}

GitLabTokenTerms Terms(const std::string& keys = Instance().Jwk()) {
  return {kIssuer, R"({"keys":[)" + keys + "]}", kNow};
}

// The error of verifying the token; empty if it is valid.
std::string Problem(const std::string& token, const GitLabTokenTerms& terms = Terms()) {
  Result<GitLabJob> job = VerifyGitLabToken(token, terms);
  return job.ok() ? "" : job.error().what;
}

std::string Signed(const std::string& claims) { return Instance().Sign(kHeader, claims); }

bool Says(const std::string& problem, const std::string& what) {
  if (problem.find(what) != std::string::npos) return true;
  WARN("it says: " << problem);
  return false;
}

}  // namespace

TEST_CASE("A token that the instance signed says what the job is") {
  Result<GitLabJob> job = VerifyGitLabToken(Signed(Claims()), Terms());
  REQUIRE(job.ok());
  CHECK(job.value().source_project == 21);
  CHECK(job.value().project == 21);
  CHECK(job.value().pipeline_source == "push");
  CHECK(job.value().pipeline_id == "574");
  CHECK(job.value().job_id == "302");
  CHECK(job.value().ref == "main");
  CHECK(job.value().sha == std::string(40, 'a'));
  CHECK(job.value().ref_protected);
}

TEST_CASE("A token counts for one audience, one issuer and its time") {
  CHECK(Problem(Signed(Claims("", R"(["vault","agentic-ci"])"))).empty());
  CHECK(Says(Problem(Signed(Claims("", R"("vault")"))), "not for agentic-ci"));
  CHECK(Says(Problem(Signed(Claims("", "[]"))), "not for agentic-ci"));
  CHECK(Says(Problem(Signed(Claims("", "7"))), "not for agentic-ci"));
  CHECK(Problem(Signed(Claims("", R"("agentic-ci")", kNow - 59))).empty());
  CHECK(Says(Problem(Signed(Claims("", R"("agentic-ci")", kNow - 61))), "expired"));
  GitLabTokenTerms early = Terms();
  early.now_s -= 100;
  CHECK(Says(Problem(Signed(Claims()), early), "not valid yet"));
  const std::string other = Claims("", R"("agentic-ci")", kNow + 600, "https://evil.example.com");
  CHECK(Says(Problem(Signed(other)), "issued by"));
  const std::string slash = Claims("", R"("agentic-ci")", kNow + 600, std::string(kIssuer) + "/");
  CHECK(Problem(Signed(slash)).empty());
}

TEST_CASE("Only RS256 by a key of the instance is a signature") {
  const Signer other;
  CHECK(Says(Problem(other.Sign(kHeader, Claims())), "not signed with a key"));
  CHECK(Problem(other.Sign(kHeader, Claims()), Terms(other.Jwk())).empty());
  // The right one of several, and by its name.
  CHECK(Problem(Signed(Claims()), Terms(other.Jwk("two") + "," + Instance().Jwk())).empty());
  CHECK(Says(Problem(Signed(Claims()), Terms(Instance().Jwk("two"))), "not signed with a key"));
  CHECK(Says(Problem(Signed(Claims()), Terms(Instance().Jwk("one", "enc"))),
             "not signed with a key"));
  const std::string nameless = Instance().Sign(R"({"alg":"RS256"})", Claims());
  CHECK(Problem(nameless, Terms(other.Jwk("two") + "," + Instance().Jwk())).empty());
  // A key that is too short, and none at all.
  const Signer weak(1024);
  CHECK(Says(Problem(weak.Sign(kHeader, Claims()), Terms(weak.Jwk())), "not signed with a key"));
  CHECK(Says(Problem(Signed(Claims()), Terms("")), "not signed with a key"));
  CHECK(Says(Problem(Signed(Claims()), Terms(R"({"kty":"RSA","kid":"one"},7)")),
             "not signed with a key"));
}

TEST_CASE("Tokens that name any other algorithm are rejected") {
  for (const char* algorithm : {"none", "HS256", "RS512", "ES256", "PS256", "rs256", ""}) {
    const std::string header = R"({"alg":")" + std::string(algorithm) + R"(","kid":"one"})";
    CHECK(Says(Problem(Instance().Sign(header, Claims())), "not RS256"));
  }
  CHECK(Says(Problem(Instance().Sign(R"({"kid":"one"})", Claims())), "not RS256"));
  CHECK(Says(Problem(Instance().Sign(kHeader, Claims(), ::EVP_sha512())), "not signed with a key"));
  const char* extended = R"({"alg":"RS256","kid":"one","crit":["b64"],"b64":false})";
  CHECK(Says(Problem(Instance().Sign(extended, Claims())), "critical"));
}

TEST_CASE("A changed or truncated token is rejected") {
  const std::string token = Signed(Claims());
  const size_t first = token.find('.');
  const size_t second = token.find('.', first + 1);
  const std::string forged = codec::EncodeBase64Url(Claims(R"(,"more":1)"));
  CHECK(Says(Problem(token.substr(0, first + 1) + forged + token.substr(second)),
             "not signed with a key"));
  CHECK(Says(Problem(token.substr(0, second + 1)), "not signed with a key"));
  for (const std::string& text :
       {std::string("x"), std::string(".."), token.substr(0, second), token + "=", token + ".x",
        "e30.W10." + token.substr(second + 1), std::string(size_t{20} << 10, 'a'), " " + token,
        token.substr(0, first) + "." + token.substr(first)}) {
    CHECK(Says(Problem(text), "not a token"));
  }
  CHECK(Says(Problem(Signed(R"({"iss":")" + std::string(kIssuer) +
                            R"(","aud":"agentic-ci","exp":)" + std::to_string(kNow) + "}")),
             "without project_id"));
  CHECK(Says(Problem(token, {kIssuer, "<html>", kNow}), "not a JSON Web Key Set"));
  CHECK(Says(Problem(token, {kIssuer, R"({"keys":{}})", kNow}), "not a JSON Web Key Set"));
}

namespace {

using Environment = std::map<std::string, std::string>;

Environment Branch() {
  return {{"GITLAB_CI", "true"},
          {"CI_PIPELINE_SOURCE", "push"},
          {"CI_PIPELINE_ID", "574"},
          {"CI_JOB_ID", "302"},
          {"CI_PROJECT_ID", "21"},
          {"CI_PROJECT_PATH", "acme/web"},
          {"CI_SERVER_URL", kIssuer},
          {"CI_API_V4_URL", std::string(kIssuer) + "/api/v4"},
          {"CI_COMMIT_SHA", std::string(40, 'a')},
          {"CI_COMMIT_BRANCH", "main"},
          {"CI_COMMIT_REF_NAME", "main"},
          {"CI_COMMIT_REF_PROTECTED", "true"},
          {"CI_DEFAULT_BRANCH", "main"}};
}

Environment MergeRequest(const std::string& source) {
  Environment all = Branch();
  all["CI_PIPELINE_SOURCE"] = "merge_request_event";
  all["CI_COMMIT_REF_PROTECTED"] = "false";
  all["CI_COMMIT_REF_NAME"] = "fix";
  all["CI_MERGE_REQUEST_IID"] = "7";
  all["CI_MERGE_REQUEST_PROJECT_ID"] = "21";
  all["CI_MERGE_REQUEST_PROJECT_PATH"] = "acme/web";
  all["CI_MERGE_REQUEST_SOURCE_PROJECT_ID"] = source;
  all["CI_MERGE_REQUEST_TARGET_BRANCH_NAME"] = "main";
  return all;
}

GitLabJob JobOf(const Environment& all, int64_t source = 21) {
  GitLabJob job;
  job.source_project = source;
  job.project = 21;
  job.pipeline_source = all.at("CI_PIPELINE_SOURCE");
  job.pipeline_id = "574";
  job.job_id = "302";
  job.ref = all.at("CI_COMMIT_REF_NAME");
  job.sha = std::string(40, 'a');
  job.ref_protected = all.at("CI_COMMIT_REF_PROTECTED") == "true";
  return job;
}

struct Taken {
  std::string problem;
  Event event;
};

Taken Take(const GitLabJob& job, const Environment& all) {
  const EnvironmentReader read = [&](const std::string& name) -> std::optional<std::string> {
    auto found = all.find(name);
    if (found == all.end()) return std::nullopt;
    return found->second;
  };
  const Variables variables(read);
  Result<Event> event = ReadGitLabEvent(variables);
  REQUIRE(event.ok());
  Status taken = TakeGitLabJob(job, read, &event.value());
  return {taken.ok() ? "" : taken.error().what, event.value()};
}

}  // namespace

TEST_CASE("Variables that the token confirms are taken as they are") {
  Taken branch = Take(JobOf(Branch()), Branch());
  CHECK(branch.problem.empty());
  CHECK(branch.event.trusted_sha == std::string(40, 'a'));
  CHECK(Take(JobOf(MergeRequest("21")), MergeRequest("21")).problem.empty());
  // A fork's, in the target project: the token is of the fork, since GitLab 18.2.
  CHECK(Take(JobOf(MergeRequest("99"), 99), MergeRequest("99")).problem.empty());
  CHECK(Take(JobOf(MergeRequest("99"), 21), MergeRequest("99")).problem.empty());
  // An older instance says less.
  GitLabJob old = JobOf(Branch());
  old.project = 0;
  old.sha.clear();
  CHECK(Take(old, Branch()).problem.empty());
}

TEST_CASE("Variables that contradict the token are refused, each by its name") {
  for (const auto& [name, value] : Environment{{"CI_PIPELINE_SOURCE", "web"},
                                               {"CI_PIPELINE_ID", "575"},
                                               {"CI_JOB_ID", ""},
                                               {"CI_COMMIT_SHA", std::string(40, 'b')},
                                               {"CI_COMMIT_REF_NAME", "release"},
                                               {"CI_PROJECT_ID", "22"}}) {
    Environment forged = Branch();
    forged[name] = value;
    CHECK(Says(Take(JobOf(Branch()), forged).problem, name + " is"));
  }
  GitLabJob unprotected = JobOf(Branch());
  unprotected.ref_protected = false;
  CHECK(Says(Take(unprotected, Branch()).problem, "CI_COMMIT_REF_PROTECTED is"));
  // A fork that calls itself the project.
  CHECK(Says(Take(JobOf(MergeRequest("21"), 99), MergeRequest("21")).problem,
             "the source project is '21', and the job's ID token says '99'"));
}

TEST_CASE("A branch is not the default one because a variable says so") {
  Environment all = Branch();
  all["CI_COMMIT_BRANCH"] = all["CI_COMMIT_REF_NAME"] = all["CI_DEFAULT_BRANCH"] = "fix";
  all["CI_COMMIT_REF_PROTECTED"] = "false";
  Taken taken = Take(JobOf(all), all);
  CHECK(taken.problem.empty());
  CHECK(taken.event.trusted_sha.empty());
  CHECK(taken.event.trusted_ref == kBaseRef);
}

TEST_CASE("Keys are not fetched where nothing proves whose they are") {
  Result<std::string> keys =
      FetchGitLabKeys("http://gitlab.example.com", {}, Deadline::After(std::chrono::seconds(1)));
  REQUIRE_FALSE(keys.ok());
  CHECK(keys.error().hint == "--gitlab-keys FILE");
}

}  // namespace forge
