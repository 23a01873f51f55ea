// SPDX-License-Identifier: Apache-2.0
// Tools that a model's provider runs: their kinds, by which a policy allows them, and the line that
// does.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/wire.h"

namespace policy {

inline constexpr std::string_view kWebSearch = "web_search";
inline constexpr std::string_view kWebFetch = "web_fetch";
inline constexpr std::string_view kCodeExecution = "code_execution";
inline constexpr std::string_view kMcpServers = "mcp";
inline constexpr std::string_view kFileSearch = "file_search";
inline constexpr std::string_view kImageGeneration = "image_generation";
inline constexpr std::string_view kUrls = "urls";
inline constexpr std::string_view kModels = "models";
inline constexpr std::string_view kBackground = "background";
inline constexpr std::string_view kStored = "stored";
inline constexpr std::string_view kHostedAgents = "agents";
inline constexpr std::string_view kUnread = "unread";

// One kind that a policy may name.
struct HostedKind {
  std::string_view name;
  bool takes_domains;
  std::string_view doc;  // Completes "the provider ...".
};

inline constexpr auto kHostedKinds = std::to_array<HostedKind>({
    {kWebSearch, true, "searches the web, or maps"},
    {kWebFetch, true, "fetches pages"},
    {kCodeExecution, true, "runs code, in a container of its own"},
    {kMcpServers, true, "calls MCP servers and connectors"},
    {kFileSearch, false, "searches documents that it keeps"},
    {kImageGeneration, false, "makes pictures"},
    {kUrls, true, "fetches pictures and documents that a message names by URL"},
    {kModels, false,
     "asks further models that the request names: `fallbacks`, `models`, an advisor"},
    {kBackground, false, "answers later, by another request"},
    {kStored, false, "adds what it keeps: a prompt by its id, a conversation, a cache"},
    {kHostedAgents, false, "runs an agent of its own"},
    {kUnread, false,
     "gets a request that cannot be read: a WebSocket, a compressed body, a batch in a file. All "
     "kinds may hide there"},
});

// Returns the kind with this name; nullptr for a name that is unknown.
const HostedKind* FindHostedKind(std::string_view name);

// The characters of a domain in an entry.
inline constexpr std::string_view kDomainCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-.";

// Precedes the name of a type that is of no known kind: "type=openrouter:web_search".
inline constexpr std::string_view kTypeEntry = "type=";

// One entry of `hosted_tools`.
struct HostedAllowance {
  std::string kind;  // A name of kHostedKinds, or kTypeEntry and a type.
  // Not empty: only for these domains and what is below them. In lower case.
  std::vector<std::string> domains;

  friend bool operator==(const HostedAllowance&, const HostedAllowance&) = default;
};
WIRE_ALL(HostedAllowance, kind, domains)

// Returns "[web_search: {domains: [docs.example.com]}, urls]", and "none" for an empty list: a
// value of `hosted_tools` that reads as `list`.
std::string RenderHostedTools(const std::vector<HostedAllowance>& list);

}  // namespace policy
