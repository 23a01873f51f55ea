// SPDX-License-Identifier: Apache-2.0
#include "image/credential_search.h"

#include <string.h>

namespace image {
namespace {

class Search {
 public:
  Search(const std::string& host, const std::string& repository, const SourceOptions& options)
      : host_(host), repository_(repository), options_(options) {}

  std::string Variable(const std::string& name) const {
    if (!options_.environment) return "";
    return options_.environment(name).value_or("");
  }

  // $`password` as `username`, when `host` is `for_host` to the letter. True when it was there.
  bool TakePair(const std::string& for_host, std::string username, const char* password) {
    if (for_host.empty() || for_host != host_) return false;
    std::string word = Variable(password);
    if (word.empty()) return false;
    found_.credential.username = std::move(username);
    found_.credential.password = Secret(word);
    found_.credential.origin = std::string("$") + password;
    ::explicit_bzero(word.data(), word.size());
    return true;
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
  const std::string& host_;
  [[maybe_unused]] const std::string& repository_;
  const SourceOptions& options_;
  CredentialSearch found_;
};

}  // namespace

CredentialSearch FindCredential(const std::string& host, const std::string& repository, bool own,
                                const SourceOptions& options) {
  if (own && options.password != nullptr && !options.password->empty()) {
    CredentialSearch given;
    given.credential.username = options.username;
    given.credential.password = Secret(options.password->reveal());
    given.credential.origin = "the command line";
    return given;
  }
  Search search(host, repository, options);
  static_cast<void>(search.TakeGitHub() || search.TakeGitLab());
  return search.Take();
}

std::string CredentialHint(const std::string& host) {
  if (host == "ghcr.io") return "permissions: { packages: read }, and GITHUB_TOKEN in env:";
  return "docker login " + host;
}

}  // namespace image
