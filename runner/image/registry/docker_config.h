// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "image/registry/credential.h"

namespace image {

inline constexpr size_t kDockerConfigBytesMax = 1 << 20;

// The credentials in ~/.docker/config.json and containers' auth.json.
struct DockerConfig {
  struct Entry {
    std::string key;  // The key, as Docker compares them: "ghcr.io", "ghcr.io/acme", "docker.io".
    Credential credential;
  };
  std::vector<Entry> entries;                                // Those that hold a credential.
  std::vector<std::pair<std::string, std::string>> helpers;  // Host and program suffix.
  std::string store;                                         // Program suffix, or "".

  // Returns the most specific entry: the repository, its parents, the host; or nullptr.
  const Credential* Find(const std::string& host, const std::string& repository) const;
  // Returns the helper to ask about `host`: "ecr-login", or "".
  std::string HelperFor(const std::string& host) const;
};

// Parses Docker's configuration, of which only credentials count. Fails with kInvalid if it is not
// JSON, or has an entry that cannot be read; the error has no bytes of it.
Result<DockerConfig> ParseDockerConfig(std::string_view text);

// Parses what `docker-credential-NAME get` prints. Returns nullopt if it says that it has none.
// Fails with kInvalid if it prints something else; the error never holds what that is.
Result<std::optional<Credential>> ParseHelperAnswer(std::string_view text);

}  // namespace image
