// SPDX-License-Identifier: Apache-2.0
// The denials for one destination and program, combined: the input for a suggestion.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "advise/suggest.h"
#include "policy/model/policy.h"

namespace advise {

struct Suggestion {
  std::string host;  // Canonical.
  uint16_t port = 0;
  bool connection = false;  // A connection was refused: all that is known is host and port.
  std::set<std::pair<std::string, std::string>> requests;  // Method and path.
  // Set for requests that are judged by more than method and path: the protocol, the path that the
  // endpoint is for, and the operations that it allows.
  std::string protocol;
  std::string path;
  EndpointAddition addition;
  std::set<std::string> binaries;
  std::vector<Denial> origin;  // The denials that it was made of.
};

// True for text of a denial that cannot break out of quotes in a line of YAML.
bool IsPlain(std::string_view text);
// Returns a rule such as "{method: 'GET', path: '/a'}", the path a pattern that matches just this.
// Both are plain.
std::string RequestRule(const std::string& method, const std::string& path);

// Hosts that no policy can open, and hosts that a suggestion must not lead people to open. `host`
// is canonical.
bool MustNotBeSuggested(std::string_view host);

// Groups at most 200 denials by place and program; programs that were refused the same are one
// suggestion. Leaves out what no policy opens, and text that could break out of a line of YAML.
std::vector<Suggestion> CollectSuggestions(const std::vector<Denial>& denials);

// The traits that a new endpoint must share with one that is there already, or the two would
// contradict each other.
struct SharedTraits {
  policy::Protocol protocol = policy::Protocol::kRest;
  bool skip_tls = false;
  bool audit = false;
  bool allow_encoded_slash = false;
  std::vector<std::string> allowed_ips;
};

// Returns a key for the suggestion that is not taken: "allow_api_github_com_443", as OpenShell
// names such rules.
std::string FreeKey(const Suggestion& suggestion, const std::set<std::string>& taken);

// Returns the entry of `network_policies` for a suggestion, as lines without a common indentation.
std::vector<std::string> SuggestionLines(const std::string& key, const Suggestion& suggestion,
                                         const SharedTraits& traits);

}  // namespace advise
