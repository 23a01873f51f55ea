// SPDX-License-Identifier: Apache-2.0
#include "image/registry/credential_search.h"

#include <string.h>

#include "base/secret.h"
#include "base/sys.h"
#include "image/registry/credential_helper.h"
#include "image/registry/docker_config.h"

namespace image {
namespace {

// GitLab names its dependency proxy "gitlab.com:443", which is gitlab.com.
std::string_view WithoutPort(std::string_view host) {
  if (host.ends_with(":443")) host.remove_suffix(4);
  return host;
}

class Search {
 public:
  Search(const std::string& host, const std::string& repository, const SourceOptions& options)
      : host_(host), repository_(repository), options_(options) {}

  std::string Variable(const std::string& name) const {
    return options_.environment(name).value_or("");
  }

  // $`password` as `username`, when `for_host` is our host, port included. Returns true if it was
  // there.
  bool TakePair(const std::string& for_host, std::string username, const char* password) {
    if (for_host.empty() || WithoutPort(for_host) != WithoutPort(host_)) return false;
    SecretString word = Variable(password);
    if (word.empty()) return false;
    found_.credential.username = std::move(username);
    found_.credential.password = Secret(word);
    found_.credential.origin = std::string("$") + password;
    return true;
  }

  bool TakeFiles() {
    if (TakeText("$DOCKER_AUTH_CONFIG", Variable("DOCKER_AUTH_CONFIG"))) return true;
    const std::string home = Variable("HOME");
    const auto below = [&](const char* variable, const char* otherwise) {
      std::string directory = Variable(variable);
      return directory.empty() && !home.empty() ? home + otherwise : directory;
    };
    const std::string runtime = Variable("XDG_RUNTIME_DIR");
    const std::string config = below("XDG_CONFIG_HOME", "/.config");
    const std::string docker = below("DOCKER_CONFIG", "/.docker");
    return TakeFile(Variable("REGISTRY_AUTH_FILE")) ||
           TakeFile(runtime.empty() ? "" : runtime + "/containers/auth.json") ||
           TakeFile(config.empty() ? "" : config + "/containers/auth.json") ||
           TakeFile(docker.empty() ? "" : docker + "/config.json");
  }

  bool TakeGitHub() {
    std::string actor = Variable("GITHUB_ACTOR");
    return TakePair("ghcr.io", actor.empty() ? "token" : std::move(actor), "GITHUB_TOKEN");
  }

  bool TakeGitLab() {
    const std::string registry = Variable("CI_REGISTRY");
    return TakePair(registry, Variable("CI_REGISTRY_USER"), "CI_REGISTRY_PASSWORD") ||
           TakePair(registry, "gitlab-ci-token", "CI_JOB_TOKEN") ||
           TakePair(registry, Variable("CI_DEPLOY_USER"), "CI_DEPLOY_PASSWORD") ||
           TakePair(Variable("CI_DEPENDENCY_PROXY_SERVER"), Variable("CI_DEPENDENCY_PROXY_USER"),
                    "CI_DEPENDENCY_PROXY_PASSWORD");
  }

  CredentialSearch Take() { return std::move(found_); }

 private:
  bool TakeFile(const std::string& path) {
    if (path.empty()) return false;
    Result<std::string> text = sys::ReadFile(path, kDockerConfigBytesMax);
    if (text.ok()) return TakeText(path, std::move(text).value());
    if (text.error().code != Code::kNotFound) Complain(path, text.error());
    return false;
  }

  // A configuration of Docker's that was found at `where`.
  bool TakeText(const std::string& where, SecretString text) {
    if (text.empty()) return false;
    Result<DockerConfig> config = ParseDockerConfig(text);
    if (!config.ok()) {
      Complain(where, config.error());
      return false;
    }
    if (TakeHelper(where, config.value().HelperFor(host_))) return true;
    if (const Credential* entry = config.value().Find(host_, repository_)) {
      found_.credential.username = entry->username;
      found_.credential.password = Secret(entry->password.reveal());
      found_.credential.identity_token = Secret(entry->identity_token.reveal());
      found_.credential.origin = where;
      return true;
    }
    return TakeHelper(where, config.value().store);
  }

  bool TakeHelper(const std::string& where, const std::string& name) {
    if (name.empty()) return false;
    Result<std::optional<Credential>> answer = AskCredentialHelper(
        name, host_, ProgramPlaces(Variable("PATH"), options_.checkout), options_.environment);
    if (!answer.ok()) Complain(where, answer.error());
    if (!answer.ok() || !answer.value()) return false;
    found_.credential = std::move(*answer.value());
    return true;
  }

  void Complain(const std::string& where, const Error& error) {
    found_.complaints.push_back(where + ": " + error.what);
  }

  const std::string& host_;
  const std::string& repository_;
  const SourceOptions& options_;
  CredentialSearch found_;
};

}  // namespace

CredentialSearch FindCredential(const std::string& host, const std::string& repository,
                                const SourceOptions& options) {
  if (host == options.password_host && options.password != nullptr && !options.password->empty()) {
    CredentialSearch given;
    given.credential.username = options.username;
    given.credential.password = Secret(options.password->reveal());
    given.credential.origin = "the command line";
    return given;
  }
  if (!options.environment) return {};
  Search search(host, repository, options);
  static_cast<void>(search.TakeFiles() || search.TakeGitHub() || search.TakeGitLab());
  return search.Take();
}

std::string CredentialHint(const std::string& host) {
  if (host == "ghcr.io") return "permissions: { packages: read }, and GITHUB_TOKEN in env:";
  return "docker login " + host;
}

}  // namespace image
