// SPDX-License-Identifier: Apache-2.0
#include "policy/model/host_pattern.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ascii.h"
#include "codec/glob/glob.h"
#include "codec/text/punycode.h"
#include "policy/model/destination.h"

namespace policy {
namespace {

constexpr size_t kHostBytesMax = 253;  // RFC 1035, 2.3.4, as text.
constexpr size_t kLabelBytesMax = 63;

std::vector<std::string_view> Labels(std::string_view host) {
  std::vector<std::string_view> labels;
  while (true) {
    size_t dot = host.find('.');
    labels.push_back(host.substr(0, dot));
    if (dot == std::string_view::npos) return labels;
    host.remove_prefix(dot + 1);
  }
}

bool IsHostByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

std::string PatternFault(std::string_view host) {
  if (host == "*" || host == "**") return "matches all hosts";
  std::vector<std::string_view> labels = Labels(host);
  for (std::string_view label : labels) {
    if (label.empty()) return "has an empty label";
  }
  if (labels.size() <= 2) return "is a wildcard over a top-level domain";
  if (labels[0].find("**") != std::string_view::npos && labels[0] != "**") {
    return "mixes '**' with other text in its first label";
  }
  for (size_t i = 1; i < labels.size(); ++i) {
    if (labels[i].find("**") != std::string_view::npos) {
      return "has '**' outside its first label";
    }
    if (labels[i].find('*') != std::string_view::npos && labels[i] != "*") {
      return "has '*' in a later label";
    }
  }
  Result<codec::Glob> glob = codec::Glob::Parse(host, '.');
  return glob.ok() ? "" : glob.error().what;
}

// May one text match both labels? Only '*' and letters are compared; the rest of the pattern
// language counts as a match.
bool LabelsOverlap(std::string_view first, std::string_view second) {
  constexpr std::string_view kHard = "?[]{}\\";
  if (first.find_first_of(kHard) != std::string_view::npos ||
      second.find_first_of(kHard) != std::string_view::npos) {
    return true;
  }
  size_t width = second.size() + 1;
  std::vector<uint8_t> table((first.size() + 1) * width, 0);
  auto cell = [&](size_t i, size_t j) -> uint8_t& { return table[i * width + j]; };
  for (size_t i = first.size() + 1; i-- > 0;) {
    for (size_t j = second.size() + 1; j-- > 0;) {
      bool first_star = i < first.size() && first[i] == '*';
      bool second_star = j < second.size() && second[j] == '*';
      bool both = i < first.size() && j < second.size();
      bool fits = i == first.size() && j == second.size();
      if (first_star) fits = fits || cell(i + 1, j) != 0 || (both && cell(i, j + 1) != 0);
      if (second_star) fits = fits || cell(i, j + 1) != 0 || (both && cell(i + 1, j) != 0);
      if (both && first[i] == second[j]) fits = fits || cell(i + 1, j + 1) != 0;
      cell(i, j) = fits ? 1 : 0;
    }
  }
  return cell(0, 0) != 0;
}

// Patterns label by label; "**" stands for one or more labels.
bool PatternsOverlap(const std::vector<std::string_view>& first,
                     const std::vector<std::string_view>& second) {
  size_t width = second.size() + 1;
  std::vector<uint8_t> table((first.size() + 1) * width, 0);
  auto cell = [&](size_t i, size_t j) -> uint8_t& { return table[i * width + j]; };
  cell(first.size(), second.size()) = 1;
  for (size_t i = first.size(); i-- > 0;) {
    for (size_t j = second.size(); j-- > 0;) {
      bool first_deep = first[i] == "**";
      bool second_deep = second[j] == "**";
      if (!first_deep && !second_deep && !LabelsOverlap(first[i], second[j])) continue;
      // Both take this label; a "**" may then take the other's next one too.
      bool fits = cell(i + 1, j + 1) != 0 || (first_deep && cell(i, j + 1) != 0) ||
                  (second_deep && cell(i + 1, j) != 0);
      cell(i, j) = fits ? 1 : 0;
    }
  }
  return cell(0, 0) != 0;
}

// Below these anyone gets a name: the usual second levels of countries, and where sites are hosted.
bool IsPublicSuffix(std::string_view domain) {
  constexpr std::string_view kSecondLevels =
      " ac co com edu gen gob gov gv ind ltd me mil ne net nom or org plc ";
  constexpr std::string_view kHosting =
      " a.run.app amazonaws.com appspot.com azureedge.net azurewebsites.net blob.core.windows.net "
      "blogspot.com cloudapp.net cloudfront.net cloudfunctions.net firebaseapp.com fly.dev "
      "github.io gitlab.io herokuapp.com netlify.app ngrok-free.app ngrok.app ngrok.io "
      "onrender.com pages.dev r2.dev readthedocs.io run.app s3.amazonaws.com surge.sh "
      "trafficmanager.net trycloudflare.com vercel.app web.app web.core.windows.net workers.dev ";
  auto lists = [](std::string_view names, std::string_view name) {
    return names.find(" " + std::string(name) + " ") != std::string_view::npos;
  };
  std::vector<std::string_view> labels = Labels(domain);
  bool country =
      labels.size() == 2 && labels[1].size() == 2 && lists(kSecondLevels, labels.front());
  return country || lists(kHosting, domain);
}

bool CoversPublicSuffix(std::string_view host) {
  size_t dot = host.find('.');
  return dot != std::string_view::npos && IsHostPattern(host.substr(0, dot)) &&
         IsPublicSuffix(host.substr(dot + 1));
}

}  // namespace

bool IsHostPattern(std::string_view host) { return host.find('*') != std::string_view::npos; }

std::string CanonicalHost(std::string_view host) {
  std::string canonical = ascii::LowerCase(ascii::Trimmed(host));
  if (canonical.size() > 1 && canonical.back() == '.') canonical.pop_back();
  if (canonical.size() > 2 && canonical.front() == '[' && canonical.back() == ']') {
    std::optional<Address> bracketed = ParseAddress(canonical.substr(1, canonical.size() - 2));
    if (bracketed) return RenderAddress(*bracketed);
  }
  std::optional<Address> address = ParseAddress(canonical);
  return address ? RenderAddress(*address) : canonical;
}

std::string BracketedHost(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

std::string HostFault(std::string_view host) {
  if (host.size() > kHostBytesMax) return "is longer than 253 bytes";
  if (host.find("://") != std::string_view::npos) return "is a URL";
  for (char c : host) {
    if (static_cast<uint8_t>(c) <= 0x20 || c == 0x7F) return "contains a space";
    if (c == '/' || c == '@') return "contains '" + std::string(1, c) + "'";
  }
  std::optional<std::string> name = codec::PunycodeHost(host);
  if (name) return "is not ASCII; in DNS it is '" + *name + "'";
  if (IsHostPattern(host)) return PatternFault(host);
  if (ParseAddress(host)) return "";
  for (char c : host) {
    if (!IsHostByte(c)) return "contains '" + std::string(1, c) + "'";
  }
  for (std::string_view label : Labels(host)) {
    if (label.empty()) return "has an empty label";
    if (label.size() > kLabelBytesMax) return "has a label longer than 63 bytes";
  }
  return "";
}

std::string TcpHostFault(std::string_view written) {
  if (written.empty()) return "is missing";
  if (ParseAddress(written)) return "is an address; 'protocol: tcp' needs a name";
  if (written.front() == '[') return "is an address; 'protocol: tcp' needs a name";
  if (written.back() == '.') return "ends with a dot";
  std::string host = ascii::LowerCase(written);
  if (IsHostPattern(host)) return HostFault(host);
  for (std::string_view label : Labels(host)) {
    if (label.empty()) return "has an empty label";
    if (label.front() == '-' || label.back() == '-') return "has a label that ends in '-'";
    if (label.find('_') != std::string_view::npos) return "contains '_'";
  }
  return HostFault(host);
}

std::string HostWarning(std::string_view host) {
  std::optional<Address> address = ParseAddress(host);
  // Many programs read these as an address, too: 127.1, 2130706433.
  in_addr numbers;
  if (!address && ::inet_aton(std::string(host).c_str(), &numbers) != 0) {
    char dotted[INET_ADDRSTRLEN] = {};
    address = ParseAddress(::inet_ntop(AF_INET, &numbers, dotted, sizeof dotted));
  }
  std::string plain = address ? RenderAddress(*address) : "";
  bool loopback = host == "localhost" || host.ends_with(".localhost") ||
                  plain.starts_with("127.") || plain == "::1" || plain == "0.0.0.0" ||
                  plain == "::";
  if (CoversPublicSuffix(host)) {
    return "host '" + std::string(host) +
           "' matches names that anyone can register; list the names you need";
  }
  if (!loopback && address && ClassifyAddress(*address) == AddressClass::kAlwaysBlocked) {
    return "host '" + std::string(host) +
           "' can never be reached: no policy can allow link-local or cloud metadata addresses";
  }
  if (!loopback) return "";
  return "host '" + std::string(host) +
         "' refers to the sandbox itself; write 'host.openshell.internal' for a service on the "
         "host";
}

bool HostMatches(std::string_view pattern, std::string_view host) {
  if (host.find('\0') != std::string_view::npos) return false;
  if (!IsHostPattern(pattern)) return pattern == host;
  return codec::GlobMatches(pattern, host, '.');
}

bool HostsOverlap(std::string_view first, std::string_view second) {
  if (first.empty() || second.empty()) return true;  // Any host.
  if (!IsHostPattern(first)) return HostMatches(second, first);
  if (!IsHostPattern(second)) return HostMatches(first, second);
  // A group may hide dots from the split into labels.
  if (first.find('{') != std::string_view::npos || second.find('{') != std::string_view::npos) {
    return true;
  }
  return PatternsOverlap(Labels(first), Labels(second));
}

}  // namespace policy
