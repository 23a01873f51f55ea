// SPDX-License-Identifier: Apache-2.0
#include "policy/suggest_patch.h"

#include <algorithm>
#include <set>
#include <utility>

#include "codec/glob.h"
#include "codec/yaml.h"
#include "policy/decide.h"
#include "policy/host_pattern.h"
#include "policy/line_insertion.h"
#include "policy/protocol.h"
#include "policy/wish.h"

namespace policy {
namespace {

using codec::YamlKind;
using codec::YamlNode;

constexpr size_t kDenialsMax = 200;  // Each is tried by reading the whole file.
constexpr std::string_view kComment =
    "# Refused in a run. An agent that was misled asks for what misled it wants: read this.";

bool IsAllowed(const Policy& policy, const Denial& denial) {
  Caller caller;
  caller.binary = denial.binary.empty() ? "/unknown" : denial.binary;
  if (!DecideConnection(policy, denial.host, denial.port, caller).allowed) return false;
  if (denial.method.empty()) return true;
  std::string path = denial.path.empty() ? "/" : denial.path;
  return DecideRequest(policy, denial.host, denial.port, caller, {denial.method, path, ""}).allowed;
}

std::string Describe(const Denial& denial) {
  std::string place = denial.host + ":" + std::to_string(denial.port);
  std::string what = denial.method.empty() ? "connecting to " + place
                                           : denial.method + " " + denial.path + " at " + place;
  return what + (denial.binary.empty() ? "" : " by " + denial.binary);
}

// Where to add to a block of YAML, and how far its entries are indented.
struct Place {
  size_t after = 0;         // Lines of the file before the addition.
  std::string indentation;  // Of an entry of the block.
  std::string head;         // The block's own line, when the file has none.
};

class Patcher {
 public:
  Patcher(const std::string& text, const ParseContext& context)
      : text_(text), lines_(SplitLines(text)), context_(context) {}

  Result<SuggestedPatch> Suggest(const std::vector<Denial>& denials) {
    codec::YamlLimits limits;
    YamlNode root = TRY(codec::ParseYaml(text_, context_.file, limits));
    parsed_ = TRY(ParsePolicy(text_, context_));
    place_ = TRY(FindPlace(root, parsed_.short_form ? "endpoints" : "network_policies"));
    insertion_.after = place_.after;
    std::vector<Denial> open;
    for (const Denial& denial : denials) {
      bool known = std::find(open.begin(), open.end(), denial) != open.end();
      if (known || IsAllowed(parsed_.policy, denial) || NoteJudgedByContent(denial)) continue;
      open.push_back(denial);
    }
    if (parsed_.short_form) {
      AddLines(open);
    } else {
      AddPolicies(open);
    }
    NoteRest(open);
    if (!insertion_.lines.empty()) {
      suggested_.text = ApplyInsertion(text_, insertion_);
      suggested_.patch = RenderInsertion(context_.file, text_, insertion_);
    }
    return std::move(suggested_);
  }

 private:
  // Records say nothing of what a body carried, and a rule for its path would let every call pass.
  bool NoteJudgedByContent(const Denial& denial) {
    std::string path = denial.path.empty() ? "/" : denial.path;
    for (const NetworkPolicy& network : parsed_.policy.network) {
      for (const Endpoint& endpoint : network.endpoints) {
        bool by_content = endpoint.protocol == Protocol::kGraphql ||
                          endpoint.protocol == Protocol::kJsonRpc ||
                          endpoint.protocol == Protocol::kMcp || CarriesGraphql(endpoint);
        if (denial.method.empty() || !by_content || !IsAt(endpoint, denial.host, denial.port) ||
            !codec::PathSelectorMatches(endpoint.path, path)) {
          continue;
        }
        suggested_.notes.push_back(Describe(denial) +
                                   ": judged by what it carries: add a rule to " +
                                   codec::Locate(context_.file, endpoint.at));
        return true;
      }
    }
    return false;
  }

  static bool IsAt(const Endpoint& endpoint, const std::string& host, uint16_t port) {
    return std::find(endpoint.ports.begin(), endpoint.ports.end(), port) != endpoint.ports.end() &&
           (endpoint.host.empty() || HostMatches(endpoint.host, host));
  }

  Result<Place> FindPlace(const YamlNode& root, std::string_view key) const {
    Place place{lines_.size(), "  ", std::string(key) + ":"};
    for (size_t i = 0; i < root.entries.size(); ++i) {
      const codec::YamlEntry& entry = root.entries[i];
      if (entry.key != key) continue;
      place.head.clear();
      const YamlNode& block = entry.value;
      bool braces = block.kind != YamlKind::kNull && CharAt(block.at) != '-' &&
                    std::string_view("[{").find(CharAt(block.at)) != std::string_view::npos;
      if (braces) {
        return codec::InvalidAt(context_.file, entry.at,
                                "'" + entry.key + "' is written in brackets: no line can be added",
                                "write one entry on each line");
      }
      bool last = i + 1 == root.entries.size();
      place.after =
          EndOfBlock(last ? lines_.size() : static_cast<size_t>(root.entries[i + 1].at.line) - 1);
      if (!block.items.empty()) place.indentation = IndentationOf(block.items.back().at);
      if (!block.entries.empty()) place.indentation = IndentationOf(block.entries.back().at);
    }
    return place;
  }

  // `line` without the blank lines and comments before it.
  size_t EndOfBlock(size_t line) const {
    auto says_nothing = [&](const std::string& text) {
      size_t first = text.find_first_not_of(" \t\r");
      return first == std::string::npos || text[first] == '#';
    };
    while (line > 0 && says_nothing(lines_[line - 1])) --line;
    return line;
  }

  char CharAt(codec::Position at) const {
    size_t line = static_cast<size_t>(at.line);
    size_t column = static_cast<size_t>(at.column);
    bool inside =
        line >= 1 && line <= lines_.size() && column >= 1 && column <= lines_[line - 1].size();
    return inside ? lines_[line - 1][column - 1] : '\0';
  }

  std::string IndentationOf(codec::Position at) const {
    const std::string& line = lines_[static_cast<size_t>(at.line) - 1];
    return line.substr(0, std::min(line.find_first_not_of(' '), line.size()));
  }

  // Keeps `lines` when the file with them loads and lets some of the denials pass.
  bool Try(const std::vector<std::string>& lines, const std::vector<Denial>& open) {
    LineInsertion candidate = insertion_;
    if (candidate.lines.empty()) {
      if (!place_.head.empty()) candidate.lines.push_back(place_.head);
      candidate.lines.push_back(place_.indentation + std::string(kComment));
    }
    for (const std::string& line : lines) candidate.lines.push_back(place_.indentation + line);
    Result<ParsedPolicy> parsed = ParsePolicy(ApplyInsertion(text_, candidate), context_);
    if (!parsed.ok()) return false;
    bool helps = std::any_of(open.begin(), open.end(), [&](const Denial& denial) {
      return !IsAllowed(parsed_.policy, denial) && IsAllowed(parsed.value().policy, denial);
    });
    if (!helps) return false;
    insertion_ = std::move(candidate);
    parsed_ = std::move(parsed).value();
    return true;
  }

  // The short form: one line per host and port, of the least access that does.
  void AddLines(const std::vector<Denial>& open) {
    std::vector<Denial> wide_first = open;
    std::stable_sort(wide_first.begin(), wide_first.end(),
                     [](const Denial& a, const Denial& b) { return Width(a) > Width(b); });
    for (const Denial& denial : wide_first) {
      if (IsAllowed(parsed_.policy, denial)) continue;
      std::string line = SuggestLine(denial);
      if (!line.empty()) (void)Try({"- \"" + line + "\"  # " + PlainMethod(denial)}, {denial});
    }
  }

  static int Width(const Denial& denial) {
    std::string line = SuggestLine(denial);
    if (line.ends_with(":full")) return 2;
    return line.ends_with(":read-write") ? 1 : 0;
  }

  static std::string PlainMethod(const Denial& denial) {
    return denial.method.empty() ? "a connection was refused" : denial.method + " was refused";
  }

  // The full form: one policy per wish, each of what an addition helps.
  void AddPolicies(const std::vector<Denial>& open) {
    std::vector<Denial> helped;
    const Patcher start = *this;
    for (const Denial& denial : open) {
      Patcher alone = start;
      alone.AddWishes({denial});
      if (!alone.insertion_.lines.empty()) helped.push_back(denial);
      if (helped.size() == kDenialsMax) break;
    }
    AddWishes(helped);
  }

  void AddWishes(const std::vector<Denial>& open) {
    for (const Wish& wish : CollectWishes(open)) {
      std::set<std::string> taken;
      for (const NetworkPolicy& network : parsed_.policy.network) taken.insert(network.key);
      (void)Try(WishLines(FreeKey(wish, taken), wish, TraitsAt(wish.host, wish.port)), open);
    }
  }

  // Of the endpoints that are there for this host and port.
  SharedTraits TraitsAt(const std::string& host, uint16_t port) const {
    SharedTraits traits;
    for (const NetworkPolicy& network : parsed_.policy.network) {
      for (const Endpoint& endpoint : network.endpoints) {
        if (!IsAt(endpoint, host, port)) continue;
        if (endpoint.tls == TlsMode::kSkip) traits.skip_tls = true;
        if (traits.allowed_ips.empty()) traits.allowed_ips = endpoint.allowed_ips;
        bool requests =
            endpoint.protocol == Protocol::kRest || endpoint.protocol == Protocol::kWebSocket;
        if (!requests || !endpoint.path.empty()) continue;
        traits.protocol = endpoint.protocol;
        traits.audit = endpoint.enforcement == Enforcement::kAudit;
        traits.allow_encoded_slash = endpoint.allow_encoded_slash;
      }
    }
    return traits;
  }

  void NoteRest(const std::vector<Denial>& open) {
    for (const Denial& denial : open) {
      if (IsAllowed(parsed_.policy, denial)) continue;
      Caller caller;
      caller.binary = denial.binary;
      std::string path = denial.path.empty() ? "/" : denial.path;
      Decision decision = denial.method.empty()
                              ? DecideConnection(parsed_.policy, denial.host, denial.port, caller)
                              : DecideRequest(parsed_.policy, denial.host, denial.port, caller,
                                              {denial.method, path, ""});
      std::string where =
          decision.at.line > 0 ? " (" + codec::Locate(context_.file, decision.at) + ")" : "";
      std::string reason = decision.reason.substr(0, decision.reason.find(". SYMLINK HINT"));
      suggested_.notes.push_back(Describe(denial) + ": no addition helps: " + reason + where);
    }
  }

  const std::string& text_;
  std::vector<std::string> lines_;
  const ParseContext& context_;
  ParsedPolicy parsed_;
  Place place_;
  LineInsertion insertion_;
  SuggestedPatch suggested_;
};

}  // namespace

Result<SuggestedPatch> SuggestPatch(const std::string& text, const ParseContext& context,
                                    const std::vector<Denial>& denials) {
  return Patcher(text, context).Suggest(denials);
}

}  // namespace policy
