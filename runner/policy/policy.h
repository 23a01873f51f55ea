// SPDX-License-Identifier: Apache-2.0
// What a run may do: the values every decision is made from. Both forms of
// `.agentic-ci/openshell-policy.yml` become this one `Policy`. Values only; no behaviour.
// The schema is OpenShell's policy YAML; where its code and documents differ, docs/decisions.md
// says which reading is ours.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codec/position.h"

namespace policy {

enum class Protocol { kL4, kTcp, kRest };
enum class TlsMode { kAuto, kSkip };
enum class Enforcement { kEnforce, kAudit };
enum class Access { kNone, kReadOnly, kReadWrite, kFull };

// One query key and the globs of which a value must match one.
struct QueryMatcher {
  std::string key;
  std::vector<std::string> any;
};

// One entry of `rules` (its `allow`) or of `deny_rules`.
struct HttpRule {
  std::string method;  // Upper case; "*" is any.
  std::string path;    // Glob; "**" is everything.
  std::vector<QueryMatcher> query;
  codec::Position at;
};

struct Endpoint {
  std::string
      host;  // Lower case; a pattern iff it contains '*'; empty: any host (allowed_ips decide).
  std::vector<uint16_t> ports;  // At least one.
  std::string path;             // Selector glob; empty is every path.
  Protocol protocol = Protocol::kL4;
  TlsMode tls = TlsMode::kAuto;
  Enforcement enforcement = Enforcement::kEnforce;
  Access access = Access::kNone;
  // Effective rules: an access preset is already expanded into them. Empty with kL4 and no access:
  // no request rule, the connection alone is judged.
  std::vector<HttpRule> rules;
  std::vector<HttpRule> deny_rules;
  std::vector<std::string> allowed_ips;  // CIDR or bare addresses, validated.
  bool allow_encoded_slash = false;
  codec::Position at;
};

// One `network_policies` entry, or the one that an `endpoints:` list becomes.
struct NetworkPolicy {
  std::string key;   // The map key: decides which policy is named when several match.
  std::string name;  // Shown in logs and deny bodies; defaults to the key.
  std::vector<Endpoint> endpoints;
  std::vector<std::string> binaries;  // Paths or globs; empty matches no program at all.
  codec::Position at;
};

struct FilesystemPolicy {
  bool include_workdir = true;
  std::vector<std::string> read_only;
  std::vector<std::string> read_write;
};

enum class LandlockMode { kBestEffort, kHardRequirement };

struct ProcessPolicy {
  std::optional<std::string> run_as_user;
  std::optional<std::string> run_as_group;
};

struct Policy {
  FilesystemPolicy filesystem;
  LandlockMode landlock = LandlockMode::kBestEffort;
  ProcessPolicy process;
  std::vector<NetworkPolicy> network;  // Sorted by key.
};

}  // namespace policy
