// SPDX-License-Identifier: Apache-2.0
#include "codec/call/mcp_fields.h"

#include <catch2/catch.hpp>

#include "codec/call/json_rpc.h"

namespace codec {
namespace {

constexpr char kVersion[] = "MCP-Protocol-Version";
constexpr char kDate[] = "2026-07-28";

// A message of 2026-07-28; `params` are members beside `_meta`.
std::string Modern(const std::string& method, const std::string& params = "",
                   const std::string& version = kDate) {
  return R"({"jsonrpc":"2.0","id":1,"method":")" + method +
         R"(","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":")" + version +
         R"(","io.modelcontextprotocol/clientCapabilities":{}})" +
         (params.empty() ? "" : "," + params) + "}}";
}

// One of a revision before it.
std::string Old(const std::string& method, const std::string& params = "") {
  return R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":{)" + params + "}}";
}

const std::string kList = Modern("tools/list");
const std::string kCall = Modern("tools/call", R"("name":"read","arguments":{"path":"a"})");
const std::string kArguments =
    R"("name":"read","arguments":{"region":"eu","count":42,"big":1000,"whole":7.0,"on":true,)"
    R"("none":null,"text":"42","uml":"gr\u00fcn","inner":{"tenant_id":"t-1"},"list":["x"]})";
const std::string kMany = Modern("tools/call", kArguments);

HttpFields With(const std::string& method, HttpFields more = {}) {
  HttpFields fields = {{kVersion, kDate}, {"Mcp-Method", method}};
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

HttpFields Calls(HttpFields more = {}) {
  more.insert(more.begin(), {"Mcp-Name", "read"});
  return With("tools/call", more);
}

std::string FaultOf(const HttpFields& fields, const std::string& body) {
  Result<Json> json = ParseJson(body);
  INFO(body);
  REQUIRE(json.ok());
  Result<JsonRpcRequest> request = ParseMcp(json.value(), true);
  INFO((request.ok() ? "" : request.error().what));
  REQUIRE(request.ok());  // It is the comparison that refuses.
  Status status = CompareMcpFields(fields, json.value());
  return status.ok() ? "" : status.error().what;
}

struct Case {
  std::string what;
  HttpFields fields;
  std::string body;
};

TEST_CASE("Fields of MCP that agree with the body pass") {
  const std::vector<Case> cases = {
      {"nothing of either", {}, Old("tools/list")},
      {"an old call",
       {{kVersion, "2025-11-25"}, {"Mcp-Session-Id", "s"}},
       Old("tools/call", R"("name":"read")")},
      {"the oldest version", {{kVersion, "2024-11-05"}}, Old("ping")},
      {"initialize",
       {},
       Old("initialize", R"("protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{})")},
      {"an old batch",
       {{kVersion, "2025-03-26"}},
       "[" + Old("ping") + "," + Old("tools/list") + "]"},
      {"an old response", {{kVersion, "2025-11-25"}}, R"({"jsonrpc":"2.0","id":1,"result":{}})"},
      {"an old call with a lone field", {{"Mcp-Method", "tools/list"}}, Old("tools/list")},
      {"a notification without _meta", With("notifications/cancelled"),
       R"({"jsonrpc":"2.0","method":"notifications/cancelled"})"},
      {"discover", With("server/discover"), Modern("server/discover")},
      {"a list", With("tools/list"), kList},
      {"a call", Calls(), kCall},
      {"names in another case",
       {{"mcp-protocol-version", kDate}, {"MCP-METHOD", "tools/call"}, {"mcp-name", "read"}},
       kCall},
      {"an escaped method", With("tools/list"), Modern("\\u0074ools/list")},
      {"a name in Base64", With("tools/call", {{"Mcp-Name", "=?base64?cmVhZA==?="}}), kCall},
      {"a resource", With("resources/read", {{"Mcp-Name", "file:///a"}}),
       Modern("resources/read", R"("uri":"file:///a")")},
      {"a resource beyond ASCII",
       With("resources/read", {{"Mcp-Name", "=?base64?ZmlsZTovLy9ncsO8bg==?="}}),
       Modern("resources/read", "\"uri\":\"file:///gr\xc3\xbcn\"")},
      {"a name that looks encoded",
       With("resources/read", {{"Mcp-Name", "=?base64?PT9iYXNlNjQ/eD89?="}}),
       Modern("resources/read", R"("uri":"=?base64?x?=")")},
      {"a prompt", With("prompts/get", {{"Mcp-Name", "p"}}),
       Modern("prompts/get", R"("name":"p")")},
      {"a task without a name", With("tasks/get"), Modern("tasks/get", R"("taskId":"t")")},
      {"a task", With("tasks/get", {{"Mcp-Name", "t"}}), Modern("tasks/get", R"("taskId":"t")")},
      {"a text", Calls({{"Mcp-Param-Region", "eu"}}), kMany},
      {"an integer", Calls({{"Mcp-Param-Count", "42"}}), kMany},
      {"an integer with a fraction of nothing", Calls({{"Mcp-Param-Count", "42.0"}}), kMany},
      {"a whole number", Calls({{"Mcp-Param-Whole", "7"}}), kMany},
      {"a boolean", Calls({{"Mcp-Param-On", "true"}}), kMany},
      {"a text of digits", Calls({{"Mcp-Param-Text", "42"}}), kMany},
      {"a text beyond ASCII", Calls({{"Mcp-Param-Uml", "=?base64?Z3LDvG4=?="}}), kMany},
      {"an inner argument", Calls({{"Mcp-Param-TenantId", "t-1"}}), kMany},
      {"an argument of another name", Calls({{"Mcp-Param-Place", "eu"}}), kMany},
  };
  for (const Case& one : cases) {
    INFO(one.what);
    CHECK(FaultOf(one.fields, one.body).empty());
  }
}

const std::vector<Case> kDisagreeing = {
    // The version.
    {"version in the body only", {{"Mcp-Method", "tools/list"}}, kList},
    {"no field at all", {}, kList},
    {"version in the header only", With("tools/list"), Old("tools/list")},
    {"version in the header only, for a call", Calls(), Old("tools/call", R"("name":"read")")},
    {"two versions", {{kVersion, "2025-11-25"}, {"Mcp-Method", "tools/list"}}, kList},
    {"another new version", {{kVersion, "2027-01-01"}, {"Mcp-Method", "tools/list"}}, kList},
    {"an unknown version of an old body", {{kVersion, "DRAFT-2026"}}, Old("tools/list")},
    {"an empty version", {{kVersion, ""}, {"Mcp-Method", "tools/list"}}, kList},
    {"the version twice", With("tools/list", {{kVersion, kDate}}), kList},
    {"the old version twice", {{kVersion, "2025-11-25"}, {kVersion, "2025-11-25"}}, Old("ping")},
    {"versions joined",
     {{kVersion, "2026-07-28, 2026-07-28"}, {"Mcp-Method", "tools/list"}},
     kList},
    {"a version with an underscore",
     {{"MCP_Protocol_Version", kDate}, {"Mcp-Method", "tools/list"}},
     kList},
    {"a version with an underscore besides",
     With("tools/list", {{"mcp_protocol_version", "2025-11-25"}}), kList},
    {"a session besides", With("tools/list", {{"Mcp-Session-Id", "s"}}), kList},
    // The method.
    {"no method", {{kVersion, kDate}}, kList},
    {"an empty method", With(""), kList},
    {"another method", With("tools/list"), Modern("tools/call", R"("name":"read")")},
    {"a harmless method in front of a call", With("server/discover", {{"Mcp-Name", "read"}}),
     kCall},
    {"another case", With("Tools/List"), kList},
    {"the method twice", With("tools/list", {{"Mcp-Method", "tools/list"}}), kList},
    {"the method twice in two cases", With("tools/list", {{"MCP-METHOD", "tools/call"}}), kList},
    {"methods joined", With("tools/list,tools/call"), kList},
    {"a method in Base64", With("=?base64?dG9vbHMvbGlzdA==?="), kList},
    {"a method in percent", With("tools%2Flist"), kList},
    {"a method and a NUL", With(std::string("tools/list\0", 11)), kList},
    {"a method and a tab", With("tools/list\t"), kList},
    {"a method with an underscore", {{kVersion, kDate}, {"Mcp_Method", "tools/list"}}, kList},
    {"another method of an old body",
     {{"Mcp-Method", "tools/list"}},
     Old("tools/call", R"("name":"read")")},
    {"another method of a notification", With("tools/list"),
     R"({"jsonrpc":"2.0","method":"notifications/cancelled"})"},
    // The name.
    {"no name", With("tools/call"), kCall},
    {"an empty name", With("tools/call", {{"Mcp-Name", ""}}), kCall},
    {"another name", With("tools/call", {{"Mcp-Name", "drop"}}), kCall},
    {"another case of the name", With("tools/call", {{"Mcp-Name", "Read"}}), kCall},
    {"the name twice", Calls({{"Mcp-Name", "read"}}), kCall},
    {"the name with an underscore", With("tools/call", {{"mcp_name", "read"}}), kCall},
    {"names joined", With("tools/call", {{"Mcp-Name", "read, drop"}}), kCall},
    {"a name of a list", With("tools/list", {{"Mcp-Name", "read"}}), kList},
    {"a name of discover", With("server/discover", {{"Mcp-Name", "read"}}),
     Modern("server/discover")},
    {"the name in place of the resource", With("resources/read", {{"Mcp-Name", "n"}}),
     Modern("resources/read", R"("uri":"file:///a","name":"n")")},
    {"another task", With("tasks/cancel", {{"Mcp-Name", "t"}}),
     Modern("tasks/cancel", R"("taskId":"u")")},
    {"upper-case marker", With("tools/call", {{"Mcp-Name", "=?BASE64?cmVhZA==?="}}), kCall},
    {"no padding", With("tools/call", {{"Mcp-Name", "=?base64?cmVhZA?="}}), kCall},
    {"spare bits", With("tools/call", {{"Mcp-Name", "=?base64?cmVhZB==?="}}), kCall},
    {"a blank in Base64", With("tools/call", {{"Mcp-Name", "=?base64?cmVh ZA==?="}}), kCall},
    {"Base64 without an end", With("tools/call", {{"Mcp-Name", "=?base64?cmVhZA=="}}), kCall},
    {"Base64 of another name", With("tools/call", {{"Mcp-Name", "=?base64?ZHJvcA==?="}}), kCall},
    {"Base64 twice", With("tools/call", {{"Mcp-Name", "=?base64?PT9iYXNlNjQ/Y21WaFpBPT0/PQ==?="}}),
     kCall},
    {"not UTF-8 in Base64", With("resources/read", {{"Mcp-Name", "=?base64?/w==?="}}),
     Modern("resources/read", R"("uri":"\ufffd")")},
    {"bytes beyond ASCII", With("resources/read", {{"Mcp-Name", "gr\xc3\xbcn"}}),
     Modern("resources/read", "\"uri\":\"gr\xc3\xbcn\"")},
    {"another Unicode form", With("resources/read", {{"Mcp-Name", "=?base64?dcyI?="}}),
     Modern("resources/read", "\"uri\":\"\xc3\xbc\"")},
    {"plain text of encoded form", With("resources/read", {{"Mcp-Name", "=?base64?x?="}}),
     Modern("resources/read", R"("uri":"=?base64?x?=")")},
    // Arguments.
    {"another value", Calls({{"Mcp-Param-Region", "us"}}), kMany},
    {"the value of another argument", Calls({{"Mcp-Param-Region", "t-1"}}), kMany},
    {"a value of none", Calls({{"Mcp-Param-Place", "us"}}), kMany},
    {"the value of one of two that have the name", Calls({{"Mcp-Param-TenantId", "a"}}),
     Modern("tools/call", R"("name":"read","arguments":{"tenantId":"a","tenant_id":"b"})")},
    {"a value of no argument", Calls({{"Mcp-Param-Region", "eu"}}),
     Modern("tools/call", R"("name":"read")")},
    {"a value for null", Calls({{"Mcp-Param-None", "null"}}), kMany},
    {"an empty value for null", Calls({{"Mcp-Param-None", ""}}), kMany},
    {"an exponent", Calls({{"Mcp-Param-Big", "1e3"}}), kMany},
    {"a leading zero", Calls({{"Mcp-Param-Count", "042"}}), kMany},
    {"a sign", Calls({{"Mcp-Param-Count", "+42"}}), kMany},
    {"a fraction", Calls({{"Mcp-Param-Count", "42.5"}}), kMany},
    {"True", Calls({{"Mcp-Param-On", "True"}}), kMany},
    {"1 for true", Calls({{"Mcp-Param-On", "1"}}), kMany},
    {"an element of a list", Calls({{"Mcp-Param-List", "x"}}), kMany},
    {"the parameter twice", Calls({{"Mcp-Param-Region", "eu"}, {"mcp-param-region", "us"}}), kMany},
    {"the parameter twice alike", Calls({{"Mcp-Param-Region", "eu"}, {"Mcp-Param-Region", "eu"}}),
     kMany},
    {"the parameter with an underscore", Calls({{"Mcp_Param_Region", "eu"}}), kMany},
    {"a parameter of a list", With("tools/list", {{"Mcp-Param-Region", "eu"}}), kList},
    {"a parameter of an old call", {{"Mcp-Param-Region", "us"}}, Old("tools/call", kArguments)},
    // Messages that the fields cannot describe.
    {"a new message in a batch", With("tools/list"), "[" + kList + "]"},
    {"a new message in an old batch", {}, "[" + Old("ping") + "," + kList + "]"},
    {"a batch with a method", {{"Mcp-Method", "ping"}}, "[" + Old("ping") + "]"},
    {"a new response", {{kVersion, kDate}}, R"({"jsonrpc":"2.0","id":1,"result":{}})"},
    {"a response with a method",
     {{"Mcp-Method", "tools/list"}},
     R"({"jsonrpc":"2.0","id":1,"result":{}})"},
    // A version that another parser finds.
    {"_Meta besides", With("tools/list"), Modern("tools/list", R"("_Meta":{})")},
    {"_META alone",
     {},
     Old("tools/list", R"("_META":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"})")},
    {"a version in another case",
     {},
     Old("tools/list", R"("_meta":{"io.modelcontextprotocol/protocolversion":"2026-07-28"})")},
    {"a version that is a number",
     {},
     Old("tools/list", R"("_meta":{"io.modelcontextprotocol/protocolVersion":20260728})")},
    {"_meta that is a list", {}, Old("tools/list", R"("_meta":[])")},
    {"Uri besides uri", With("resources/read", {{"Mcp-Name", "a"}}),
     Modern("resources/read", R"("uri":"a","Name":"b")")},
};

TEST_CASE("Fields of MCP that disagree with the body are refused") {
  CHECK(kDisagreeing.size() >= 60);
  for (const Case& one : kDisagreeing) {
    INFO(one.what);
    CHECK_FALSE(FaultOf(one.fields, one.body).empty());
  }
}

TEST_CASE("A request without a body has no fields that describe one") {
  CHECK(CompareMcpFields({{kVersion, "2025-11-25"}, {"Mcp-Session-Id", "s"}}).ok());
  CHECK(CompareMcpFields(HttpFields{}).ok());
  CHECK_FALSE(CompareMcpFields({{kVersion, kDate}}).ok());
  CHECK_FALSE(CompareMcpFields({{"Mcp-Method", "tools/call"}}).ok());
  CHECK_FALSE(CompareMcpFields({{"Mcp_Name", "read"}}).ok());
}

TEST_CASE("An error of MCP has the id of its request") {
  const Json body = ParseJson(kList).value();
  CHECK(RenderMcpError(body, kMcpHeaderMismatch, "why") ==
        R"({"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"why"}})");
  const std::string versions =
      RenderMcpError({}, kMcpUnsupportedVersion, "why", McpVersions(true, "2027-01-01"));
  CHECK(versions.find(R"("id":null)") != std::string::npos);
  CHECK(versions.find(R"("supported":["2026-07-28","2025-11-25")") != std::string::npos);
  CHECK(versions.find(R"("requested":"2027-01-01")") != std::string::npos);
}

}  // namespace
}  // namespace codec
