// SPDX-License-Identifier: Apache-2.0
#include "policy/load/parse.h"

#include <algorithm>

#include "base/ascii.h"
#include "codec/data/yaml.h"
#include "policy/load/fields.h"
#include "policy/load/hosted_parse.h"
#include "policy/load/middleware_parse.h"
#include "policy/load/network_parse.h"
#include "policy/load/overlap.h"
#include "policy/load/short_form.h"
#include "policy/load/untrusted_parse.h"
#include "policy/model/own_places.h"

namespace policy {
namespace {

using codec::YamlEntry;
using codec::YamlKind;
using codec::YamlNode;

constexpr size_t kPathsMax = 256;
constexpr size_t kPathBytesMax = 4096;
constexpr uint64_t kIdMax = 4294967294;

// OpenShell's restrictive default: what a policy without `filesystem_policy` may touch.
FilesystemPolicy DefaultFilesystem() {
  FilesystemPolicy filesystem;
  filesystem.include_workdir = true;
  filesystem.read_only = {"/usr", "/lib", "/proc", "/dev/urandom", "/app", "/etc", "/var/log"};
  filesystem.read_write = {"/tmp", "/dev/null"};
  return filesystem;
}

bool HasParentComponent(const std::string& path) {
  size_t start = 0;
  while (start <= path.size()) {
    size_t slash = std::min(path.find('/', start), path.size());
    if (path.compare(start, slash - start, "..") == 0) return true;
    start = slash + 1;
  }
  return false;
}

Status CheckPath(const Reader& reader, codec::Position at, const std::string& path, bool writable) {
  if (path.size() > kPathBytesMax) {
    return reader.Invalid(at, "a path longer than 4096 bytes",
                          "list one of its parent directories");
  }
  if (!path.starts_with('/')) {
    return reader.Invalid(at, "path '" + path + "' is not absolute", "write '/" + path + "'");
  }
  if (HasParentComponent(path)) {
    return reader.Invalid(at, "path '" + path + "' contains a '..' (path traversal)",
                          "write the path it resolves to");
  }
  if (writable && CleanPath(path) == "/") {
    return reader.Invalid(at, "writing to '/' is overly broad", "list the directories to write to");
  }
  return Ok();
}

Result<std::vector<std::string>> ParsePaths(Reader* reader, const Fields& fields,
                                            std::string_view key, bool writable) {
  std::vector<std::string> paths = TRY(fields.Texts(key));
  const YamlNode* list = fields.Find(key);
  for (size_t i = 0; i < paths.size(); ++i) {
    std::string& path = paths[i];
    if (!reader->Keep(CheckPath(*reader, list->items[i].at, path, writable))) continue;
    path = CleanPath(path);
    std::string fault = OwnPlaceFault(path);
    if (!fault.empty()) reader->Warn(list->items[i].at, "'" + path + "' is not exposed: " + fault);
  }
  return paths;
}

Result<FilesystemPolicy> ParseFilesystem(Reader* reader, const YamlNode* node) {
  if (node == nullptr) return DefaultFilesystem();
  Fields fields = TRY(Fields::Open(reader, *node, Section::kFilesystem));
  FilesystemPolicy filesystem;
  filesystem.include_workdir = TRY(fields.Boolean("include_workdir", false));
  filesystem.read_only = TRY(ParsePaths(reader, fields, "read_only", false));
  filesystem.read_write = TRY(ParsePaths(reader, fields, "read_write", true));
  if (filesystem.read_only.size() + filesystem.read_write.size() > kPathsMax) {
    return reader->Invalid(node->at, "more than 256 paths", "list their parent directories");
  }
  return filesystem;
}

Result<LandlockMode> ParseLandlock(Reader* reader, const YamlNode* node) {
  if (node == nullptr || node->kind == YamlKind::kNull) return LandlockMode::kBestEffort;
  Fields fields = TRY(Fields::Open(reader, *node, Section::kLandlock));
  std::optional<size_t> mode =
      TRY(fields.Choice("compatibility", {"best_effort", "hard_requirement"}));
  return mode == 1U ? LandlockMode::kHardRequirement : LandlockMode::kBestEffort;
}

Result<std::optional<std::string>> ParseIdentity(Reader* reader, const Fields& fields,
                                                 std::string_view key) {
  const YamlNode* node = fields.Find(key);
  if (node == nullptr || node->kind == YamlKind::kNull) return std::optional<std::string>();
  std::string text = TRY(fields.Text(key));
  if (text.empty()) return std::optional<std::string>();
  YamlNode plain = *node;
  plain.quoted = false;
  plain.text = text;
  std::optional<uint64_t> number = codec::YamlUnsigned(plain);
  bool in_range = number && *number >= 1 && *number <= kIdMax;
  if (text != "sandbox" && !in_range) {
    return reader->Invalid(fields.At(key), "'" + std::string(key) + "' cannot be '" + text + "'",
                           "write 'sandbox' or a number from 1 to 4294967294");
  }
  return std::optional<std::string>(text);
}

Result<ProcessPolicy> ParseProcess(Reader* reader, const YamlNode* node) {
  ProcessPolicy process;
  if (node == nullptr || node->kind == YamlKind::kNull) return process;
  Fields fields = TRY(Fields::Open(reader, *node, Section::kProcess));
  process.run_as_user = TRY(ParseIdentity(reader, fields, "run_as_user"));
  process.run_as_group = TRY(ParseIdentity(reader, fields, "run_as_group"));
  return process;
}

Status CheckVersion(Reader* reader, const Fields& fields) {
  const YamlNode* version = fields.Find("version");
  if (version == nullptr) {
    return reader->Invalid(fields.at(), "'version' is missing",
                           "write 'version: 1', or list 'endpoints:' for the short form");
  }
  if (codec::YamlUnsigned(*version) == 1U) return Ok();
  return reader->Invalid(fields.At("version"), "'version' must be 1", "write 'version: 1'");
}

Result<Policy> ParseFullForm(Reader* reader, const YamlNode& root) {
  Fields fields = TRY(Fields::Open(reader, root, Section::kDocument));
  reader->Keep(CheckVersion(reader, fields));
  Policy policy;
  auto take = [&](auto part, auto* target) {
    if (auto value = reader->Keep(std::move(part))) *target = *std::move(value);
  };
  take(ParseFilesystem(reader, fields.Find("filesystem_policy")), &policy.filesystem);
  take(ParseLandlock(reader, fields.Find("landlock")), &policy.landlock);
  take(ParseProcess(reader, fields.Find("process")), &policy.process);
  const YamlNode* network = fields.Find("network_policies");
  if (network != nullptr) take(ParseNetworkPolicies(reader, *network), &policy.network);
  const YamlNode* middlewares = fields.Find("network_middlewares");
  if (middlewares != nullptr) take(ParseMiddlewares(reader, *middlewares), &policy.middlewares);
  if (reader->errors.empty()) TRY(CheckMiddlewareTunnels(*reader, policy));
  return policy;
}

// OpenShell takes quoted text as it stands: with a blank at an end it is refused there, or matches
// nothing. Only around a host does it drop them.
void CheckBlanks(Reader* reader, const YamlNode& node) {
  std::string_view trimmed = ascii::Trimmed(node.text);
  if (trimmed != node.text && !trimmed.empty()) {
    reader->KeepError(reader->Invalid(node.at, "text begins or ends with a space",
                                      "write '\"" + std::string(trimmed) + "\"'"));
  }
  for (const YamlNode& item : node.items) CheckBlanks(reader, item);
  for (const YamlEntry& entry : node.entries) {
    if (entry.key != "host") CheckBlanks(reader, entry.value);
  }
}

Result<ParsedPolicy> ParseForm(Reader* reader, const YamlNode& root, const ParseContext& context) {
  if (root.kind == YamlKind::kNull) {
    return reader->Invalid({1, 1}, "the policy is empty",
                           "write 'endpoints: []' for no connections at all");
  }
  if (root.kind != YamlKind::kMapping) {
    return reader->Invalid(root.at,
                           "a policy must be a mapping, not " + std::string(DescribeKind(root)),
                           "write 'endpoints:' above the list");
  }
  const YamlNode* hosted_tools = root.Find("hosted_tools");
  const YamlNode* after_untrusted = root.Find("after_untrusted");
  const bool alone =
      (hosted_tools != nullptr || after_untrusted != nullptr) && root.Find("version") == nullptr;
  bool has_short_key =
      root.Find("endpoints") != nullptr || root.Find("defaults") != nullptr || alone;
  if (root.Find("version") != nullptr && has_short_key) {
    return reader->Invalid(root.at, "a policy has either 'version' or 'endpoints', not both",
                           "remove 'version', or move the endpoints into 'network_policies'");
  }
  ParsedPolicy parsed;
  parsed.file = context.file;
  parsed.short_form = has_short_key;
  if (parsed.short_form) {
    parsed.policy.filesystem = DefaultFilesystem();
    parsed.policy.network = TRY(ParseShortForm(reader, root, context));
  } else {
    CheckBlanks(reader, root);
    parsed.policy = TRY(ParseFullForm(reader, root));
  }
  parsed.policy.hosted_tools = context.hosted_tools;
  if (parsed.short_form && hosted_tools != nullptr) {
    auto list = reader->Keep(ParseHostedTools(context.file, *hosted_tools));
    if (list) parsed.policy.hosted_tools = *std::move(list);
  }
  parsed.policy.after_untrusted = context.after_untrusted;
  if (parsed.short_form && after_untrusted != nullptr) {
    auto value = reader->Keep(ParseAfterUntrusted(context.file, *after_untrusted));
    if (value) parsed.policy.after_untrusted = *std::move(value);
  }
  if (reader->errors.empty()) TRY(CheckOverlaps(context.file, parsed.policy));
  for (Warning& warning : FindBypassedCalls(parsed.policy)) {
    reader->Warn(warning.at, std::move(warning.what));
  }
  return parsed;
}

}  // namespace

Result<ParsedPolicy> ParsePolicy(std::string_view yaml, const ParseContext& context,
                                 std::vector<Error>* errors) {
  codec::YamlLimits limits;
  limits.bytes_max = kPolicyBytesMax;
  Result<YamlNode> root = codec::ParseYaml(yaml, context.file, limits);
  if (root.ok()) return ParsePolicyTree(root.value(), context, errors);
  if (errors != nullptr) *errors = {root.error()};
  return std::move(root).error();
}

Result<ParsedPolicy> ParsePolicyTree(const YamlNode& root, const ParseContext& context,
                                     std::vector<Error>* errors) {
  Reader reader;
  reader.file = context.file;
  std::optional<ParsedPolicy> parsed = reader.Keep(ParseForm(&reader, root, context));
  if (errors != nullptr) *errors = reader.errors;
  if (!reader.errors.empty()) return std::move(reader.errors.front());
  ENSURE(parsed.has_value());
  parsed->warnings = std::move(reader.warnings);
  return *std::move(parsed);
}

Policy DefaultPolicy(const ParseContext& context) {
  Policy policy;
  policy.filesystem = DefaultFilesystem();
  policy.network = DefaultNetworkPolicies(Defaults::kMinimal, context);
  policy.hosted_tools = context.hosted_tools;
  policy.after_untrusted = context.after_untrusted;
  return policy;
}

}  // namespace policy
