// SPDX-License-Identifier: Apache-2.0
// The internals of compiled policies: the rules over method, path and query of one endpoint.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/glob/glob.h"
#include "policy/model/policy.h"

namespace policy {

// The rules of one list, with their patterns parsed; compared one after the other, in the order
// written.
class HttpRules {
 public:
  // Rules without a method are of another kind and left out. `rules` must outlive the list. With
  // `denying` a pattern that does not parse matches everything, otherwise nothing.
  HttpRules(const std::vector<HttpRule>& rules, bool denying);
  HttpRules() = default;

  // Returns the first rule in the order written that matches; null if none does. A rule for GET
  // holds for HEAD, too. To allow, every value of every configured query key must match; to deny,
  // one value of each is enough. An absent key never matches. Keys that a server may take for a
  // configured one count as that one, except that they do not make it present; so do pairs between
  // ';'.
  const HttpRule* Find(std::string_view method, std::string_view path,
                       std::string_view query) const;

 private:
  struct Query {
    std::string key;
    std::vector<codec::Glob> any;
  };
  struct Rule {
    const HttpRule* source = nullptr;
    codec::Glob path;
    std::vector<Query> query;
  };

  void AddRule(const HttpRule& rule);
  bool QueryMatches(const Rule& rule, const Query& wanted, std::string_view query) const;
  static bool MeansKey(const Rule& rule, const Query& wanted, std::string_view key);

  bool denying_ = false;
  std::vector<Rule> rules_;
};

// Parses a pattern of a rule. One that does not parse (ParsePolicy lets none through) is everything
// in a deny rule; in an allow rule it is nothing, and to be left out.
std::optional<codec::Glob> CompileGlob(std::string_view pattern, char delimiter, bool denying);

}  // namespace policy
