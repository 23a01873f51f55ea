// SPDX-License-Identifier: Apache-2.0
#include "image/registry/docker_config.h"

#include <string.h>

#include "base/secret.h"
#include "codec/data/json.h"
#include "codec/text/base64.h"

namespace image {
namespace {

using codec::Json;

// Keys have been hosts, addresses and API addresses over the years.
std::string NormalKey(std::string_view key) {
  for (std::string_view scheme : {"https://", "http://"}) {
    if (key.starts_with(scheme)) key.remove_prefix(scheme.size());
  }
  if (key.ends_with('/')) key.remove_suffix(1);
  const std::string_view path = key.substr(std::min(key.find('/'), key.size()));
  if (path == "/v1" || path == "/v2") key.remove_suffix(path.size());
  const std::string_view host = key.substr(0, key.find('/'));
  if (host == "index.docker.io" || host == "registry-1.docker.io") {
    return "docker.io" + std::string(key.substr(host.size()));
  }
  return std::string(key);
}

Result<Credential> ParseEntry(const Json& json) {
  if (json.object() == nullptr) return Error{Code::kInvalid, "an entry is not an object"};
  Credential credential;
  credential.username = json.StringAt("username");
  credential.password = Secret(json.StringAt("password"));
  credential.identity_token = Secret(json.StringAt("identitytoken"));
  const std::string auth = json.StringAt("auth");
  if (auth.empty()) return credential;
  std::optional<std::string> decoded = codec::DecodeBase64(auth);
  if (!decoded) return Error{Code::kInvalid, "an \"auth\" value is not base64"};
  SecretString pair = std::move(*decoded);
  while (pair.ends_with('\0')) pair.pop_back();
  const size_t colon = pair.find(':');
  if (colon == std::string::npos) {
    return Error{Code::kInvalid, "an \"auth\" value has no colon"};
  }
  credential.username = pair.substr(0, colon);
  credential.password = Secret(std::string_view(pair).substr(colon + 1));
  return credential;
}

// A part of a program's name that cannot lead out of a directory.
bool IsHelperName(std::string_view name) {
  return !name.empty() && name.size() <= 64 &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
             std::string::npos &&
         name.front() != '.' && name.front() != '-';
}

Result<std::string> ParseHelperName(const Json& json) {
  if (json.string() == nullptr || (!json.string()->empty() && !IsHelperName(*json.string()))) {
    return Error{Code::kInvalid, "a credential helper with an invalid name"};
  }
  return *json.string();
}

}  // namespace

const Credential* DockerConfig::Find(const std::string& host, const std::string& repository) const {
  std::string wanted = host + "/" + repository;
  while (true) {
    for (const Entry& entry : entries) {
      if (entry.key == wanted) return &entry.credential;
    }
    const size_t slash = wanted.rfind('/');
    if (slash == std::string::npos) return nullptr;
    wanted.resize(slash);
  }
}

std::string DockerConfig::HelperFor(const std::string& host) const {
  for (const auto& [key, name] : helpers) {
    if (key == host) return name;
  }
  return "";
}

Result<DockerConfig> ParseDockerConfig(std::string_view text) {
  DockerConfig config;
  const Json json = TRY(codec::ParseJson(text, {.bytes_max = kDockerConfigBytesMax}));
  if (json.object() == nullptr) return Error{Code::kInvalid, "not an object"};
  const Json* auths = json.Find("auths");
  if (auths != nullptr && auths->object() != nullptr) {
    for (const auto& [key, value] : *auths->object()) {
      Credential credential = TRY(ParseEntry(value));
      // `docker login` leaves an empty entry for what a helper holds.
      if (credential.known()) config.entries.push_back({NormalKey(key), std::move(credential)});
    }
  }
  const Json* helpers = json.Find("credHelpers");
  if (helpers != nullptr && helpers->object() != nullptr) {
    for (const auto& [key, value] : *helpers->object()) {
      config.helpers.emplace_back(NormalKey(key), TRY(ParseHelperName(value)));
    }
  }
  const Json* store = json.Find("credsStore");
  if (store != nullptr) config.store = TRY(ParseHelperName(*store));
  return config;
}

Result<std::optional<Credential>> ParseHelperAnswer(std::string_view text) {
  if (text.find("credentials not found") != std::string_view::npos) {
    return std::optional<Credential>();
  }
  Result<Json> json = codec::ParseJson(text, {.bytes_max = kDockerConfigBytesMax});
  if (!json.ok() || json.value().object() == nullptr) {
    return Error{Code::kInvalid, "it did not print a credential"};
  }
  Credential credential;
  credential.username = json.value().StringAt("Username");
  Secret secret(json.value().StringAt("Secret"));
  if (secret.empty()) return std::optional<Credential>();
  // docker/docker-credential-helpers: an identity token has this in the place of a name.
  if (credential.username == "<token>") {
    credential.username.clear();
    credential.identity_token = std::move(secret);
  } else {
    credential.password = std::move(secret);
  }
  return std::optional<Credential>(std::move(credential));
}

}  // namespace image
