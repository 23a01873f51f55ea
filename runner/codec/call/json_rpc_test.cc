// SPDX-License-Identifier: Apache-2.0
#include "codec/call/json_rpc.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

Result<JsonRpcRequest> ParseText(const std::string& body) {
  const Json json = TRY(ParseJson(body));
  return ParseJsonRpc(json);
}

Result<JsonRpcRequest> ParseMcpText(const std::string& body, bool strict) {
  const Json json = TRY(ParseJson(body));
  return ParseMcp(json, strict);
}

JsonRpcRequest Read(const std::string& body) {
  Result<JsonRpcRequest> request = ParseText(body);
  INFO(body << ": " << (request.ok() ? "" : request.error().what));
  REQUIRE(request.ok());
  return std::move(request).value();
}

// A call of `method` with `params`, which may be empty.
std::string Call(const std::string& method, const std::string& params) {
  return R"({"jsonrpc":"2.0","id":1,"method":")" + method + "\"" +
         (params.empty() ? "" : ",\"params\":" + params) + "}";
}

bool McpRefused(const std::string& body, bool strict = true) {
  return !ParseMcpText(body, strict).ok();
}

TEST_CASE("A call, a notification and a batch are read") {
  JsonRpcRequest call = Read(Call("initialize", "{}"));
  REQUIRE(call.calls.size() == 1);
  CHECK(call.calls[0].method == "initialize");
  CHECK_FALSE(call.is_batch);
  CHECK_FALSE(call.has_response);
  CHECK(Read(R"({"jsonrpc":"2.0","method":"n"})").calls[0].method == "n");
  JsonRpcRequest batch =
      Read("[" + Call("a", "1") + R"(,{"jsonrpc":"2.0","id":"x","result":null},)" +
           Call("tools/call", R"({"name":"t"})") + "]");
  CHECK(batch.is_batch);
  CHECK(batch.has_response);
  REQUIRE(batch.calls.size() == 2);
  CHECK(batch.calls[1].method == "tools/call");
  CHECK(batch.calls[1].tool.empty());
}

TEST_CASE("A response is told from a call") {
  for (const char* body : {R"({"jsonrpc":"2.0","id":1,"result":{}})",
                           R"({"jsonrpc":"2.0","id":null,"error":{"code":1}})",
                           R"({"jsonrpc":"2.0","id":1.5,"result":null})"}) {
    CHECK(Read(body).has_response);
    CHECK(Read(body).calls.empty());
  }
}

TEST_CASE("What is not JSON-RPC 2.0 is refused, and one bad item refuses a batch") {
  for (const char* body : {"",
                           "{",
                           "null",
                           "1",
                           "[]",
                           "{}",
                           "[1]",
                           "[[]]",
                           R"({"id":1,"method":"a"})",
                           R"({"jsonrpc":"1.0","id":1,"method":"a"})",
                           R"({"jsonrpc":2.0,"id":1,"method":"a"})",
                           R"({"jsonrpc":"2.0","id":1})",
                           R"({"jsonrpc":"2.0","id":1,"method":1})",
                           R"({"jsonrpc":"2.0","id":1,"method":null})",
                           R"({"jsonrpc":"2.0","id":1,"method":""})",
                           R"({"jsonrpc":"2.0","id":1,"method":"a","result":1})",
                           R"({"jsonrpc":"2.0","id":1,"method":"a","error":null})",
                           R"({"jsonrpc":"2.0","id":1,"result":1,"error":{}})",
                           R"({"jsonrpc":"2.0","result":1})",
                           R"({"jsonrpc":"2.0","id":{},"result":1})",
                           R"({"jsonrpc":"2.0","id":true,"result":1})",
                           R"({"jsonrpc":"2.0","id":1,"error":"x"})",
                           R"({"jsonrpc":"2.0","id":1,"error":null})"}) {
    INFO(body);
    CHECK_FALSE(ParseText(body).ok());
    CHECK_FALSE(ParseText("[" + Call("a", "") + "," + body + "]").ok());
  }
  CHECK(ParseText("[" + Call("a", "") + "," + Call("b", "") + "]").ok());
}

TEST_CASE("A member twice, or once in another case, is refused") {
  for (const char* body : {R"({"jsonrpc":"2.0","id":1,"method":"a","method":"b"})",
                           R"({"jsonrpc":"2.0","id":1,"method":"a","Method":"b"})",
                           R"({"jsonrpc":"2.0","id":1,"method":"a","PARAMS":{}})",
                           "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"param\u017f\":{}}"}) {
    INFO(body);
    CHECK_FALSE(ParseText(body).ok());
  }
  CHECK(McpRefused(Call("tools/call", R"({"name":"a","Name":"b"})")));
  CHECK_FALSE(McpRefused(Call("tools/call", R"({"name":"a","arguments":{"Name":"b"}})")));
}

TEST_CASE("The tool that is called is known") {
  Result<JsonRpcRequest> request =
      ParseMcpText("[" + Call("ping", "") + R"(,{"jsonrpc":"2.0","id":"x","result":null},)" +
                       Call("tools/call", R"({"name":"read_status","arguments":{}})") + "]",
                   true);
  REQUIRE(request.ok());
  REQUIRE(request.value().calls.size() == 2);
  CHECK(request.value().calls[0].tool.empty());
  CHECK(request.value().calls[1].tool == "read_status");
}

TEST_CASE("The names of tools are strict on demand") {
  const std::string odd = Call("tools/call", R"({"name":"bad name!"})");
  CHECK(McpRefused(odd, true));
  REQUIRE_FALSE(McpRefused(odd, false));
  CHECK(ParseMcpText(odd, false).value().calls[0].tool == "bad name!");
  const std::string long_name(128, 'a');
  CHECK_FALSE(McpRefused(Call("tools/call", "{\"name\":\"" + long_name + "\"}")));
  CHECK(McpRefused(Call("tools/call", "{\"name\":\"" + long_name + "a\"}")));
  CHECK(McpRefused(Call("tools/call", R"({"name":""})")));
  CHECK_FALSE(McpRefused(Call("tools/call", R"({"name":"A.b_c-9"})")));
}

TEST_CASE("The params of known methods have the protocol's shape") {
  const std::string hello =
      R"({"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a"}})";
  CHECK_FALSE(McpRefused(Call("initialize", hello)));
  CHECK_FALSE(McpRefused(Call("ping", "null")));
  CHECK_FALSE(McpRefused(Call("tools/list", R"({"cursor":"x","_meta":{}})")));
  CHECK_FALSE(McpRefused(Call("prompts/get", R"({"name":"a","arguments":{"b":"c"}})")));
  CHECK_FALSE(McpRefused(Call("vendor/unknown", R"({"anything":[1]})")));
  for (const std::string& body :
       {Call("initialize", "{}"), Call("tools/call", ""), Call("tools/call", "null"),
        Call("tools/call", "[\"a\"]"), Call("tools/call", R"({"name":1})"),
        Call("tools/call", R"({"name":"a","arguments":[]})"), Call("tools/list", "[]"),
        Call("tools/list", R"({"cursor":1})"), Call("resources/read", "{}"),
        Call("prompts/get", R"({"name":"a","arguments":{"b":1}})"),
        Call("notifications/progress", R"({"progressToken":1})"), Call("vendor/unknown", "1")}) {
    INFO(body);
    CHECK(McpRefused(body));
    CHECK(ParseText(body).ok());
  }
}

TEST_CASE("The id of a request of MCP is a string or an integer") {
  for (const std::string id : {"1", "\"\"", "\"a\"", "-7"}) {
    INFO(id);
    CHECK_FALSE(McpRefused(R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"ping"})"));
  }
  for (const std::string id : {"null", "{}", "[]", "true", "1.5"}) {
    INFO(id);
    const std::string body = R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"ping"})";
    CHECK(McpRefused(body));
    CHECK(ParseText(body).ok());
  }
}

}  // namespace
}  // namespace codec
