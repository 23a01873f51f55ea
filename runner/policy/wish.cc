// SPDX-License-Identifier: Apache-2.0
#include "policy/wish.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "policy/destination.h"
#include "policy/host_pattern.h"
#include "policy/protocol.h"

namespace policy {
namespace {

constexpr size_t kDenialsMax = 200;    // More is no suggestion but noise.
constexpr size_t kTextBytesMax = 512;  // Of a host, path or binary in the file.

// Denials come from what the agent did: nothing of them may break out of a line of YAML.
bool IsPlain(std::string_view text) {
  if (text.size() > kTextBytesMax) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= 0x20 && c < 0x7F && c != '\'' && c != '\\';
  });
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

// What the endpoint has beside host, port and rules.
void AppendTraits(const SharedTraits& traits, std::vector<std::string>* lines) {
  lines->push_back("      protocol: " + std::string(ProtocolName(traits.protocol)));
  if (traits.skip_tls) lines->emplace_back("      tls: skip");
  if (traits.audit) lines->emplace_back("      enforcement: audit");
  if (traits.allow_encoded_slash) lines->emplace_back("      allow_encoded_slash: true");
  if (traits.allowed_ips.empty()) return;
  lines->emplace_back("      allowed_ips:");
  for (const std::string& entry : traits.allowed_ips) lines->push_back("        - '" + entry + "'");
}

void AppendRules(const Wish& wish, std::vector<std::string>* lines) {
  if (wish.requests.empty()) {
    lines->emplace_back(
        "      # Only the connection was seen, not its requests: reading is suggested.");
    lines->emplace_back("      access: read-only");
    return;
  }
  lines->emplace_back("      rules:");
  if (wish.connection) {
    lines->emplace_back("        # Some connections were refused before their requests were seen.");
  }
  for (const auto& [method, path] : wish.requests) {
    lines->push_back("        - allow: {method: '" + method + "', path: '" + EscapePattern(path) +
                     "'}");
  }
}

// "allow_api_github_com_443", as OpenShell names the rules it makes itself.
std::string WishKey(const std::string& host, uint16_t port) {
  std::string key = "allow_";
  for (char c : host) {
    if (c == '.' || c == '-') c = '_';
    bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    if (plain) key.push_back(c);
  }
  return key + "_" + std::to_string(port);
}

}  // namespace

bool IsHopeless(std::string_view host) {
  if (host.empty() || host == "localhost" || host == "metadata.google.internal") return true;
  std::optional<Address> address = ParseAddress(host);
  if (address) return ClassifyAddress(*address) == AddressClass::kAlwaysBlocked;
  return !HostFault(host).empty() || IsHostPattern(host);
}

std::vector<Wish> CollectWishes(const std::vector<Denial>& denials) {
  std::map<std::tuple<std::string, uint16_t, std::string>, Wish> by_binary;
  size_t taken = 0;
  for (const Denial& denial : denials) {
    std::string host = CanonicalHost(denial.host);
    bool plain =
        IsPlain(host) && IsPlain(denial.method) && IsPlain(denial.path) && IsPlain(denial.binary);
    if (IsHopeless(host) || denial.port == 0 || !plain) continue;
    if (++taken > kDenialsMax) break;
    Wish& wish = by_binary[{host, denial.port, denial.binary}];
    wish.host = host;
    wish.port = denial.port;
    if (denial.method.empty()) {
      wish.connection = true;
    } else {
      wish.requests.insert({denial.method, denial.path.empty() ? "/" : denial.path});
    }
    if (!denial.binary.empty()) wish.binaries.insert(denial.binary);
  }
  std::vector<Wish> wishes;
  for (auto& [place, wish] : by_binary) {
    auto same = [&wish = wish](const Wish& other) {
      return other.host == wish.host && other.port == wish.port &&
             other.requests == wish.requests && other.connection == wish.connection &&
             other.binaries.empty() == wish.binaries.empty();
    };
    auto known = std::find_if(wishes.begin(), wishes.end(), same);
    if (known == wishes.end()) {
      wishes.push_back(std::move(wish));
    } else {
      known->binaries.insert(wish.binaries.begin(), wish.binaries.end());
    }
  }
  return wishes;
}

std::string FreeKey(const Wish& wish, const std::set<std::string>& taken) {
  std::string key = WishKey(wish.host, wish.port);
  std::string free = key;
  for (int i = 2; taken.contains(free); ++i) free = key + "_" + std::to_string(i);
  return free;
}

std::vector<std::string> WishLines(const std::string& key, const Wish& wish,
                                   const SharedTraits& traits) {
  std::vector<std::string> lines = {key + ":", "  endpoints:", "    - host: '" + wish.host + "'",
                                    "      port: " + std::to_string(wish.port)};
  std::optional<Address> address = ParseAddress(wish.host);
  if (address && ClassifyAddress(*address) == AddressClass::kInternal) {
    lines.emplace_back("      # A private address: be sure that the agent should reach it.");
  }
  AppendTraits(traits, &lines);
  AppendRules(wish, &lines);
  lines.emplace_back("  binaries:");
  if (wish.binaries.empty()) lines.emplace_back("    - path: '/**'  # The program is not known.");
  for (const std::string& binary : wish.binaries) lines.push_back("    - path: '" + binary + "'");
  return lines;
}

}  // namespace policy
