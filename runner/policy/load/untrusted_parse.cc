// SPDX-License-Identifier: Apache-2.0
#include "policy/load/untrusted_parse.h"

#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "codec/data/yaml_fields.h"
#include "codec/text/nearest.h"
#include "policy/model/host_pattern.h"

namespace policy {
namespace {

using codec::YamlFields;

constexpr std::string_view kUntrustedForm = "after_untrusted: {closes: [writes, hosted_tools]}";
constexpr size_t kEntriesMax = 100;

// The words that a list may have; `trusts` has none.
std::vector<std::string_view> WordsOf(std::string_view key) {
  std::vector<std::string_view> words;
  if (key == "trusts") return words;
  if (key == "closes") words = {kClosesAll, kClosesWrites, kClosesCredentials, kClosesHostedTools};
  for (const HostedKind& kind : kHostedKinds) words.push_back(kind.name);
  return words;
}

Result<HostPort> ParseHost(const YamlFields& fields, std::string_view key,
                           const std::string& entry) {
  const size_t colon = entry.rfind(':');
  const bool has_port = colon != std::string::npos && entry.find(']', colon) == std::string::npos &&
                        (entry.find(':') == colon || entry.front() == '[');
  HostPort host;
  if (has_port) {
    const char* end = entry.data() + entry.size();
    const auto parsed = std::from_chars(entry.data() + colon + 1, end, host.port);
    if (parsed.ec != std::errc() || parsed.ptr != end || host.port == 0) {
      return fields.Invalid(key, "'" + entry + "' has no port from 1 to 65535",
                            "api.example.com:443");
    }
  }
  host.host = CanonicalHost(has_port ? entry.substr(0, colon) : entry);
  const std::string fault = host.host.empty() ? "is missing" : HostFault(host.host);
  if (!fault.empty()) return fields.Invalid(key, "host '" + entry + "' " + fault, kUntrustedForm);
  return host;
}

Result<Doors> ParseDoors(const YamlFields& fields, std::string_view key) {
  const std::vector<std::string_view> words = WordsOf(key);
  Doors doors;
  const std::vector<std::string> entries = TRY(fields.FilledTexts(key));
  if (entries.size() > kEntriesMax) return fields.Invalid(key, "more than 100 entries");
  for (const std::string& entry : entries) {
    if (std::ranges::find(words, entry) != words.end()) {
      doors.words.push_back(entry);
      continue;
    }
    // A misspelled word would be a host that is never asked for.
    if (entry.find_first_of(".:*") == std::string::npos) {
      const std::string nearest = codec::NearestName(entry, words);
      return fields.Invalid(
          key, "'" + entry + "' is neither a host nor a word that '" + std::string(key) + "' knows",
          nearest.empty() ? "a host of one word has its port: " + entry + ":443" : nearest);
    }
    doors.hosts.push_back(TRY(ParseHost(fields, key, entry)));
  }
  return doors;
}

}  // namespace

Result<AfterUntrusted> ParseAfterUntrusted(const std::string& file, const codec::YamlNode& node) {
  AfterUntrusted parsed;
  if (node.kind == codec::YamlKind::kScalar && ascii::Trimmed(node.text) == "none") return parsed;
  if (node.kind != codec::YamlKind::kMapping) {
    return codec::InvalidAt(file, node.at, "'after_untrusted' must be 'none' or a mapping",
                            kUntrustedForm);
  }
  YamlFields fields =
      TRY(YamlFields::Open(file, node, "'after_untrusted'", {"closes", "stays", "trusts"}));
  parsed.closes = TRY(ParseDoors(fields, "closes"));
  parsed.stays = TRY(ParseDoors(fields, "stays"));
  parsed.trusts = TRY(ParseDoors(fields, "trusts")).hosts;
  if (!parsed.used())
    return fields.Invalid("closes", "'after_untrusted' needs 'closes'", kUntrustedForm);
  return parsed;
}

}  // namespace policy
