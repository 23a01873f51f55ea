// SPDX-License-Identifier: Apache-2.0
#include "policy/decide/http_rules.h"

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "codec/wire/http_head.h"
#include "codec/wire/query.h"

namespace policy {

std::optional<codec::Glob> CompileGlob(std::string_view pattern, char delimiter, bool denying) {
  Result<codec::Glob> glob = codec::Glob::Parse(pattern, delimiter);
  if (!glob.ok() && denying) glob = codec::Glob::Parse("**", '/');
  if (!glob.ok()) return std::nullopt;
  return std::move(glob).value();
}

HttpRules::HttpRules(const std::vector<HttpRule>& rules, bool denying) : denying_(denying) {
  for (const HttpRule& rule : rules) {
    if (!rule.method.empty()) AddRule(rule);
  }
}

void HttpRules::AddRule(const HttpRule& source) {
  std::optional<codec::Glob> path = CompileGlob(source.path, '/', denying_);
  if (!path) return;
  Rule rule;
  rule.source = &source;
  rule.path = std::move(*path);
  for (const QueryMatcher& matcher : source.query) {
    Query query{matcher.key, {}};
    for (const std::string& pattern : matcher.any) {
      std::optional<codec::Glob> glob = CompileGlob(pattern, '.', denying_);
      if (glob) query.any.push_back(std::move(*glob));
    }
    rule.query.push_back(std::move(query));
  }
  rules_.push_back(std::move(rule));
}

const HttpRule* HttpRules::Find(std::string_view method, std::string_view path,
                                std::string_view query) const {
  const bool head = codec::EqualIgnoringCase(method, "HEAD");
  for (const Rule& rule : rules_) {
    std::string_view wanted = rule.source->method;
    bool same_method = wanted == "*" || codec::EqualIgnoringCase(wanted, method) ||
                       (head && codec::EqualIgnoringCase(wanted, "GET"));
    if (!same_method || !(rule.source->path == "**" || rule.path.Matches(path))) continue;
    bool all = std::all_of(rule.query.begin(), rule.query.end(),
                           [&](const Query& one) { return QueryMatches(rule, one, query); });
    if (all) return rule.source;
  }
  return nullptr;
}

bool HttpRules::QueryMatches(const Rule& rule, const Query& wanted, std::string_view query) const {
  bool present = false;
  for (std::string_view separators : {"&", "&;"}) {
    bool first = separators == "&";
    if (!first && query.find(';') == std::string_view::npos) break;
    codec::QueryReader reader(query, separators);
    while (reader.Next()) {
      if (!MeansKey(rule, wanted, reader.key())) continue;
      bool matches =
          std::any_of(wanted.any.begin(), wanted.any.end(),
                      [&](const codec::Glob& glob) { return glob.Matches(reader.value()); });
      if (matches == denying_) return denying_;
      present = present || (first && reader.key() == wanted.key);
    }
  }
  return !denying_ && present;
}

// A key that the rule itself names is not mistaken for another.
bool HttpRules::MeansKey(const Rule& rule, const Query& wanted, std::string_view key) {
  if (key == wanted.key) return true;
  return codec::MayMeanKey(key, wanted.key) &&
         std::none_of(rule.query.begin(), rule.query.end(),
                      [&](const Query& other) { return other.key == key; });
}

}  // namespace policy
