// SPDX-License-Identifier: Apache-2.0
#include "policy/suggest.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "policy/destination.h"
#include "policy/host_pattern.h"

namespace policy {
namespace {

constexpr size_t kDenialsMax = 200;    // More is no suggestion but noise.
constexpr size_t kTextBytesMax = 512;  // Of a host, path or binary in the file.

// What no policy opens, or what nobody should be led to open by a suggestion.
bool IsHopeless(std::string_view host) {
  if (host.empty() || host == "localhost" || host == "metadata.google.internal") return true;
  std::optional<Address> address = ParseAddress(host);
  if (address) return ClassifyAddress(*address) == AddressClass::kAlwaysBlocked;
  return !HostFault(host).empty() || IsHostPattern(host);
}

// Denials come from what the agent did: nothing of them may break out of a line of YAML.
bool IsPlain(std::string_view text) {
  if (text.size() > kTextBytesMax) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= 0x20 && c < 0x7F && c != '\'' && c != '\\';
  });
}

bool IsReading(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

bool IsWriting(std::string_view method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

// A path as a pattern that matches just this path.
std::string EscapePattern(std::string_view path) {
  std::string escaped;
  for (char c : path) {
    if (std::string_view("*?[]{}").find(c) != std::string_view::npos) {
      escaped += "[" + std::string(1, c) + "]";
    } else {
      escaped.push_back(c);
    }
  }
  return escaped;
}

std::string BracketedHost(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

// "allow_api_github_com_443", as OpenShell names the rules it makes itself.
std::string PolicyKey(const std::string& host, uint16_t port) {
  std::string key = "allow_";
  for (char c : host) {
    if (c == '.' || c == '-') c = '_';
    bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    if (plain) key.push_back(c);
  }
  return key + "_" + std::to_string(port);
}

struct Wanted {
  bool connection = false;  // A connection was refused: all that is known is host and port.
  std::set<std::pair<std::string, std::string>> requests;  // Method and path.
  std::set<std::string> binaries;
};

using Wishes = std::map<std::pair<std::string, uint16_t>, Wanted>;

Wishes CollectWishes(const std::vector<Denial>& denials) {
  Wishes wishes;
  size_t taken = 0;
  for (const Denial& denial : denials) {
    std::string host = CanonicalHost(denial.host);
    bool plain =
        IsPlain(host) && IsPlain(denial.method) && IsPlain(denial.path) && IsPlain(denial.binary);
    if (IsHopeless(host) || denial.port == 0 || !plain) continue;
    if (++taken > kDenialsMax) break;
    Wanted& wanted = wishes[{host, denial.port}];
    if (denial.method.empty()) {
      wanted.connection = true;
    } else {
      wanted.requests.insert({denial.method, denial.path.empty() ? "/" : denial.path});
    }
    if (!denial.binary.empty()) wanted.binaries.insert(denial.binary);
  }
  return wishes;
}

void RenderWish(const std::string& host, uint16_t port, const Wanted& wanted, std::string* out) {
  *out += "  " + PolicyKey(host, port) + ":\n    endpoints:\n";
  *out += "      - host: '" + host + "'\n        port: " + std::to_string(port) + "\n";
  bool internal = false;
  std::optional<Address> address = ParseAddress(host);
  if (address) internal = ClassifyAddress(*address) == AddressClass::kInternal;
  if (internal) *out += "        # A private address: be sure that the agent should reach it.\n";
  *out += "        protocol: rest\n";
  if (wanted.requests.empty()) {
    *out += "        # Only the connection was seen, not its requests: reading is suggested.\n";
    *out += "        access: read-only\n";
  } else {
    *out += "        rules:\n";
    if (wanted.connection) {
      *out += "          # Some connections were refused before their requests were seen.\n";
    }
    for (const auto& [method, path] : wanted.requests) {
      *out +=
          "          - allow: {method: '" + method + "', path: '" + EscapePattern(path) + "'}\n";
    }
  }
  *out += "    binaries:\n";
  if (wanted.binaries.empty()) *out += "      - path: '/**'  # The program is not known.\n";
  for (const std::string& binary : wanted.binaries) {
    *out += "      - path: '" + binary + "'\n";
  }
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
  Wishes wishes = CollectWishes(denials);
  if (wishes.empty()) return {};
  std::string out =
      "# What this run was refused, as policies that would allow exactly that. Read before you\n"
      "# paste: an agent that was misled asks for what misled it wants. In an 'endpoints:' file "
      "use\n"
      "# the lines below instead:\n";
  for (const auto& [place, wanted] : wishes) {
    // The widest access that any of the refused requests needs.
    std::string line = SuggestLine({place.first, place.second, "", "", ""});
    for (const auto& [method, path] : wanted.requests) {
      std::string wider = SuggestLine({place.first, place.second, method, path, ""});
      bool full = line.ends_with(":full");
      if (!full && !wider.ends_with(":read-only")) line = wider;
    }
    out += "#   - \"" + line + "\"\n";
  }
  out += "version: 1\nnetwork_policies:\n";
  for (const auto& [place, wanted] : wishes) {
    RenderWish(place.first, place.second, wanted, &out);
  }
  return out;
}

}  // namespace policy
