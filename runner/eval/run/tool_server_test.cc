// SPDX-License-Identifier: Apache-2.0
#include "eval/run/tool_server.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <optional>

#include "base/fd.h"
#include "base/sys.h"

namespace eval {
namespace {

using codec::Json;

Tool Appending() {
  Tool tool;
  tool.name = "send";
  tool.arguments = {{"area", "x"}};
  tool.act = Tool::Act::kAppend;
  tool.field = "alerts";
  tool.value = Json().Set("area", "{area}");
  return tool;
}

Json StateOf(const char* text) { return codec::ParseJson(text).value(); }

Json CallOf(Json arguments) {
  Json params;
  params.Set("name", "send").Set("arguments", std::move(arguments));
  return Json().Set("id", 1).Set("method", "tools/call").Set("params", std::move(params));
}

Json Numbers(int count) {
  Json list = Json::EmptyArray();
  for (int i = 0; i < count; ++i) list.Push(0);
  return list;
}

// Returns whether the call succeeded.
bool Do(ToolState* state, Json arguments) {
  std::optional<Json> call;
  (void)state->Answer(CallOf(std::move(arguments)), &call);
  return call && !call->BooleanAt("failed");
}

// Returns the first line of the server's answer to a body.
std::string Post(int port, const std::string& body) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(sys::WriteAll(socket.get(), "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                                          std::to_string(body.size()) + "\r\n\r\n" + body)
              .ok());
  const std::string answer = sys::ReadAll(socket.get(), 65536).value();
  return answer.substr(0, answer.find("\r\n"));
}

TEST_CASE("a tool changes the one value that its field names") {
  std::vector<Tool> tools = {Appending()};
  ToolState list(tools, StateOf(R"({"alerts":[],"other":1})"));
  CHECK(Do(&list, Json().Set("area", 7)));
  CHECK(codec::RenderJsonLine(list.state()) == R"({"alerts":[{"area":7}],"other":1})");

  tools[0].act = Tool::Act::kSet;
  tools[0].value = Json("{area}");
  auto set = [&](const char* field, const char* before) {
    tools[0].field = field;
    ToolState state(tools, StateOf(before));
    const bool done = Do(&state, Json().Set("area", 7));
    return std::string(done ? "" : "failed ") + codec::RenderJsonLine(state.state());
  };
  CHECK(set("a.b", R"({"a":{"b":1,"c":2}})") == R"({"a":{"b":7,"c":2}})");
  CHECK(set("a.n", R"({"a":{"b":1}})") == R"({"a":{"b":1,"n":7}})");
  CHECK(set("a.n", R"({"a":null})") == R"({"a":{"n":7}})");
  CHECK(set("a.1.b", R"({"a":[0,{"b":1}]})") == R"({"a":[0,{"b":7}]})");
  CHECK(set("a.9", R"({"a":[0]})") == R"(failed {"a":[0]})");
  CHECK(set("a.b", R"({"a":"text"})") == R"(failed {"a":"text"})");
  CHECK(set("x.y", R"({"a":1})") == R"(failed {"a":1})");
}

TEST_CASE("what tools write into the state is bounded by values as well as by text") {
  const std::vector<Tool> tools = {Appending()};
  ToolState state(tools, StateOf(R"({"alerts":[]})"));
  const size_t most = ToolState::kWrittenMax / (100 * 5000);
  size_t done = 0;
  while (done < 2 * most && Do(&state, Json().Set("area", Numbers(5000)))) ++done;
  CHECK(done > most / 2);
  CHECK(done < 2 * most);
  CHECK(WeightOf(state.state()) < ToolState::kWrittenMax);
}

TEST_CASE("a call with very many values is refused before it is kept") {
  const std::vector<Tool> tools = {Appending()};
  char directory[] = "/tmp/tool_server_test.XXXXXX";
  REQUIRE(::mkdtemp(directory) != nullptr);
  {
    Result<ToolServer> server = ToolServer::Start(tools, StateOf(R"({"alerts":[]})"), directory);
    REQUIRE(server.ok());
    auto send = [&](int values) {
      return Post(server.value().port(),
                  codec::RenderJsonLine(CallOf(Json().Set("area", Numbers(values)))));
    };
    CHECK(send(9000) == "HTTP/1.1 200 OK");
    CHECK(send(480000) == "HTTP/1.1 400 Bad Request");
    size_t taken = 0;
    while (taken < 100 && send(9000) == "HTTP/1.1 200 OK") ++taken;
    CHECK(taken > 10);
    CHECK(taken < 40);
  }
  for (const char* name : {"/tools.jsonl", "/state.json", ""}) {
    CHECK(::remove((std::string(directory) + name).c_str()) == 0);
  }
}

TEST_CASE("a server with a path answers there alone, and knows whether it was asked") {
  const std::vector<Tool> tools = {Appending()};
  char directory[] = "/tmp/tool_server_test.XXXXXX";
  REQUIRE(::mkdtemp(directory) != nullptr);
  codec::SecretMask mask;
  REQUIRE(mask.Add("a-long-secret"));
  const std::string call = codec::RenderJsonLine(CallOf(Json().Set("area", "a-long-secret")));
  for (const char* path : {"/mcp", "/mcp/0123"}) {
    Result<ToolServer> server =
        ToolServer::Start(tools, StateOf(R"({"alerts":[]})"), directory, {.path = path}, &mask);
    REQUIRE(server.ok());
    const bool there = std::string_view(path) == "/mcp";  // Where Post() asks.
    const std::string status = Post(server.value().port(), call);
    CHECK((status == "HTTP/1.1 200 OK") == there);
    REQUIRE(server.value().Stop().ok());
    CHECK(server.value().asked() == there);
    const std::string state = sys::ReadFile(std::string(directory) + "/state.json", 4096).value();
    CHECK((state.find("[CREDENTIAL]") != state.npos) == there);
    CHECK(state.find("a-long-secret") == state.npos);
  }
  for (const char* name : {"/tools.jsonl", "/state.json", ""}) {
    CHECK(::remove((std::string(directory) + name).c_str()) == 0);
  }
}

}  // namespace
}  // namespace eval
