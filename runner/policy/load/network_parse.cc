// SPDX-License-Identifier: Apache-2.0
#include "policy/load/network_parse.h"

#include <algorithm>

#include "policy/load/endpoint_parse.h"
#include "policy/load/rule_parse.h"

namespace policy {
namespace {

using codec::YamlEntry;
using codec::YamlKind;
using codec::YamlNode;

constexpr std::string_view kReservedPrefix = "_provider_";  // OpenShell's own composition.

Result<std::string> ParseBinary(Reader* reader, const YamlNode& item) {
  if (item.kind == YamlKind::kScalar) {
    return reader->Invalid(item.at, "a binary must be a mapping",
                           "write '- path: " + item.text + "'");
  }
  Fields fields = TRY(Fields::Open(reader, item, Section::kBinary));
  std::string path = TRY(fields.Text("path"));
  if (path.empty()) {
    return reader->Invalid(item.at, "a binary needs a 'path'", "write '- path: /usr/bin/git'");
  }
  if (path == kAgentPrograms) {
    return reader->Invalid(fields.At("path"), "'" + path + "' is not a path",
                           "write '- path: /**' for any program");
  }
  if (path.find('*') != std::string::npos) {
    TRY(CheckGlob(*reader, fields.At("path"), "path", path, '/'));
  }
  if (!path.starts_with('/') && !path.starts_with("**")) {
    reader->Warn(fields.At("path"), "path '" + path +
                                        "' matches no program: every path starts with '/'; "
                                        "write '/**' for any program");
  }
  return path;
}

Result<std::vector<std::string>> ParseBinaries(Reader* reader, const Fields& policy) {
  std::vector<std::string> binaries;
  const YamlNode* list = TRY(policy.List("binaries"));
  if (list == nullptr || list->items.empty()) {
    reader->Warn(policy.At("binaries"),
                 "no 'binaries': no program may use this policy; write '- path: /**' for any");
    return binaries;
  }
  for (const YamlNode& item : list->items) {
    if (auto path = reader->Keep(ParseBinary(reader, item))) binaries.push_back(*std::move(path));
  }
  return binaries;
}

Result<NetworkPolicy> ParseNetworkPolicy(Reader* reader, const YamlEntry& entry) {
  if (entry.key.empty()) return reader->Invalid(entry.at, "a network policy needs a key");
  if (entry.key.starts_with(kReservedPrefix)) {
    return reader->Invalid(entry.at, "keys that start with '_provider_' are reserved",
                           "write '" + entry.key.substr(kReservedPrefix.size()) + ":'");
  }
  NetworkPolicy policy;
  policy.key = entry.key;
  policy.at = entry.at;
  Fields fields = TRY(Fields::Open(reader, entry.value, Section::kNetworkPolicy));
  policy.name = TRY(fields.Text("name"));
  if (policy.name.empty()) policy.name = policy.key;
  if (auto binaries = reader->Keep(ParseBinaries(reader, fields))) policy.binaries = *binaries;
  const YamlNode* endpoints = TRY(fields.List("endpoints"));
  if (endpoints == nullptr || endpoints->items.empty()) {
    reader->Warn(fields.At("endpoints"), "no 'endpoints': this policy opens nothing");
    return policy;
  }
  for (const YamlNode& item : endpoints->items) {
    if (auto endpoint = reader->Keep(ParseEndpoint(reader, item))) {
      policy.endpoints.push_back(*std::move(endpoint));
    }
  }
  return policy;
}

}  // namespace

Result<std::vector<NetworkPolicy>> ParseNetworkPolicies(Reader* reader, const YamlNode& node) {
  std::vector<NetworkPolicy> policies;
  if (node.kind == YamlKind::kNull) return policies;
  if (node.kind != YamlKind::kMapping) {
    return reader->Invalid(node.at, "'network_policies' must be a mapping, not " +
                                        std::string(codec::DescribeKind(node)));
  }
  for (const YamlEntry& entry : node.entries) {
    if (auto policy = reader->Keep(ParseNetworkPolicy(reader, entry))) {
      policies.push_back(*std::move(policy));
    }
  }
  std::sort(policies.begin(), policies.end(),
            [](const NetworkPolicy& a, const NetworkPolicy& b) { return a.key < b.key; });
  return policies;
}

}  // namespace policy
