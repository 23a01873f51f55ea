// SPDX-License-Identifier: Apache-2.0
// The header fields by which MCP's requests of 2026-07-28 say again what is in their body. Servers
// and routers in front of them may go by either, so a request must say the same in both.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/data/json.h"
#include "codec/wire/http_head.h"

namespace codec {

// The errors of the protocol that a request is answered with which does not pass.
inline constexpr int kMcpHeaderMismatch = -32020;
inline constexpr int kMcpUnsupportedVersion = -32022;

// The method by which clients of 2026-07-28 begin.
inline constexpr std::string_view kServerDiscover = "server/discover";
// The method by which those of older revisions begin, which have no such fields.
inline constexpr std::string_view kMcpInitialize = "initialize";
// The revision whose requests are mirrored in fields.
inline constexpr std::string_view kMcpMirrored = "2026-07-28";

// Returns the version that a message names in its `_meta`; empty if it names none, or not as text.
std::string McpVersionOf(const Json& message);

// Compares `fields`, of the request as it will be sent, with `body`, which ParseMcp or ParseJsonRpc
// took. A field that is there has to be there once, spelled as MCP spells it but for case, and to
// agree with the only message of the body: MCP-Protocol-Version, Mcp-Method, Mcp-Name, and
// Mcp-Param-NAME with an argument of the tool, with that of the same name if there is one. Which
// arguments need one, only the server knows. A body that names its version needs the first two, and
// Mcp-Name where its method has one. Fails with kInvalid and what disagrees; neutral.
Status CompareMcpFields(const HttpFields& fields, const Json& body);

// Does the same for a request without a body: all fields but those of an older version are refused.
Status CompareMcpFields(const HttpFields& fields);

// Returns whether one of the fields has the name of one that repeats a part of the body.
bool MirrorsMcp(const HttpFields& fields);

// Returns an answer to `body`, null or a JSON-RPC message: an error with its id. `data` may be
// null.
std::string RenderMcpError(const Json& body, int code, std::string_view message, Json data = {});

// Returns the `data` of an error kMcpUnsupportedVersion: `supported` has the versions before
// 2026-07-28 and, with `mirrored`, that one.
Json McpVersions(bool mirrored, std::string_view requested);

}  // namespace codec
