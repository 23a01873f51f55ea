// SPDX-License-Identifier: Apache-2.0
// Denials of one host and port, put together: what a suggestion is written from.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/policy.h"
#include "policy/suggest.h"

namespace policy {

struct Wish {
  bool connection = false;  // A connection was refused: all that is known is host and port.
  std::set<std::pair<std::string, std::string>> requests;  // Method and path.
  std::set<std::string> binaries;
};

// What no policy opens, or what nobody should be led to open by a suggestion. `host` is canonical.
bool IsHopeless(std::string_view host);

// By host (canonical) and port. Without what no policy opens, and without text that could break out
// of a line of YAML; at most 200 denials.
std::map<std::pair<std::string, uint16_t>, Wish> CollectWishes(const std::vector<Denial>& denials);

// What a new endpoint must share with one that is there already, or the two would contradict each
// other.
struct SharedTraits {
  Protocol protocol = Protocol::kRest;
  bool skip_tls = false;
  bool audit = false;
  bool allow_encoded_slash = false;
  std::vector<std::string> allowed_ips;
};

// "allow_api_github_com_443", as OpenShell names the rules it makes itself.
std::string WishKey(const std::string& host, uint16_t port);

// The entry of `network_policies` for a wish, as lines without a common indentation.
std::vector<std::string> WishLines(const std::string& key, const std::string& host, uint16_t port,
                                   const Wish& wish, const SharedTraits& traits);

}  // namespace policy
