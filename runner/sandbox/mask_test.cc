// SPDX-License-Identifier: Apache-2.0
#include "sandbox/mask.h"

#include <catch2/catch.hpp>
#include <set>

#include "policy/model/credential_places.h"

namespace sandbox {
namespace {

using Paths = std::vector<std::string>;

// A host with two homes in which the given paths exist.
HostView Host(const std::set<std::string>& existing) {
  HostView host;
  host.kind = [existing](const std::string& path) {
    return existing.contains(path) ? PathKind::kFile : PathKind::kMissing;
  };
  host.link = [](const std::string&) { return std::string(); };
  host.real = [](const std::string& path) { return path; };
  host.list = [](const std::string& path) {
    return path == "/home" ? Paths{"alice", "runner"} : Paths{};
  };
  return host;
}

TEST_CASE("SecretPaths names what exists beneath what is shown") {
  HostView host = Host({"/etc/shadow", "/etc/ssl/private"});
  CHECK(SecretPaths({"/etc"}, host, {}) == Paths{"/etc/shadow", "/etc/ssl/private"});
  CHECK(SecretPaths({"/usr"}, host, {}).empty());
}

TEST_CASE("SecretPaths is not deceived by a name that only begins alike") {
  HostView host = Host({"/etc/shadow"});
  CHECK(SecretPaths({"/etc/shad"}, host, {}).empty());
  CHECK(SecretPaths({"/etc/shadow"}, host, {}) == Paths{"/etc/shadow"});
}

TEST_CASE("SecretPaths looks into every home that is shown") {
  HostView host = Host({"/home/alice/.ssh", "/home/runner/.aws", "/root/.netrc"});
  CHECK(SecretPaths({"/home"}, host, {}) == Paths{"/home/alice/.ssh", "/home/runner/.aws"});
  CHECK(SecretPaths({"/home/alice"}, host, {}) == Paths{"/home/alice/.ssh"});
  CHECK(SecretPaths({"/root", "/home"}, host, {}).size() == 3);
  CHECK(SecretPaths({"/"}, host, {}).size() == 3);
}

TEST_CASE("SecretPaths knows the credentials that attacks look for") {
  for (const char* name : {".ssh",
                           ".gnupg",
                           ".aws",
                           ".azure",
                           ".config/gcloud",
                           ".config/gh",
                           ".docker",
                           ".kube",
                           ".netrc",
                           ".git-credentials",
                           ".npmrc",
                           ".pypirc",
                           ".cargo/credentials.toml",
                           ".composer/auth.json",
                           ".config/rclone",
                           ".pulumi",
                           ".config/helm",
                           ".claude",
                           ".codex",
                           ".m2/settings.xml",
                           "actions-runner/.credentials",
                           ".bash_history"}) {
    std::string path = std::string("/home/alice/") + name;
    INFO(path);
    CHECK(SecretPaths({"/home"}, Host({path}), {}) == Paths{path});
  }
}

TEST_CASE("Every place of credentials is hidden, or lies in one that is") {
  for (const policy::CredentialPlace& place : policy::kCredentialPlaces) {
    const std::string name(place.path);
    const std::string path = name.starts_with('/') ? name : "/home/alice/" + name;
    INFO(path);
    CHECK((IsSecret(path, Host({}), {}) || IsPrivate(path)));
    const bool hidden = (place.uses & policy::kHide) != 0;
    CHECK(SecretPaths({"/"}, Host({path}), {}) == (hidden ? Paths{path} : Paths{}));
  }
}

TEST_CASE("SecretPaths adds the CI's own files where they would be seen") {
  HostView host = Host({"/opt/ci/token", "/var/ci/token"});
  CHECK(SecretPaths({"/opt"}, host, {"/opt/ci/token", "/var/ci/token", "/opt/ci/none"}) ==
        Paths{"/opt/ci/token"});
}

TEST_CASE("SecretPaths names a secret that is a link by where it is") {
  HostView host = Host({"/var/spool/mail"});
  host.real = [](const std::string& path) {
    return path == "/var/spool/mail" ? std::string("/var/mail") : path;
  };
  CHECK(SecretPaths({"/var"}, host, {}) == Paths{"/var/mail"});
  CHECK(SecretPaths({"/var/spool"}, host, {}).empty());
}

TEST_CASE("SecretPaths knows the runner's own home wherever that is") {
  HostView host = Host({"/data/ci/.netrc"});
  CHECK(SecretPaths({"/data"}, host, {}).empty());
  host.home = "/data/ci";
  CHECK(SecretPaths({"/data"}, host, {}) == Paths{"/data/ci/.netrc"});
}

TEST_CASE("SecretPaths leaves out what lies beneath a hidden directory") {
  HostView near = Host({"/o/a", "/o/a-b", "/o/a/c"});
  CHECK(SecretPaths({"/o"}, near, {"/o/a", "/o/a-b", "/o/a/c"}) == Paths{"/o/a", "/o/a-b"});
  HostView host = Host({"/home/alice/.ssh", "/home/alice/.ssh/agent"});
  CHECK(SecretPaths({"/home"}, host, {"/home/alice/.ssh/agent"}) == Paths{"/home/alice/.ssh"});
}

TEST_CASE("IsSecret knows places of credentials by their names, in every home") {
  HostView host = Host({});
  host.home = "/data/me";
  for (const char* secret : {"/home/alice/.ssh", "/home/alice/.docker/bin", "/root/.aws/x",
                             "/data/me/.codex", "/var/lib/docker/x", "/ci/token/x"}) {
    INFO(secret);
    CHECK(IsSecret(secret, host, {"/ci/token"}));
  }
  for (const char* other : {"/home/alice/.local/bin", "/home/alice/.sshx", "/home", "/data/me",
                            "/home/alice/x/.ssh", "/ci"}) {
    INFO(other);
    CHECK_FALSE(IsSecret(other, host, {"/ci/token"}));
  }
}

TEST_CASE("IsPrivate knows the sandbox's own places") {
  for (const char* own : {"/tmp", "/tmp/x", "/run/docker.sock", "/var/run/x"}) {
    CHECK(IsPrivate(own));
  }
  for (const char* other : {"/", "/var", "/tmpx", "/usr"}) CHECK_FALSE(IsPrivate(other));
}

TEST_CASE("IsHome knows where people's files are") {
  for (const char* home : {"/root", "/home", "/mnt", "/media", "/srv"}) CHECK(IsHome(home));
  for (const char* other : {"/usr", "/opt", "/homes", "/"}) CHECK_FALSE(IsHome(other));
}

}  // namespace
}  // namespace sandbox
