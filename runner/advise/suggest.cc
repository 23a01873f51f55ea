// SPDX-License-Identifier: Apache-2.0
#include "advise/suggest.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "advise/explain.h"
#include "advise/suggestion.h"
#include "base/join.h"
#include "codec/text/neutral.h"
#include "policy/decide/compiled.h"
#include "policy/decide/hosted_decide.h"
#include "policy/load/parse.h"
#include "policy/model/destination.h"
#include "policy/model/host_pattern.h"

namespace advise {
namespace {

bool IsReading(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

// Returns what the endpoint needs, as YAML on one line.
std::string AdditionLine(const EndpointAddition& addition) {
  std::string rules = "rules: [" + RuleList(addition.rules) + "]";
  if (addition.queries.empty()) return rules;
  return "{persisted_queries: allow_registered, graphql_persisted_queries: {" +
         Join(addition.queries) + "}, " + rules + "}";
}

// Turns the look-up of a name into the connection that follows it, most likely TLS.
Denial AsConnection(Denial denial) {
  denial.method.clear();
  denial.port = 443;
  return denial;
}

std::string Times(int64_t count, const char* one, const char* many) {
  return count == 1 ? one : std::to_string(count) + " " + many;
}

constexpr size_t kProgramsShown = 5;
constexpr size_t kAncestorsShown = 3;
constexpr size_t kProgramBytesMax = 200;

std::string DescribeProgram(const Denial& denial) {
  if (denial.binary.empty()) return "an unknown program";
  std::string text = codec::NeutralLine(denial.binary, kProgramBytesMax);
  for (size_t i = 0; i < std::min(denial.ancestors.size(), kAncestorsShown); ++i) {
    text += (i == 0 ? " (from " : ", ") + codec::NeutralLine(denial.ancestors[i], kProgramBytesMax);
  }
  return denial.ancestors.empty() ? text : text + ")";
}

// Returns whether the policy `text` would allow what `denial` was refused.
bool Helps(const std::string& text, const Denial& denial) {
  policy::ParseContext context;
  context.file = "suggestion";
  Result<policy::ParsedPolicy> parsed = policy::ParsePolicy(text, context);
  if (!parsed.ok()) return false;
  const std::string place =
      policy::BracketedHost(policy::CanonicalHost(denial.host)) + ":" + std::to_string(denial.port);
  Question question;
  question.url = place;
  if (!denial.method.empty()) {
    constexpr uint16_t kHttpPort = 80;
    question.method = denial.method;
    question.url = (denial.port == kHttpPort ? "http://" : "https://") + place;
    question.url += denial.path.starts_with('/') ? denial.path : "/";
  }
  Result<Explanation> explained = Explain(parsed.value(), question);
  return explained.ok() && explained.value().allowed;
}

// Returns the rule of the full form for a request that writes, or a message.
std::string WritingLine(const Denial& denial, const std::string& host) {
  const std::string path = denial.path.empty() ? "/" : denial.path;
  if (!IsPlain(denial.method) || !IsPlain(path)) return {};
  std::vector<std::string> rules = {RequestRule(denial.method, path)};
  const bool websocket = denial.protocol == "websocket";
  // A message comes behind a handshake.
  if (websocket) rules.insert(rules.begin(), RequestRule("GET", path));
  std::string line = "rules: [" + RuleList(rules) + "]";
  const std::string policy =
      "version: 1\nnetwork_policies:\n  a:\n    endpoints:\n      - {host: '" + host +
      "', port: " + std::to_string(denial.port) + ", protocol: rest, " + line +
      "}\n    binaries: [{path: '/**'}]\n";
  return websocket || Helps(policy, denial) ? line : std::string();
}

}  // namespace

bool IsRawConnection(const Denial& denial) {
  // SSH, mail, databases, queues and git's own protocol, before they have said a word.
  static constexpr auto kPorts =
      std::to_array<uint16_t>({21,   22,   25,   110,  143,  389,  465,  587,  636,  993,   995,
                               1433, 1521, 3306, 5432, 5672, 6379, 9042, 9092, 9418, 11211, 27017});
  if (denial.protocol == kRawConnection) return true;
  return denial.protocol.empty() && denial.method.empty() &&
         std::find(kPorts.begin(), kPorts.end(), denial.port) != kPorts.end();
}

std::vector<Denial> WithoutNames(const std::vector<Denial>& denials) {
  std::set<std::string> reached;
  for (const Denial& denial : denials) {
    if (denial.method != kNameAsked) reached.insert(policy::CanonicalHost(denial.host));
  }
  std::vector<Denial> attempts;
  for (const Denial& denial : denials) {
    if (denial.method != kNameAsked) {
      attempts.push_back(denial);
    } else if (!reached.contains(policy::CanonicalHost(denial.host))) {
      attempts.push_back(AsConnection(denial));
    }
  }
  return attempts;
}

std::string DescribeOrigin(const std::vector<Denial>& denials) {
  std::map<std::string, int64_t> programs;
  int64_t count = 0;
  int64_t runs = 1;
  for (const Denial& denial : denials) {
    programs[DescribeProgram(denial)] += denial.count;
    count += denial.count;
    runs = std::max(runs, denial.runs);
  }
  std::vector<std::pair<std::string, int64_t>> most(programs.begin(), programs.end());
  std::stable_sort(most.begin(), most.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text = "refused " + Times(count, "once", "times");
  if (runs > 1) text += " in " + std::to_string(runs) + " runs";
  for (size_t i = 0; i < std::min(most.size(), kProgramsShown); ++i) {
    text += (i == 0 ? ": " : "; ") + most[i].first;
    if (most.size() > 1) text += ", " + Times(most[i].second, "once", "times");
  }
  return most.size() > kProgramsShown ? text + "; and others" : text;
}

std::string SuggestLine(const Denial& denial) {
  if (denial.method == kNameAsked) return SuggestLine(AsConnection(denial));
  std::string host = policy::CanonicalHost(denial.host);
  if (denial.protocol == policy::kHostedProtocol) return policy::HostedLine(denial.operations);
  if (MustNotBeSuggested(host) || denial.port == 0) return {};
  if (!denial.operations.empty()) {
    std::optional<EndpointAddition> addition = AdditionFor(denial);
    return addition ? AdditionLine(*addition) : std::string();
  }
  if (IsRawConnection(denial)) {
    // Names alone can have that protocol; an address can be opened as a connection like any other.
    std::string suffix = policy::ParseAddress(host) ? "" : std::string("::") + kRawConnection;
    return policy::BracketedHost(host) + ":" + std::to_string(denial.port) + suffix;
  }
  bool websocket = denial.protocol == "websocket";
  if (!websocket && !denial.protocol.empty()) return {};  // Too much of it to know a rule.
  if (!denial.method.empty() && !IsReading(denial.method)) return WritingLine(denial, host);
  std::string line = policy::BracketedHost(host) + ":" + std::to_string(denial.port) +
                     ":read-only" + (websocket ? ":websocket" : "");
  const std::string policy = "defaults: none\nendpoints: [\"" + line + "\"]\n";
  return websocket || Helps(policy, denial) ? line : std::string();
}

bool IsRuleLine(std::string_view line) {
  return line.starts_with("rules: ") || line.starts_with('{') || line.starts_with("hosted_tools: ");
}

std::vector<std::string> SuggestLines(const std::vector<Denial>& denials) {
  auto place = [](const Denial& denial) {
    return std::tuple(policy::CanonicalHost(denial.host), denial.port, denial.protocol);
  };
  std::map<std::tuple<std::string, uint16_t, std::string>, std::string> reading;
  std::map<std::string, std::string> of_host;
  std::vector<std::string> lines;
  for (const Denial& denial : denials) {
    lines.push_back(denial.method == kNameAsked ? "" : SuggestLine(denial));
    if (lines.back().empty() || !denial.operations.empty()) continue;
    of_host.emplace(policy::CanonicalHost(denial.host), lines.back());
    if (!IsRuleLine(lines.back())) reading.emplace(place(denial), lines.back());
  }
  for (size_t i = 0; i < denials.size(); ++i) {
    const Denial& denial = denials[i];
    if (denial.method == kNameAsked) {
      auto found = of_host.find(policy::CanonicalHost(denial.host));
      lines[i] = found == of_host.end() ? SuggestLine(denial) : found->second;
    } else if (lines[i].empty() && denial.operations.empty() && IsReading(denial.method)) {
      auto found = reading.find(place(denial));
      if (found != reading.end()) lines[i] = found->second;
    }
  }
  return lines;
}

std::string SuggestPolicy(const std::vector<Denial>& denials) {
  std::vector<Suggestion> suggestions = CollectSuggestions(WithoutNames(denials));
  if (suggestions.empty()) return {};
  // Requests that write, or are judged by operation, have no line.
  std::set<std::string> lines;
  bool beyond = false;
  for (const Suggestion& suggestion : suggestions) {
    beyond = beyond || !suggestion.addition.rules.empty();
    if (!suggestion.addition.rules.empty()) continue;
    Denial denial{suggestion.host, suggestion.port, "", "", "", suggestion.protocol};
    if (suggestion.requests.empty()) lines.insert(SuggestLine(denial));
    for (const auto& [method, path] : suggestion.requests) {
      denial.method = method;
      denial.path = path;
      std::string line = SuggestLine(denial);
      beyond = beyond || IsRuleLine(line);
      if (!IsRuleLine(line)) lines.insert(std::move(line));
    }
  }
  lines.erase("");
  std::string out =
      "# Policies that would allow exactly what was refused. Review before you\n# "
      "paste. " +
      std::string(kSuggestionWarning) + "\n";
  if (!lines.empty()) {
    out +=
        "# A file with 'endpoints:' takes these lines instead; each lets all of its host be "
        "read:\n";
  }
  for (const std::string& line : lines) out += "#   - \"" + line + "\"\n";
  if (beyond) {
    out +=
        "# A list of 'endpoints:' has no line for a single request that writes. The form below "
        "does:\n"
        "# `agentic-ci policy export --to openshell` prints the file in it.\n";
  }
  out += "version: 1\nnetwork_policies:\n";
  std::set<std::string> taken;
  for (const Suggestion& suggestion : suggestions) {
    std::string key = FreeKey(suggestion, taken);
    taken.insert(key);
    for (const std::string& line : SuggestionLines(key, suggestion, {})) out += "  " + line + "\n";
  }
  return out;
}

}  // namespace advise
