// SPDX-License-Identifier: Apache-2.0
#include "advise/suggestion.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

#include "policy/model/destination.h"
#include "policy/model/host_pattern.h"
#include "policy/model/protocol.h"

namespace advise {
namespace {

constexpr size_t kDenialsMax = 200;    // More would be noise.
constexpr size_t kTextBytesMax = 512;  // The bytes of a host, path or binary in the file.

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

void AddOnce(const std::vector<std::string>& texts, std::vector<std::string>* list) {
  for (const std::string& text : texts) {
    if (std::find(list->begin(), list->end(), text) == list->end()) list->push_back(text);
  }
}

// Appends what the endpoint has beside host, port and rules.
void AppendTraits(const Suggestion& suggestion, const SharedTraits& traits,
                  std::vector<std::string>* lines) {
  if (!suggestion.path.empty())
    lines->push_back("      path: '" + EscapePattern(suggestion.path) + "'");
  std::string shared(policy::ProtocolName(traits.protocol));
  // An address has no protocol for raw connections: it is opened as a connection like any other.
  bool address = suggestion.protocol == kRawConnection && policy::ParseAddress(suggestion.host);
  if (!address) {
    lines->push_back("      protocol: " +
                     (suggestion.protocol.empty() ? shared : suggestion.protocol));
  }
  if (traits.skip_tls) lines->emplace_back("      tls: skip");
  if (traits.audit) lines->emplace_back("      enforcement: audit");
  if (traits.allow_encoded_slash) lines->emplace_back("      allow_encoded_slash: true");
  if (traits.allowed_ips.empty()) return;
  lines->emplace_back("      allowed_ips:");
  for (const std::string& entry : traits.allowed_ips) lines->push_back("        - '" + entry + "'");
}

void AppendRules(const Suggestion& suggestion, std::vector<std::string>* lines) {
  const EndpointAddition& addition = suggestion.addition;
  if (suggestion.protocol == kRawConnection) {
    lines->emplace_back("      # The client speaks no HTTP: everything on the connection passes.");
    return;
  }
  if (suggestion.requests.empty() && addition.rules.empty()) {
    lines->emplace_back(
        "      # Only the connection was seen, not its requests, so read-only access is "
        "suggested.");
    lines->emplace_back("      access: read-only");
    return;
  }
  if (!addition.queries.empty()) {
    lines->emplace_back("      persisted_queries: allow_registered");
    lines->emplace_back(
        "      # It is unknown what they do: replace this with their real types and root fields.");
    lines->emplace_back("      graphql_persisted_queries:");
  }
  for (const std::string& query : addition.queries) lines->push_back("        " + query);
  lines->emplace_back("      rules:");
  if (suggestion.connection) {
    lines->emplace_back("        # Some connections were refused before their requests were seen.");
  }
  for (const auto& [method, path] : suggestion.requests) {
    lines->push_back("        - allow: " + RequestRule(method, path));
  }
  for (const std::string& rule : addition.rules) lines->push_back("        - allow: " + rule);
}

// "allow_api_github_com_443", as OpenShell names the rules it makes itself.
std::string SuggestionKey(const std::string& host, uint16_t port) {
  std::string key = "allow_";
  for (char c : host) {
    if (c == '.' || c == '-') c = '_';
    bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    if (plain) key.push_back(c);
  }
  return key + "_" + std::to_string(port);
}

// A suggestion for what `denial` was refused, or nothing when no rule is for just that.
std::optional<Suggestion> SuggestionFor(const Denial& denial, const std::string& host) {
  std::vector<std::string_view> known = policy::ProtocolNames();
  if (!denial.protocol.empty() &&
      std::find(known.begin(), known.end(), denial.protocol) == known.end()) {
    return std::nullopt;
  }
  Suggestion suggestion;
  suggestion.host = host;
  suggestion.port = denial.port;
  suggestion.protocol = denial.protocol;
  std::string path = denial.path.empty() ? "/" : denial.path;
  const bool raw = IsRawConnection(denial);
  if (raw) suggestion.protocol = kRawConnection;
  if (!denial.protocol.empty() && !raw) suggestion.path = path;
  if (!denial.operations.empty()) {
    std::optional<EndpointAddition> addition = AdditionFor(denial);
    if (!addition) return std::nullopt;
    suggestion.addition = std::move(*addition);
  } else if (denial.method.empty()) {
    suggestion.connection = true;
  } else if (denial.protocol.empty() || denial.protocol == "websocket") {
    suggestion.requests.insert({denial.method, path});
  } else {
    return std::nullopt;
  }
  // A message comes behind a handshake.
  if (denial.protocol == "websocket") suggestion.requests.insert({"GET", path});
  if (!denial.binary.empty()) suggestion.binaries.insert(denial.binary);
  suggestion.origin = {denial};
  return suggestion;
}

bool SameButPrograms(const Suggestion& a, const Suggestion& b) {
  return a.host == b.host && a.port == b.port && a.protocol == b.protocol && a.path == b.path &&
         a.requests == b.requests && a.connection == b.connection &&
         a.addition.rules == b.addition.rules && a.binaries.empty() == b.binaries.empty();
}

}  // namespace

// Denials come from what the agent did: nothing of them may break out of a line of YAML.
bool IsPlain(std::string_view text) {
  if (text.size() > kTextBytesMax) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= 0x20 && c < 0x7F && c != '\'' && c != '\\';
  });
}

std::string RequestRule(const std::string& method, const std::string& path) {
  return "{method: '" + method + "', path: '" + EscapePattern(path) + "'}";
}

bool MustNotBeSuggested(std::string_view host) {
  // Metadata services by name, and the sandbox and its gateway, which are not destinations.
  static constexpr std::string_view kNever[] = {"localhost",
                                                "sandbox",
                                                "metadata",
                                                "metadata.google.internal",
                                                "metadata.goog",
                                                "instance-data",
                                                "instance-data.ec2.internal",
                                                "metadata.azure.internal",
                                                "10.200.0.1"};
  if (host.empty() || host.ends_with(".localhost")) return true;
  if (std::find(std::begin(kNever), std::end(kNever), host) != std::end(kNever)) return true;
  std::optional<policy::Address> address = policy::ParseAddress(host);
  if (address) return policy::ClassifyAddress(*address) == policy::AddressClass::kAlwaysBlocked;
  return !policy::HostFault(host).empty() || policy::IsHostPattern(host);
}

std::vector<Suggestion> CollectSuggestions(const std::vector<Denial>& denials) {
  // The suggestions by place, protocol, path and program.
  std::map<std::tuple<std::string, uint16_t, std::string, std::string, std::string>, Suggestion>
      wanted;
  size_t taken = 0;
  for (const Denial& denial : denials) {
    std::string host = policy::CanonicalHost(denial.host);
    bool plain =
        IsPlain(host) && IsPlain(denial.method) && IsPlain(denial.path) && IsPlain(denial.binary);
    if (MustNotBeSuggested(host) || denial.port == 0 || !plain) continue;
    std::optional<Suggestion> one = SuggestionFor(denial, host);
    if (!one) continue;
    if (++taken > kDenialsMax) break;
    auto [at, first] = wanted.try_emplace(
        {host, denial.port, denial.binary, one->protocol, one->path}, std::move(*one));
    if (first) continue;
    Suggestion& suggestion = at->second;
    suggestion.connection |= one->connection;
    suggestion.requests.merge(one->requests);
    AddOnce(one->addition.rules, &suggestion.addition.rules);
    AddOnce(one->addition.queries, &suggestion.addition.queries);
    suggestion.origin.push_back(denial);
  }
  std::vector<Suggestion> suggestions;
  for (auto& [place, suggestion] : wanted) {
    auto known = std::find_if(suggestions.begin(), suggestions.end(),
                              [&suggestion = suggestion](const Suggestion& other) {
                                return SameButPrograms(suggestion, other);
                              });
    if (known == suggestions.end()) {
      suggestions.push_back(std::move(suggestion));
    } else {
      known->binaries.merge(suggestion.binaries);
      known->origin.insert(known->origin.end(), suggestion.origin.begin(), suggestion.origin.end());
    }
  }
  return suggestions;
}

std::string FreeKey(const Suggestion& suggestion, const std::set<std::string>& taken) {
  std::string key = SuggestionKey(suggestion.host, suggestion.port);
  std::string free = key;
  for (int i = 2; taken.contains(free); ++i) free = key + "_" + std::to_string(i);
  return free;
}

std::vector<std::string> SuggestionLines(const std::string& key, const Suggestion& suggestion,
                                         const SharedTraits& traits) {
  std::vector<std::string> lines = {"# It was " + DescribeOrigin(suggestion.origin) + ".",
                                    key + ":",
                                    "  endpoints:", "    - host: '" + suggestion.host + "'",
                                    "      port: " + std::to_string(suggestion.port)};
  std::optional<policy::Address> address = policy::ParseAddress(suggestion.host);
  if (address && policy::ClassifyAddress(*address) == policy::AddressClass::kInternal) {
    lines.emplace_back("      # A private address: make sure that the agent should reach it.");
  }
  AppendTraits(suggestion, traits, &lines);
  AppendRules(suggestion, &lines);
  lines.emplace_back("  binaries:");
  if (suggestion.binaries.empty())
    lines.emplace_back("    - path: '/**'  # The program is unknown.");
  for (const std::string& binary : suggestion.binaries)
    lines.push_back("    - path: '" + binary + "'");
  return lines;
}

}  // namespace advise
