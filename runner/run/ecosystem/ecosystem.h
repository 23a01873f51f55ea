// SPDX-License-Identifier: Apache-2.0
// `ecosystems: [python, node, ...]`: package registries that are opened for reading. Tools and lock
// files name them, as described in policies/ecosystems.yml.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "policy/model/policy.h"

namespace run {

struct Ecosystem {
  struct Ask {
    std::string program;
    std::vector<std::string> arguments;
    std::vector<std::string> files;  // Its settings: "~/" is the home directory, "%/" its prefix.
    bool bare = false;
    std::string then_path;  // Empty if nothing more is asked.
    std::string then_member;
  };
  struct Lock {
    std::string file;
    std::vector<std::string> behind;
  };
  std::string name;
  std::vector<Ask> asks;
  std::vector<Lock> locks;
  bool encoded_slash = false;  // Names have one: /@scope%2Fname.
  bool plain = false;          // Registries may be contacted over plain HTTP.
  bool system = false;         // Its tools change the system's directories, as root.
};

// Returns the ecosystems this program knows, in the file's order.
std::vector<Ecosystem> KnownEcosystems();

// Returns the named ones. Fails with kInvalid and the list for a name that is not known.
Result<std::vector<Ecosystem>> FindEcosystems(const std::vector<std::string>& names);

// Returns whether one of the named ecosystems installs into the system. Fails as FindEcosystems().
Result<bool> ChangesSystem(const std::vector<std::string>& names);

struct Registry {
  std::string host;  // Lower case.
  uint16_t port = 443;
  friend bool operator==(const Registry&, const Registry&) = default;
};

// The ways to ask programs, the repository and registries; a test has its own.
struct RegistrySources {
  // Returns what the program prints; empty if it is not installed.
  std::function<std::string(const Ecosystem::Ask& ask)> ask;
  // A file of the repository at the trusted commit.
  std::function<std::optional<std::string>(const std::string& path)> read;
  // A document of a registry, by its URL.
  std::function<std::optional<std::string>(const std::string& url)> fetch;
};

// A tool or lock file that names more of one ecosystem is not taken seriously.
inline constexpr size_t kRegistriesMax = 64;

// Returns the registries in the order found, each once; the search ends behind kRegistriesMax.
// Leaves out loopback and bare addresses.
std::vector<Registry> FindRegistries(const Ecosystem& ecosystem, const RegistrySources& sources);

// Returns a policy "ecosystem_NAME" that lets the agent read from the registries. nullopt without
// registries.
std::optional<policy::NetworkPolicy> EcosystemPolicy(const Ecosystem& ecosystem,
                                                     const std::vector<Registry>& registries);

}  // namespace run
