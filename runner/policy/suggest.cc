// SPDX-License-Identifier: Apache-2.0
#include "policy/suggest.h"

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "policy/host_pattern.h"
#include "policy/wish.h"

namespace policy {
namespace {

bool IsReading(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

bool IsWriting(std::string_view method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

std::string BracketedHost(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace

std::string SuggestLine(const Denial& denial) {
  std::string host = CanonicalHost(denial.host);
  if (IsHopeless(host) || denial.port == 0) return {};
  std::string access = "full";
  if (denial.method.empty() || IsReading(denial.method)) {
    access = "read-only";
  } else if (IsWriting(denial.method)) {
    access = "read-write";
  }
  return BracketedHost(host) + ":" + std::to_string(denial.port) + ":" + access;
}

std::string SuggestPolicy(const std::vector<Denial>& denials) {
  std::vector<Wish> wishes = CollectWishes(denials);
  if (wishes.empty()) return {};
  std::map<std::pair<std::string, uint16_t>, std::string> lines;  // The widest that is needed.
  for (const Wish& wish : wishes) {
    std::string& line = lines[{wish.host, wish.port}];
    if (line.empty()) line = SuggestLine({wish.host, wish.port, "", "", ""});
    for (const auto& [method, path] : wish.requests) {
      std::string wider = SuggestLine({wish.host, wish.port, method, path, ""});
      bool full = line.ends_with(":full");
      if (!full && !wider.ends_with(":read-only")) line = wider;
    }
  }
  std::string out =
      "# What this run was refused, as policies that would allow exactly that. Read before you\n"
      "# paste: an agent that was misled asks for what misled it wants. In an 'endpoints:' file "
      "use\n"
      "# the lines below instead:\n";
  for (const auto& [place, line] : lines) out += "#   - \"" + line + "\"\n";
  out += "version: 1\nnetwork_policies:\n";
  std::set<std::string> taken;
  for (const Wish& wish : wishes) {
    std::string key = FreeKey(wish, taken);
    taken.insert(key);
    for (const std::string& line : WishLines(key, wish, {})) out += "  " + line + "\n";
  }
  return out;
}

}  // namespace policy
