// SPDX-License-Identifier: Apache-2.0
// The inside of compiled policies: the rules over method, path and query of one endpoint.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/glob/glob.h"
#include "policy/decide/hash_index.h"
#include "policy/model/policy.h"

namespace policy {

// The methods that rules name, as numbers.
class MethodNames {
 public:
  static constexpr uint32_t kAny = 0;   // "*" of a rule.
  static constexpr uint32_t kNone = 1;  // No rule names it.

  // While compiling. `method` as a rule has it.
  uint32_t Intern(std::string_view method);
  // Of a request: in any case.
  uint32_t Find(std::string_view method) const;

 private:
  std::vector<std::string> names_;  // Number n stands at n - 2.
};

// One request as rules see it; made once per decision. The text is borrowed.
struct RequestKeys {
  // Only so many folders of a path are hashed one by one; deeper rules stand in the last of these.
  static constexpr size_t kFoldersMax = 6;

  uint32_t method = MethodNames::kNone;
  uint32_t as_get = MethodNames::kNone;  // HEAD is a GET without the body: rules for GET hold.
  std::string_view path;
  std::string_view query;
  uint64_t whole = 0;                                  // Hash of the path.
  std::array<uint64_t, kFoldersMax + 1> folders = {};  // Of "", "/", "/a/", ... as many as it has.
  size_t folder_count = 1;
};
RequestKeys MakeRequestKeys(const MethodNames& methods, std::string_view method,
                            std::string_view path, std::string_view query);

// The rules of one list, found by what their paths begin with, or by what they hold (gram.h) where
// that tells more of them apart.
class RuleIndex {
 public:
  // Rules without a method are of another kind and left out. `rules` must outlive the index. With
  // `denying` a pattern that does not parse matches everything, otherwise nothing.
  RuleIndex(const std::vector<HttpRule>& rules, bool denying, MethodNames* methods);
  RuleIndex() = default;

  // The first rule in the order written that matches; null when none does. To allow, every value of
  // every configured query key must match; to deny, one value of each is enough. An absent key
  // never matches. Keys that a server may take for a configured one count as that one, except that
  // they do not make it present; so do pairs between ';'.
  const HttpRule* Find(const RequestKeys& request) const;
  bool empty() const { return rules_.empty(); }

 private:
  struct Query {
    std::string key;
    std::vector<codec::Glob> any;
  };
  struct Rule {
    const HttpRule* source = nullptr;
    uint32_t method = MethodNames::kAny;
    bool every_path = false;
    codec::Glob path;
    std::vector<Query> query;
  };

  void AddRule(const HttpRule& rule, MethodNames* methods);
  void FillIndex();
  void FindIn(std::span<const HashIndex::Entry> entries, const RequestKeys& request,
              uint32_t* best) const;
  bool Matches(const Rule& rule, const RequestKeys& request) const;
  bool QueryMatches(const Rule& rule, const Query& wanted, std::string_view query) const;
  static bool MeansKey(const Rule& rule, const Query& wanted, std::string_view key);

  bool denying_ = false;
  std::vector<Rule> rules_;
  HashIndex index_;
  HashIndex grams_;
};

// Parses a pattern of a rule. One that does not parse (ParsePolicy lets none through) is everything
// in a deny rule; in an allow rule it is nothing, and to be left out.
std::optional<codec::Glob> CompileGlob(std::string_view pattern, char delimiter, bool denying);

}  // namespace policy
