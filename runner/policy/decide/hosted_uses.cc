// SPDX-License-Identifier: Apache-2.0
#include "policy/decide/hosted_uses.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"
#include "codec/text/fold.h"
#include "codec/wire/http_target.h"

namespace policy {
namespace {

using codec::Json;
using Members = std::vector<const Json*>;

constexpr unsigned kA = static_cast<unsigned>(ModelFamily::kAnthropic);
constexpr unsigned kC = static_cast<unsigned>(ModelFamily::kChat);
constexpr unsigned kR = static_cast<unsigned>(ModelFamily::kResponses);
constexpr unsigned kG = static_cast<unsigned>(ModelFamily::kGemini);
constexpr unsigned kAll = kA | kC | kR | kG;

constexpr std::string_view kClient = "client";  // Runs in the sandbox, or reaches nothing.

// Where a request says which domains a tool may reach.
enum class Bound {
  kNone,            // Nowhere.
  kAllowedDomains,  // allowed_domains
  kFilters,         // filters.allowed_domains
  kNetwork,         // network_policy, of `container` or `environment`
  kUrl,             // The host of server_url or url; of each entry, if it is a list.
};

struct Row {
  unsigned families;
  std::string_view name;  // Folded; a '*' at the end stands for anything.
  std::string_view kind;
  Bound bound = Bound::kNone;
};

// Types of tools, and Gemini's keys of one. Names are folded: see Fold().
constexpr auto kTools = std::to_array<Row>({
    {kAll, "function", kClient},
    {kAll, "custom", kClient},
    {kG, "functiondeclarations", kClient},
    {kA, "toolspec", kClient},
    {kA, "cachepoint", kClient},
    {kA, "bash20*", kClient},
    {kA, "texteditor20*", kClient},
    {kA, "computer20*", kClient},
    {kA, "memory20*", kClient},
    {kA, "toolsearchtool*", kClient},
    // The servers are what counts: top-level "mcp_servers".
    {kA, "mcptoolset", kClient},
    {kR, "namespace", kClient},
    {kR, "toolsearch", kClient},
    {kR | kG, "computer", kClient},
    {kR | kG, "computeruse", kClient},
    {kR, "computerusepreview*", kClient},
    {kR, "localshell", kClient},
    {kR, "applypatch", kClient},
    {kA, "websearch*", kWebSearch, Bound::kAllowedDomains},
    {kR, "websearchpreview*", kWebSearch},
    {kR, "websearch*", kWebSearch, Bound::kFilters},
    {kC | kG, "websearch*", kWebSearch},
    {kR, "xsearch", kWebSearch},
    {kC, "browsersearch", kWebSearch},
    {kG, "googlesearch", kWebSearch},
    {kG, "googlesearchretrieval", kWebSearch},
    {kG, "enterprisewebsearch", kWebSearch},
    {kG, "parallelaisearch", kWebSearch},
    {kG, "exaaisearch", kWebSearch},
    {kG, "googlemaps", kWebSearch},
    {kA, "webfetch*", kWebFetch, Bound::kAllowedDomains},
    {kG, "urlcontext", kWebFetch},
    {kAll, "codeexecution*", kCodeExecution},
    {kC | kR, "codeinterpreter", kCodeExecution, Bound::kNetwork},
    {kR, "shell", kCodeExecution, Bound::kNetwork},
    {kR, "programmatictoolcalling", kCodeExecution},
    {kC | kR | kG, "filesearch", kFileSearch},
    {kR, "collectionssearch", kFileSearch},
    {kG, "retrieval", kFileSearch},
    {kC | kR, "imagegeneration", kImageGeneration},
    {kC | kR, "mcp", kMcpServers, Bound::kUrl},
    {kG, "mcpserver", kMcpServers, Bound::kUrl},
    {kG, "mcpservers", kMcpServers},
    {kA, "advisor*", kModels},
});

// What `tool_choice` names beside tools.
constexpr auto kChoices = std::to_array<std::string_view>(
    {"auto", "any", "tool", "none", "required", "allowedtools", "validated"});

// Members of a body.
constexpr auto kBodyMembers = std::to_array<Row>({
    {kA | kG, "mcpservers", kMcpServers, Bound::kUrl},
    {kA, "container", kCodeExecution},
    {kA, "fallbacks", kModels},
    {kAll, "models", kModels},
    {kAll, "websearchoptions", kWebSearch},
    {kAll, "searchparameters", kWebSearch},
    {kAll, "compoundcustom", kWebSearch},
    {kAll, "datasources", kFileSearch},
    {kAll, "conversation", kStored},
    {kAll, "cachedcontent", kStored},
    {kAll, "agent*", kHostedAgents},
    {kAll, "multiagent", kHostedAgents},
    {kG, "environment", kHostedAgents},
    {kG, "webhookconfig", kHostedAgents},
    {kAll, "background", kBackground},
    // A batch whose requests are elsewhere.
    {kAll, "inputfileid", kUnread},
    {kG, "filename", kUnread},
    {kG, "gcssource", kUnread},
    {kG, "bigquerysource", kUnread},
});

// Members of a body that have a body in them.
constexpr auto kInnerBodies = std::to_array<std::string_view>(
    {"request", "requests", "params", "batch", "inputconfig", "generatecontentrequest", "extrabody",
     "google", "additionalmodelrequestfields"});
// Members about the client's tools.
constexpr auto kToolSettings = std::to_array<std::string_view>(
    {"paralleltoolcalls", "maxtoolcalls", "toolstream", "disableparalleltooluse"});
// Parts of the name of a member that an unknown server may take for a tool.
constexpr auto kSuspicious =
    std::to_array<std::string_view>({"search", "plugin", "tool", "connector", "mcp", "agent"});
constexpr auto kContent = std::to_array<std::string_view>(
    {"messages", "system", "contents", "content", "input", "systeminstruction", "prompt"});
// What a tool of the client's was given or gave: data in any form.
constexpr auto kData =
    std::to_array<std::string_view>({"input", "args", "arguments", "response", "json"});
constexpr auto kUrlMembers = std::to_array<std::string_view>(
    {"imageurl", "fileurl", "videourl", "audiourl", "documenturl", "filedata", "fileuri"});

constexpr int kDepthMax = 16;  // Bodies and lists of tools within others.

// "webSearch" and "web_search" are one name.
std::string Fold(std::string_view name) {
  std::string folded = codec::FoldToAscii(name);
  std::erase_if(folded, [](char c) { return c == '_' || c == '-'; });
  return folded;
}

bool Matches(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

template <typename List>
bool Contains(const List& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

template <typename Rows>
const Row* FindRow(const Rows& rows, ModelFamily family, std::string_view folded) {
  const auto found = std::ranges::find_if(rows, [&](const Row& row) {
    return (row.families & static_cast<unsigned>(family)) != 0 && Matches(row.name, folded);
  });
  return found == rows.end() ? nullptr : &*found;
}

// Returns the members that a server may take for the one called `folded`.
Members Named(const Json& value, std::string_view folded) {
  Members members;
  if (value.object() == nullptr) return members;
  for (const auto& [name, member] : *value.object()) {
    if (Fold(name) == folded) members.push_back(&member);
  }
  return members;
}

// Returns the member if it is the only one that may be taken for it; else nullptr.
const Json* Only(const Json* value, std::string_view name) {
  if (value == nullptr || Named(*value, Fold(name)).size() != 1) return nullptr;
  return value->Find(name);
}

// Returns whether a member asks for nothing.
bool SaysNothing(const Json& value) {
  if (value.is_null() || value.boolean() == false) return true;
  if (value.string() != nullptr) return value.string()->empty();
  return value.array() != nullptr && value.array()->empty();
}

std::string HostOfUrl(std::string_view url) {
  Result<codec::RequestUrl> parsed = codec::ParseRequestUrl(url);
  return parsed.ok() ? std::move(parsed).value().host : std::string();
}

// Takes a list of domains, each perhaps with a path behind it. An empty list restricts nothing.
void TakeDomains(const Json* list, HostedUse& use) {
  if (list == nullptr || list->array() == nullptr) return;
  use.bounded = !list->array()->empty();
  for (const Json& one : *list->array()) {
    const std::string text = one.string() != nullptr ? *one.string() : "";
    use.domains.push_back(text.substr(0, text.find('/')));
  }
}

void TakeNetwork(const Json& tool, HostedUse& use) {
  const Json* where = Only(&tool, "container");
  if (where == nullptr) where = Only(&tool, "environment");
  const Json* network = Only(where, "network_policy");
  const Json* type = Only(network, "type");
  if (type == nullptr || type->string() == nullptr) return;
  if (*type->string() == "disabled") use.bounded = true;
  if (*type->string() == "allowlist") TakeDomains(Only(network, "allowed_domains"), use);
}

void TakeUrl(const Json& tool, HostedUse& use) {
  for (std::string_view other : {"connectorid", "tunnelid"}) {
    if (!Named(tool, other).empty()) return;
  }
  for (std::string_view name : {"server_url", "url"}) {
    const Json* url = Only(&tool, name);
    if (url == nullptr || url->string() == nullptr) continue;
    use.bounded = true;
    use.domains.push_back(HostOfUrl(*url->string()));
  }
}

void TakeBound(Bound bound, const Json& tool, HostedUse& use) {
  switch (bound) {
    case Bound::kNone:
      break;
    case Bound::kAllowedDomains:
      TakeDomains(Only(&tool, "allowed_domains"), use);
      break;
    case Bound::kFilters:
      TakeDomains(Only(Only(&tool, "filters"), "allowed_domains"), use);
      break;
    case Bound::kNetwork:
      TakeNetwork(tool, use);
      break;
    case Bound::kUrl:
      TakeUrl(tool, use);
      break;
  }
}

// The scheme of a URL as browsers read it: they leave out blanks and control characters. Empty for
// other text: base64 has no colon.
std::string SchemeOf(std::string_view text) {
  std::string scheme;
  for (char c : text.substr(0, 256)) {
    if (static_cast<unsigned char>(c) <= 0x20) continue;
    if (c == ':') return scheme;
    const char lower = ascii::ToLower(c);
    if (!ascii::IsAlpha(lower) && !ascii::IsDigit(c) &&
        std::string_view("+-.").find(c) == std::string_view::npos) {
      return "";
    }
    scheme += lower;
  }
  return "";
}

// Models that search without a tool in the request, or that stand for others.
std::string_view KindOfModel(std::string_view model) {
  const std::string folded = codec::FoldToAscii(model);
  auto has = [&](std::string_view part) { return folded.find(part) != std::string::npos; };
  if (folded.ends_with(":online") || has("-search-preview") || has("-search-api") ||
      has("deep-research") || has("groq/compound") || has("sonar") ||
      folded.starts_with("compound-")) {
    return kWebSearch;
  }
  return folded == "openrouter/auto" ? kModels : std::string_view();
}

class Finder {
 public:
  explicit Finder(const HostedPlace& place) : place_(place) {}

  std::vector<HostedUse> Find(const Json& body) {
    TakeModel(place_.model);
    TakeBody(body, 0);
    return std::move(uses_);
  }

 private:
  void Add(std::string_view kind, std::string_view name) {
    Add(HostedUse{std::string(kind), std::string(name)});
  }
  void Add(HostedUse use) {
    if (std::ranges::find(uses_, use) == uses_.end()) uses_.push_back(std::move(use));
  }

  void TakeModel(const std::string& model) {
    const std::string_view kind = KindOfModel(model);
    if (!kind.empty()) Add(kind, model);
  }

  void TakeBody(const Json& body, int depth) {
    if (const Json::Array* list = body.array()) {
      for (const Json& one : *list) TakeBody(one, depth + 1);
    }
    if (body.object() == nullptr) return;
    if (depth > kDepthMax) return Add(kUnread, "requests within requests");
    for (const auto& [name, value] : *body.object()) TakeMember(name, value, depth);
  }

  void TakeMember(const std::string& name, const Json& value, int depth) {
    const std::string folded = Fold(name);
    if (folded == "tools") return TakeTools(value, false, depth);
    if (folded == "toolchoice") return TakeChoice(value, depth);
    if (folded == "toolconfig") {
      for (const Json* tools : Named(value, "tools")) TakeTools(*tools, false, depth);
      return;
    }
    if (folded == "model" && value.string() != nullptr) return TakeModel(*value.string());
    // A stored prompt; older completions have texts.
    if (folded == "prompt" && value.object() != nullptr) Add(kStored, name);
    if (Contains(kContent, folded)) {
      TakeContent(value);
      if (folded == "input") TakeItems(value, depth);
      return;
    }
    if (Contains(kInnerBodies, folded)) return TakeBody(value, depth + 1);
    if (SaysNothing(value) || Contains(kToolSettings, folded)) return;
    if (const Row* row = FindRow(kBodyMembers, place_.family, folded)) {
      return TakeRow(*row, name, value);
    }
    const bool suspicious = std::ranges::any_of(
        kSuspicious, [&](std::string_view part) { return folded.find(part) != std::string::npos; });
    if (suspicious && folded != "functions") Add("", name);
  }

  // A member of the body; a list of servers has a bound for each.
  void TakeRow(const Row& row, const std::string& name, const Json& value) {
    if (value.array() == nullptr || row.bound == Bound::kNone) return Add(row.kind, name);
    for (const Json& one : *value.array()) {
      HostedUse use{std::string(row.kind), name};
      TakeBound(row.bound, one, use);
      Add(std::move(use));
    }
  }

  // `referred`: the tools are those of another list, which is judged by itself.
  void TakeTools(const Json& tools, bool referred, int depth) {
    if (tools.is_null()) return;
    if (depth > kDepthMax) return Add(kUnread, "tools within tools");
    if (tools.object() != nullptr) return TakeTool(tools, referred, depth);
    if (tools.array() == nullptr) return Add("", "tools");
    for (const Json& tool : *tools.array()) TakeTool(tool, referred, depth);
  }

  void TakeTool(const Json& tool, bool referred, int depth) {
    if (tool.object() == nullptr) return Add("", "tools");
    for (const Json* inner : Named(tool, "tools")) TakeTools(*inner, referred, depth + 1);
    const Members types = Named(tool, "type");
    if (types.empty()) return TakeKeys(tool);
    if (types.size() > 1) return Add("", "type, twice");
    if (types[0]->is_null()) return;
    if (types[0]->string() == nullptr) return Add("", "type");
    TakeType(*types[0]->string(), tool, referred);
  }

  void TakeType(const std::string& type, const Json& tool, bool referred) {
    const std::string folded = Fold(type);
    if (referred && Contains(kChoices, folded)) return;
    const Row* row = FindRow(kTools, place_.family, folded);
    if (row == nullptr) return Add("", type);
    if (row->kind == kClient || RunsLocally(folded, tool)) return;
    HostedUse use{std::string(row->kind), type};
    TakeBound(row->bound, tool, use);
    if (referred) use = {use.kind, type, true, {}};
    if (row->kind == kModels) use.name = tool.StringAt("model");
    Add(std::move(use));
  }

  // OpenAI's shell is the client's if it says so.
  static bool RunsLocally(std::string_view folded, const Json& tool) {
    const Json* type = Only(Only(&tool, "environment"), "type");
    return folded == "shell" && type != nullptr && type->string() != nullptr &&
           *type->string() == "local";
  }

  // Without a type: Gemini's tools have a key for each kind, also behind servers that translate,
  // and Converse's for the form. Others are the client's.
  void TakeKeys(const Json& tool) {
    for (const auto& [name, value] : *tool.object()) {
      const std::string folded = Fold(name);
      if (folded == "systemtool") {
        const bool searches = Fold(value.StringAt("name")) == "novagrounding";
        const bool runs = Fold(value.StringAt("name")) == "novacodeinterpreter";
        Add(searches ? kWebSearch : runs ? kCodeExecution : "", value.StringAt("name"));
      }
      if (value.is_null()) continue;
      const Row* row = FindRow(kTools, ModelFamily::kGemini, folded);
      if (row == nullptr) {
        if (place_.family == ModelFamily::kGemini) Add("", name);
      } else if (row->name == "mcpservers") {
        TakeGoogleServers(name, value);
      } else if (row->kind != kClient) {
        Add(row->kind, name);
      }
    }
  }

  void TakeGoogleServers(const std::string& name, const Json& servers) {
    if (servers.array() == nullptr) return Add(kMcpServers, name);
    for (const Json& server : *servers.array()) {
      HostedUse use{std::string(kMcpServers), name};
      const Members transports = Named(server, "streamablehttptransport");
      if (transports.size() == 1) TakeUrl(*transports[0], use);
      Add(std::move(use));
    }
  }

  void TakeChoice(const Json& choice, int depth) {
    if (choice.object() == nullptr) return;
    TakeTools(choice, true, depth);
    for (const Json* allowed : Named(choice, "allowedtools")) {
      for (const Json* tools : Named(*allowed, "tools")) TakeTools(*tools, true, depth);
    }
  }

  // The items of OpenAI's `input`, some of which carry tools.
  void TakeItems(const Json& items, int depth) {
    if (items.array() == nullptr) return;
    for (const Json& item : *items.array()) {
      for (const Json* tools : Named(item, "tools")) TakeTools(*tools, false, depth + 1);
      for (const Json* type : Named(item, "type")) {
        const bool approves =
            type->string() != nullptr && Fold(*type->string()) == "mcpapprovalresponse";
        if (approves && item.BooleanAt("approve", true)) Add(kMcpServers, *type->string());
      }
    }
  }

  // Looks for URLs that the provider would fetch. The depth of the whole is bounded by the parser.
  void TakeContent(const Json& value) {
    if (const Json::Array* list = value.array()) {
      for (const Json& one : *list) TakeContent(one);
    }
    if (value.object() == nullptr) return;
    for (const auto& [name, member] : *value.object()) {
      const std::string folded = Fold(name);
      if (Contains(kData, folded)) continue;
      const bool is_url = Contains(kUrlMembers, folded);
      if (is_url && member.string() != nullptr) TakeUrlText(*member.string());
      if (is_url || folded == "source") {
        for (const Json* url : Named(member, "url")) {
          if (url->string() != nullptr) TakeUrlText(*url->string());
        }
      }
      if (folded == "s3location" || (folded == "uri" && member.string() != nullptr)) {
        TakeUrlText(member.string() != nullptr ? *member.string() : member.StringAt("uri"));
      }
      TakeContent(member);
    }
  }

  void TakeUrlText(const std::string& url) {
    const std::string scheme = SchemeOf(url);
    if (scheme.empty() || scheme == "data") return;
    const std::string host = HostOfUrl(url);
    if (!host.empty() && host == place_.host) return;
    Add({std::string(kUrls), host.empty() ? scheme + ":" : host, true, {host}});
  }

  const HostedPlace& place_;
  std::vector<HostedUse> uses_;
};

}  // namespace

std::vector<HostedUse> FindHostedUses(const HostedPlace& place, const Json& body) {
  return Finder(place).Find(body);
}

}  // namespace policy
