// SPDX-License-Identifier: Apache-2.0
#include "policy/load/hosted_parse.h"

#include <algorithm>

#include "base/ascii.h"
#include "codec/data/yaml_fields.h"
#include "codec/text/nearest.h"
#include "policy/model/host_pattern.h"

namespace policy {
namespace {

using codec::YamlKind;
using codec::YamlNode;

constexpr size_t kDomainsMax = 100;
constexpr std::string_view kForm = "hosted_tools: [web_search: {domains: [docs.example.com]}]";

bool IsDomain(std::string_view domain) {
  return !domain.empty() && domain.find_first_not_of(kDomainCharacters) == std::string_view::npos &&
         domain.front() != '.' && domain.find("..") == std::string_view::npos;
}

Result<std::vector<std::string>> ParseDomains(const std::string& file, const YamlNode& node) {
  codec::YamlFields fields = TRY(codec::YamlFields::Open(file, node, "a hosted tool", {"domains"}));
  std::vector<std::string> domains = TRY(fields.FilledTexts("domains"));
  // No domain at all would be any.
  if (domains.empty()) return fields.Invalid("domains", "a hosted tool needs 'domains'", kForm);
  if (domains.size() > kDomainsMax) return fields.Invalid("domains", "more than 100 domains");
  for (std::string& domain : domains) {
    std::string canonical = CanonicalHost(domain);
    if (!IsDomain(canonical)) {
      return fields.Invalid("domains", "'" + domain + "' is not the name of a domain",
                            "docs.example.com, which includes what is below it");
    }
    domain = std::move(canonical);
  }
  return domains;
}

Status CheckKind(const std::string& file, codec::Position at, const HostedAllowance& entry) {
  const std::string& kind = entry.kind;
  if (kind.starts_with(kTypeEntry) && kind.size() > kTypeEntry.size() && entry.domains.empty()) {
    return Ok();
  }
  const HostedKind* known = FindHostedKind(kind);
  if (known == nullptr) {
    std::vector<std::string_view> names;
    for (const HostedKind& one : kHostedKinds) names.push_back(one.name);
    const std::string nearest = codec::NearestName(kind, names);
    return codec::InvalidAt(file, at, "no hosted tool is called '" + kind + "'",
                            nearest.empty() ? codec::OneOf(names) : nearest);
  }
  if (!entry.domains.empty() && !known->takes_domains) {
    return codec::InvalidAt(file, at, "'" + kind + "' takes no 'domains'", kind);
  }
  return Ok();
}

}  // namespace

Result<std::vector<HostedAllowance>> ParseHostedTools(const std::string& file,
                                                      const YamlNode& node) {
  std::vector<HostedAllowance> list;
  if (node.kind == YamlKind::kScalar && ascii::Trimmed(node.text) == "none") return list;
  if (node.kind != YamlKind::kSequence || node.items.empty()) {
    return codec::InvalidAt(file, node.at, "'hosted_tools' must be 'none' or a list", kForm);
  }
  for (const YamlNode& item : node.items) {
    HostedAllowance entry;
    if (item.kind == YamlKind::kMapping && item.entries.size() == 1) {
      entry.kind = item.entries.front().key;
      entry.domains = TRY(ParseDomains(file, item.entries.front().value));
    } else if (std::optional<std::string> text = codec::ScalarText(item)) {
      entry.kind = *std::move(text);
    } else {
      return codec::InvalidAt(file, item.at, "a hosted tool must be a name, or one with 'domains'",
                              kForm);
    }
    TRY(CheckKind(file, item.at, entry));
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace policy
