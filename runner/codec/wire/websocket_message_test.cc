// SPDX-License-Identifier: Apache-2.0
#include "codec/wire/websocket_message.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

// Gives `fragments` to one message; the first may be compressed.
std::optional<WebSocketFault> Gather(WebSocketMessage* message,
                                     const std::vector<std::string>& fragments, bool compressed,
                                     std::string* text) {
  for (size_t i = 0; i < fragments.size(); ++i) {
    WebSocketFrame frame{i == 0 ? WebSocketOpcode::kText : WebSocketOpcode::kContinuation,
                         i + 1 == fragments.size(), compressed && i == 0, fragments[i].size()};
    if (std::optional<WebSocketFault> fault = message->Begin(frame)) return fault;
    *message->payload() += fragments[i];
  }
  return message->Finish(text);
}

// Returns what `fragments` become, or the code to close with.
std::string Text(const std::vector<std::string>& fragments, bool compressed = false,
                 WebSocketMessageBounds bounds = {100, 10}) {
  WebSocketMessage message(bounds);
  std::string text;
  std::optional<WebSocketFault> fault = Gather(&message, fragments, compressed, &text);
  return fault ? std::to_string(static_cast<int>(fault->close)) : text;
}

TEST_CASE("A message is its fragments together, in UTF-8 as a whole") {
  CHECK(Text({"a"}) == "a");
  CHECK(Text({""}).empty());
  CHECK(Text({"a", "", "b"}) == "ab");
  CHECK(Text({"\xc3", "\xa9"}) == "\xc3\xa9");
  CHECK(Text({"\xc3"}) == "1007");
  CHECK(Text({"\xed\xa0\x80"}) == "1007");
}

TEST_CASE("A message has bounds in bytes and fragments") {
  CHECK(Text({std::string(60, 'x'), std::string(40, 'x')}).size() == 100);
  CHECK(Text({std::string(60, 'x'), std::string(41, 'x')}) == "1009");
  CHECK(Text(std::vector<std::string>(10)).empty());
  CHECK(Text(std::vector<std::string>(11)) == "1009");
}

TEST_CASE("A message that was taken leaves nothing for the next") {
  WebSocketMessage message({100, 2});
  std::string text;
  for (int i = 0; i < 5; ++i) {
    REQUIRE_FALSE(Gather(&message, {std::string(50, 'x'), std::string(50, 'x')}, false, &text));
    CHECK(text.size() == 100);
  }
}

TEST_CASE("RFC 7692's examples of compressed messages inflate") {
  const std::string hello = "\xf2\x48\xcd\xc9\xc9\x07";
  CHECK(Text({hello + std::string(1, '\0')}, true) == "Hello");
  CHECK(Text({hello.substr(0, 3), hello.substr(3) + std::string(1, '\0')}, true) == "Hello");
  const std::string stored("\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00", 11);
  CHECK(Text({stored}, true) == "Hello");
  const std::string two_blocks("\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00", 13);
  CHECK(Text({two_blocks}, true) == "Hello");
  CHECK(Text({std::string(1, '\0')}, true).empty());
}

TEST_CASE("What does not inflate, or inflates beyond the bound, is refused") {
  CHECK(Text({"\xff\xff\xff"}, true) == "1007");
  // A final block: what comes after its end could be another message to another reader.
  CHECK(Text({std::string("\xf3\x48\xcd\xc9\xc9\x07\x00\x00", 8)}, true) == "1007");
  const std::string zeros("\x62\x60\x18\xd9\x00\x00", 6);  // 256 zero bytes.
  CHECK(Text({zeros}, true, {256, 1}).size() == 256);
  CHECK(Text({zeros}, true, {255, 1}) == "1009");
}

}  // namespace
}  // namespace codec
