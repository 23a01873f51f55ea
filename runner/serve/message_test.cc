// SPDX-License-Identifier: Apache-2.0
#include "serve/message.h"

#include <catch2/catch.hpp>

namespace serve {
namespace {

Request Good(std::string_view line) {
  std::variant<Request, BadMessage> message = ParseMessage(line);
  REQUIRE(std::holds_alternative<Request>(message));
  return std::get<Request>(message);
}

// The answer's code, and the id that it is for.
std::pair<int, std::string> Bad(std::string_view line) {
  std::variant<Request, BadMessage> message = ParseMessage(line);
  REQUIRE(std::holds_alternative<BadMessage>(message));
  const BadMessage& bad = std::get<BadMessage>(message);
  CHECK_FALSE(bad.what.empty());
  return {static_cast<int>(bad.fault), bad.id};
}

TEST_CASE("a request has an id as it was written, and a notification has none") {
  Request request = Good(R"({"jsonrpc":"2.0","id":7,"method":"exec","params":{"sandbox":"a"}})");
  CHECK(request.id == "7");
  CHECK(request.method == "exec");
  CHECK(request.params.StringAt("sandbox") == "a");
  CHECK(Good(R"({"jsonrpc":"2.0","id":"a\"b","method":"x"})").id == R"("a\"b")");
  CHECK(Good(R"({"jsonrpc":"2.0","method":"cancel"})").id.empty());
}

TEST_CASE("what is not a request is answered by JSON-RPC's codes") {
  using Answer = std::pair<int, std::string>;
  CHECK(Bad("{") == Answer(-32700, "null"));
  CHECK(Bad("\xff") == Answer(-32700, "null"));
  CHECK(Bad(R"({"a":1,"a":2})") == Answer(-32700, "null"));
  CHECK(Bad("[]") == Answer(-32600, "null"));
  CHECK(Bad(R"({"id":3,"method":"x"})") == Answer(-32600, "3"));
  CHECK(Bad(R"({"jsonrpc":"1.0","id":3,"method":"x"})") == Answer(-32600, "3"));
  CHECK(Bad(R"({"jsonrpc":"2.0","id":3})") == Answer(-32600, "3"));
  CHECK(Bad(R"({"jsonrpc":"2.0","id":3.5,"method":"x"})") == Answer(-32600, "null"));
  CHECK(Bad(R"({"jsonrpc":"2.0","id":null,"method":"x"})") == Answer(-32600, "null"));
  CHECK(Bad(R"({"jsonrpc":"2.0","id":3,"method":"x","params":[1]})") == Answer(-32602, "3"));
}

TEST_CASE("an error has the exit code, the kind and the hint of the command line") {
  CHECK(RenderError("1", {Code::kUsage, "no", "agentic-ci x"}) ==
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":64,\"message\":\"no\",\"data\":"
        "{\"exit_code\":64,\"kind\":\"usage\",\"hint\":\"agentic-ci x\"}}}\n");
}

TEST_CASE("what a sandbox said does not end a line") {
  for (const std::string& line :
       {RenderResult("1", codec::Json("a\nb\r")), RenderError("1", {Code::kIo, "a\nb"}),
        RenderNotification("output", "\"text\":\"a\"")}) {
    CHECK(line.find('\n') == line.size() - 1);
  }
}

}  // namespace
}  // namespace serve
