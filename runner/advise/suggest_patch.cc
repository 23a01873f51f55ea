// SPDX-License-Identifier: Apache-2.0
#include "advise/suggest_patch.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "advise/endpoint_edit.h"
#include "advise/patched_text.h"
#include "advise/suggestion.h"
#include "base/join.h"
#include "codec/data/yaml.h"
#include "codec/glob/glob.h"
#include "codec/text/neutral.h"
#include "policy/decide/compiled.h"
#include "policy/decide/graphql_decide.h"
#include "policy/decide/hosted_decide.h"
#include "policy/decide/rpc_decide.h"
#include "policy/load/fields.h"
#include "policy/model/host_pattern.h"
#include "policy/model/protocol.h"

namespace advise {
namespace {

using codec::YamlKind;
using codec::YamlNode;

constexpr size_t kTriedMax = 200;  // Each is tried by reading the whole file.
constexpr int kEditsMax = 4;       // That one rule is written into.
constexpr std::string_view kComment =
    "# Refused in a run. Review this: each entry opens a way for data to leave, and a manipulated "
    "agent asks for what its attacker wants.";

constexpr const char* kRuleComment =
    "# Refused in a run. Review this: it opens a way for data to leave, for every program of this "
    "policy.";
constexpr const char* kQueryComment =
    "# It is unknown what a persisted query does: replace this with its real type and root fields.";

policy::Verdict DecideCarried(const policy::Route& route, const policy::HttpRequest& request,
                              const Denial& denial) {
  const policy::Endpoint* governing = route.GoverningEndpoint(request.path);
  if (governing == nullptr || denial.operations.empty()) return route.Decide(request);
  std::vector<codec::GraphqlOperation> operations;
  codec::JsonRpcRequest calls;
  for (const policy::Operation& one : denial.operations) {
    if (one.method.empty()) {
      operations.push_back(
          {one.operation_type, one.operation_name, one.fields, one.persisted_query});
    } else {
      calls.calls.push_back({one.method, one.tool});
    }
  }
  if (calls.calls.empty() &&
      (governing->protocol == policy::Protocol::kGraphql || policy::CarriesGraphql(*governing))) {
    return policy::DecideGraphql(route, request, operations);
  }
  bool rpc = governing->protocol == policy::Protocol::kJsonRpc ||
             governing->protocol == policy::Protocol::kMcp;
  return rpc && operations.empty() ? policy::DecideRpc(route, request, calls)
                                   : route.Decide(request);
}

// The gateway's verdict on the attempt.
struct Judgement {
  policy::Decision decision;
  // Set for a refusal that did not come from a deny rule: the endpoint that decided, if one did.
  std::optional<policy::Endpoint> endpoint;
};

Judgement Ask(const policy::Policy& policy, const Denial& denial) {
  policy::Caller caller;
  caller.binary = denial.binary.empty() ? "/unknown" : denial.binary;
  caller.ancestors = denial.ancestors;
  caller.agent = true;  // Everything that a run records is the agent's.
  policy::CompiledPolicy compiled(policy);
  policy::Route route = compiled.FindRoute(compiled.MatchCaller(caller), denial.host, denial.port);
  std::string path = denial.path.empty() ? "/" : denial.path;
  policy::HttpRequest request{denial.method, path, "", denial.protocol == "websocket"};
  policy::Verdict verdict = route.connection();
  bool connected = verdict.allowed && !denial.method.empty();
  if (connected) verdict = DecideCarried(route, request, denial);
  Judgement judgement{policy::DescribeVerdict(verdict, route, caller, request), {}};
  // An endpoint for GraphQL refuses what no rule of its own allows, whatever others say.
  bool own = verdict.reason == policy::Reason::kGraphqlBlocked ||
             verdict.reason == policy::Reason::kGraphqlUnregistered;
  const policy::Endpoint* last = own ? verdict.endpoint : verdict.governing;
  if (connected && verdict.rule == nullptr && last != nullptr) judgement.endpoint = *last;
  return judgement;
}

bool IsAllowed(const policy::Policy& policy, const Denial& denial) {
  return Ask(policy, denial).decision.allowed;
}

std::string Describe(const Denial& denial) {
  std::string place = denial.host + ":" + std::to_string(denial.port);
  std::string what = denial.method.empty() ? "connecting to " + place
                                           : denial.method + " " + denial.path + " at " + place;
  for (const policy::Operation& operation : denial.operations)
    what += ", " + policy::OperationText(operation);
  // A note is a comment in front of a patch: one line.
  return codec::NeutralLine(what + (denial.binary.empty() ? "" : " by " + denial.binary));
}

// The place for additions to a block of YAML, and the indentation of its entries.
struct Place {
  size_t before = 0;        // The line of the file that the addition stands in front of.
  std::string indentation;  // The blanks before an entry of the block.
  std::string head;         // The block's own line, when the file has none.
};

class Patcher {
 public:
  Patcher(const std::string& text, const policy::ParseContext& context)
      : text_(text), context_(context) {}

  Result<SuggestedPatch> Suggest(const std::string& text, const std::vector<Denial>& denials) {
    parsed_ = TRY(policy::ParsePolicy(text, context_));
    std::vector<Denial> open;
    for (const Denial& denial : WithoutNames(denials)) {
      bool known = std::find(open.begin(), open.end(), denial) != open.end();
      if (known || NoteHosted(denial) || IsAllowed(parsed_.policy, denial) ||
          NoteJudgedByContent(denial)) {
        continue;
      }
      if (!AddToEndpoint(denial)) open.push_back(denial);
    }
    YamlNode root = TRY(codec::ParseYaml(text_.Text(), context_.file, {}));
    place_ = TRY(FindPlace(root, parsed_.short_form ? "endpoints" : "network_policies"));
    if (parsed_.short_form) {
      AddLines(open);
    } else {
      AddPolicies(open);
    }
    NoteRest(open);
    if (text_.changed()) {
      suggested_.text = text_.Text();
      suggested_.patch = text_.RenderPatch(context_.file);
    }
    return std::move(suggested_);
  }

 private:
  // Notes a request for tools of a model's provider. Their line is not a rule of an endpoint, and
  // may belong in the configuration.
  bool NoteHosted(const Denial& denial) {
    if (denial.protocol != policy::kHostedProtocol) return false;
    const std::string line = policy::HostedLine(denial.operations);
    if (!line.empty()) {
      suggested_.notes.push_back(Describe(denial) + ": to allow it, add " + line +
                                 " to a policy in the short form or to .agentic-ci/config.yml");
    }
    return true;
  }

  // Notes a request whose content is not known: a rule for its path would let every call pass.
  bool NoteJudgedByContent(const Denial& denial) {
    std::string path = denial.path.empty() ? "/" : denial.path;
    for (const policy::NetworkPolicy& network : parsed_.policy.network) {
      for (const policy::Endpoint& endpoint : network.endpoints) {
        bool by_content = endpoint.protocol == policy::Protocol::kGraphql ||
                          endpoint.protocol == policy::Protocol::kJsonRpc ||
                          endpoint.protocol == policy::Protocol::kMcp ||
                          policy::CarriesGraphql(endpoint);
        if (denial.method.empty() || !denial.protocol.empty() || !by_content ||
            !IsAt(endpoint, denial.host, denial.port) ||
            !codec::PathSelectorMatches(endpoint.path, path)) {
          continue;
        }
        suggested_.notes.push_back(Describe(denial) +
                                   ": the request body decides here: add a rule to " +
                                   codec::Locate(context_.file, endpoint.at));
        return true;
      }
    }
    return false;
  }

  static bool IsAt(const policy::Endpoint& endpoint, const std::string& host, uint16_t port) {
    return std::find(endpoint.ports.begin(), endpoint.ports.end(), port) != endpoint.ports.end() &&
           (endpoint.host.empty() || policy::HostMatches(endpoint.host, host));
  }

  // Writes rules into the endpoints that refuse, until none does.
  bool AddToEndpoint(const Denial& denial) {
    Denial missing = denial;  // A batch may hold what is allowed.
    std::erase_if(missing.operations, [&](const policy::Operation& one) {
      Denial alone = denial;
      alone.operations = {one};
      return denial.operations.size() > 1 && IsAllowed(parsed_.policy, alone);
    });
    if (missing.operations.empty()) missing.operations = denial.operations;
    std::optional<EndpointAddition> addition = AdditionFor(missing);
    if (!addition || parsed_.short_form || ++tried_ > kTriedMax) return false;
    std::vector<std::string> comment = {kRuleComment};
    if (!addition->queries.empty()) comment.insert(comment.begin(), kQueryComment);
    PatchedText text = text_;
    policy::ParsedPolicy parsed = parsed_;
    for (int i = 0; i < kEditsMax; ++i) {
      Judgement judgement = Ask(parsed.policy, denial);
      if (judgement.decision.allowed) {
        text_ = std::move(text);
        parsed_ = std::move(parsed);
        return true;
      }
      if (!judgement.endpoint ||
          policy::ProtocolName(judgement.endpoint->protocol) != denial.protocol) {
        return false;
      }
      Result<YamlNode> root = codec::ParseYaml(text.Text(), context_.file, {});
      if (!root.ok() ||
          !EditEndpoint(root.value(), *judgement.endpoint, *addition, comment, &text)) {
        return false;
      }
      Result<policy::ParsedPolicy> edited = policy::ParsePolicy(text.Text(), context_);
      if (!edited.ok()) return false;
      parsed = std::move(edited).value();
    }
    return false;
  }

  Result<Place> FindPlace(const YamlNode& root, std::string_view key) const {
    Place place{text_.size(), "  ", std::string(key) + ":"};
    for (size_t i = 0; i < root.entries.size(); ++i) {
      const codec::YamlEntry& entry = root.entries[i];
      if (entry.key != key) continue;
      place.head.clear();
      const YamlNode& block = entry.value;
      bool braces = block.kind != YamlKind::kNull && text_.CharAt(block.at) != '-' &&
                    std::string_view("[{").find(text_.CharAt(block.at)) != std::string_view::npos;
      if (braces) {
        return codec::InvalidAt(context_.file, entry.at,
                                "'" + entry.key + "' is a list in brackets: no line can be added",
                                "write one entry per line");
      }
      bool last = i + 1 == root.entries.size();
      place.before =
          EndOfBlock(last ? text_.size() : static_cast<size_t>(root.entries[i + 1].at.line) - 1);
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
    while (line > 0 && says_nothing(text_[line - 1])) --line;
    return line;
  }

  std::string IndentationOf(codec::Position at) const {
    const std::string& line = text_[static_cast<size_t>(at.line) - 1];
    return line.substr(0, std::min(line.find_first_not_of(' '), line.size()));
  }

  // Keeps `lines` when the file with them loads and lets some of the denials pass.
  bool Try(const std::vector<std::string>& lines, const std::vector<Denial>& open) {
    std::vector<std::string> added;
    if (!begun_ && !place_.head.empty()) added.push_back(place_.head);
    if (!begun_) added.push_back(place_.indentation + std::string(kComment));
    for (const std::string& line : lines) added.push_back(place_.indentation + line);
    PatchedText candidate = text_;
    candidate.Insert(place_.before, added);
    Result<policy::ParsedPolicy> parsed = policy::ParsePolicy(candidate.Text(), context_);
    if (!parsed.ok()) return false;
    bool helps = std::any_of(open.begin(), open.end(), [&](const Denial& denial) {
      return !IsAllowed(parsed_.policy, denial) && IsAllowed(parsed.value().policy, denial);
    });
    if (!helps) return false;
    text_ = std::move(candidate);
    place_.before += added.size();
    begun_ = true;
    parsed_ = std::move(parsed).value();
    return true;
  }

  // The short form: one line per host and port, for what reads.
  void AddLines(const std::vector<Denial>& open) {
    for (const Denial& denial : open) {
      if (!denial.operations.empty() || IsAllowed(parsed_.policy, denial)) continue;
      std::string line = SuggestLine(denial);
      if (line.empty() || IsRuleLine(line)) continue;
      (void)Try({"- \"" + line + "\"  # " + OriginAt(denial, open)}, {denial});
    }
  }

  // Describes the origin of the line for the host and port of `denial`: the methods, and who asked.
  static std::string OriginAt(const Denial& denial, const std::vector<Denial>& open) {
    std::set<std::string> methods;
    std::vector<Denial> there;
    for (const Denial& one : open) {
      if (one.host != denial.host || one.port != denial.port) continue;
      if (IsRuleLine(SuggestLine(one))) continue;
      methods.insert(one.method.empty() ? "a connection" : one.method);
      there.push_back(one);
    }
    return Join({methods.begin(), methods.end()}) + ": " + DescribeOrigin(there);
  }

  // The full form: one policy per suggestion, each of what an addition helps.
  void AddPolicies(const std::vector<Denial>& open) {
    std::vector<Denial> helped;
    const Patcher start = *this;
    for (const Denial& denial : open) {
      Patcher alone = start;
      alone.AddSuggestions({denial});
      if (alone.begun_) helped.push_back(denial);
      if (helped.size() == kTriedMax) break;
    }
    AddSuggestions(helped);
  }

  void AddSuggestions(const std::vector<Denial>& open) {
    for (const Suggestion& suggestion : CollectSuggestions(open)) {
      std::set<std::string> taken;
      for (const policy::NetworkPolicy& network : parsed_.policy.network) taken.insert(network.key);
      (void)Try(SuggestionLines(FreeKey(suggestion, taken), suggestion,
                                TraitsAt(suggestion.host, suggestion.port)),
                open);
    }
  }

  // Returns the traits of the endpoints that are there for this host and port.
  SharedTraits TraitsAt(const std::string& host, uint16_t port) const {
    SharedTraits traits;
    for (const policy::NetworkPolicy& network : parsed_.policy.network) {
      for (const policy::Endpoint& endpoint : network.endpoints) {
        if (!IsAt(endpoint, host, port)) continue;
        if (endpoint.tls == policy::TlsMode::kSkip) traits.skip_tls = true;
        if (traits.allowed_ips.empty()) traits.allowed_ips = endpoint.allowed_ips;
        bool requests = endpoint.protocol == policy::Protocol::kRest ||
                        endpoint.protocol == policy::Protocol::kWebSocket;
        if (!requests || !endpoint.path.empty()) continue;
        traits.protocol = endpoint.protocol;
        traits.audit = endpoint.enforcement == policy::Enforcement::kAudit;
        traits.allow_encoded_slash = endpoint.allow_encoded_slash;
      }
    }
    return traits;
  }

  void NoteRest(const std::vector<Denial>& open) {
    for (const Denial& denial : open) {
      if (IsAllowed(parsed_.policy, denial)) continue;
      if (parsed_.short_form && !denial.operations.empty()) {
        suggested_.notes.push_back(Describe(denial) +
                                   ": an 'endpoints:' file has no rules for operations");
        continue;
      }
      if (parsed_.short_form && IsRuleLine(SuggestLine(denial))) {
        suggested_.notes.push_back(
            Describe(denial) +
            ": an 'endpoints:' line would open every write to that host; write a rule in the form "
            "that `agentic-ci policy export --to openshell` prints");
        continue;
      }
      policy::Decision decision = Ask(parsed_.policy, denial).decision;
      std::string where =
          decision.at.line > 0 ? " (" + codec::Locate(context_.file, decision.at) + ")" : "";
      std::string reason = decision.reason.substr(0, decision.reason.find(". SYMLINK HINT"));
      suggested_.notes.push_back(Describe(denial) + ": no addition would allow it: " + reason +
                                 where);
    }
  }

  PatchedText text_;
  const policy::ParseContext& context_;
  policy::ParsedPolicy parsed_;
  Place place_;
  bool begun_ = false;  // Something was added at place_.
  size_t tried_ = 0;    // Denials that endpoints were edited for.
  SuggestedPatch suggested_;
};

}  // namespace

Result<SuggestedPatch> SuggestPatch(const std::string& text, const policy::ParseContext& context,
                                    const std::vector<Denial>& denials) {
  return Patcher(text, context).Suggest(text, denials);
}

}  // namespace advise
