// SPDX-License-Identifier: Apache-2.0
#include "policy/decide/rule_index.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/result.h"
#include "codec/wire/http_head.h"
#include "codec/wire/query.h"
#include "policy/decide/gram.h"

namespace policy {
namespace {

constexpr uint32_t kNoRule = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kFirstMethod = 2;

// What every path that matches begins with, as far as it is a folder that requests are hashed by.
std::string_view LiteralFolder(std::string_view pattern) {
  std::string_view literal = pattern.substr(0, pattern.find_first_of("*?[]{}\\"));
  size_t slashes = 0;
  size_t end = 0;
  for (size_t i = 0; i < literal.size() && slashes < RequestKeys::kFoldersMax; ++i) {
    if (literal[i] != '/') continue;
    ++slashes;
    end = i + 1;
  }
  return literal.substr(0, end);
}

uint64_t HashOf(std::string_view text) {
  Hash hash;
  hash.Add(text);
  return hash.value();
}

}  // namespace

std::optional<codec::Glob> CompileGlob(std::string_view pattern, char delimiter, bool denying) {
  Result<codec::Glob> glob = codec::Glob::Parse(pattern, delimiter);
  if (!glob.ok() && denying) glob = codec::Glob::Parse("**", '/');
  if (!glob.ok()) return std::nullopt;
  return std::move(glob).value();
}

uint32_t MethodNames::Intern(std::string_view method) {
  if (method == "*") return kAny;
  uint32_t known = Find(method);
  if (known != kNone) return known;
  names_.emplace_back(method);
  return static_cast<uint32_t>(names_.size()) + kFirstMethod - 1;
}

uint32_t MethodNames::Find(std::string_view method) const {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (codec::EqualIgnoringCase(names_[i], method)) return static_cast<uint32_t>(i) + kFirstMethod;
  }
  return kNone;
}

RequestKeys MakeRequestKeys(const MethodNames& methods, std::string_view method,
                            std::string_view path, std::string_view query) {
  RequestKeys keys;
  keys.method = methods.Find(method);
  keys.as_get = codec::EqualIgnoringCase(method, "HEAD") ? methods.Find("GET") : keys.method;
  keys.path = path;
  keys.query = query;
  Hash hash;
  keys.folders[0] = hash.value();
  for (char c : path) {
    hash.Add(c);
    if (c == '/' && keys.folder_count < keys.folders.size()) {
      keys.folders[keys.folder_count++] = hash.value();
    }
  }
  keys.whole = hash.value();
  return keys;
}

RuleIndex::RuleIndex(const std::vector<HttpRule>& rules, bool denying, MethodNames* methods)
    : denying_(denying) {
  for (const HttpRule& rule : rules) {
    if (!rule.method.empty()) AddRule(rule, methods);
  }
  FillIndex();
}

void RuleIndex::AddRule(const HttpRule& source, MethodNames* methods) {
  std::optional<codec::Glob> path = CompileGlob(source.path, '/', denying_);
  if (!path) return;
  Rule rule;
  rule.source = &source;
  rule.method = methods->Intern(source.method);
  rule.every_path = source.path == "**";
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

void RuleIndex::FillIndex() {
  auto key_of = [](const Rule& rule) {
    std::string_view path = rule.source->path;
    bool literal = path.find_first_of("*?[]{}\\") == std::string_view::npos;
    return HashOf(literal ? path : LiteralFolder(path));
  };
  GramChoice choice('/');
  for (const Rule& rule : rules_) choice.Count(rule.source->path, key_of(rule));
  for (uint32_t number = 0; number < rules_.size(); ++number) {
    const Rule& rule = rules_[number];
    std::optional<uint64_t> gram = choice.Find(rule.source->path, key_of(rule));
    (gram ? grams_ : index_).Add(gram ? *gram : key_of(rule), number);
  }
  index_.Freeze();
  grams_.Freeze();
}

const HttpRule* RuleIndex::Find(const RequestKeys& request) const {
  if (rules_.empty()) return nullptr;
  uint32_t best = kNoRule;
  for (size_t i = 0; i < request.folder_count; ++i) {
    FindIn(index_.Find(request.folders[i]), request, &best);
  }
  // The path of a folder is its own last folder.
  if (request.whole != request.folders[request.folder_count - 1]) {
    FindIn(index_.Find(request.whole), request, &best);
  }
  if (!grams_.empty()) {
    ForEachGram(true, request.path,
                [&](uint64_t gram) { FindIn(grams_.Find(gram), request, &best); });
  }
  return best == kNoRule ? nullptr : rules_[best].source;
}

void RuleIndex::FindIn(std::span<const HashIndex::Entry> entries, const RequestKeys& request,
                       uint32_t* best) const {
  for (const HashIndex::Entry& entry : entries) {
    if (entry.number >= *best) return;
    if (!Matches(rules_[entry.number], request)) continue;
    *best = entry.number;
    return;
  }
}

bool RuleIndex::Matches(const Rule& rule, const RequestKeys& request) const {
  bool method = rule.method == MethodNames::kAny || rule.method == request.method ||
                rule.method == request.as_get;
  if (!method || !(rule.every_path || rule.path.Matches(request.path))) return false;
  return std::all_of(rule.query.begin(), rule.query.end(), [&](const Query& wanted) {
    return QueryMatches(rule, wanted, request.query);
  });
}

bool RuleIndex::QueryMatches(const Rule& rule, const Query& wanted, std::string_view query) const {
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
bool RuleIndex::MeansKey(const Rule& rule, const Query& wanted, std::string_view key) {
  if (key == wanted.key) return true;
  return codec::MayMeanKey(key, wanted.key) &&
         std::none_of(rule.query.begin(), rule.query.end(),
                      [&](const Query& other) { return other.key == key; });
}

}  // namespace policy
