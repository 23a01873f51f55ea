// SPDX-License-Identifier: Apache-2.0
#include "base/wire.h"

#include <catch2/catch.hpp>

namespace wire {
namespace {

TEST_CASE("Values come back in their order, and nothing but all of them") {
  using Choice = std::variant<uint32_t, std::string>;
  const std::vector<std::string> list = {"a", "", std::string("\0b", 2)};
  std::string message = Write(true, int16_t{-2}, std::string("text"), list, Choice("chosen"),
                              Error{Code::kInvalid, "why", "hint"});
  auto read = [](std::string_view bytes) {
    bool yes = false;
    int16_t number = 0;
    std::string text;
    std::vector<std::string> texts;
    Choice choice;
    Error error;
    bool whole = Read(bytes, yes, number, text, texts, choice, error);
    if (whole) {
      CHECK(yes);
      CHECK(number == -2);
      CHECK(text == "text");
      CHECK(texts.at(2).size() == 2);
      CHECK(std::get<std::string>(choice) == "chosen");
      CHECK(error.code == Code::kInvalid);
      CHECK(error.hint == "hint");
    }
    return whole;
  };
  CHECK(read(message));
  for (size_t size = 0; size < message.size(); ++size) CHECK_FALSE(read(message.substr(0, size)));
  CHECK_FALSE(read(message + "x"));
}

TEST_CASE("A size beyond the message is refused before anything is made of it") {
  std::vector<uint8_t> list;
  std::string text;
  CHECK(Read(Write(uint32_t{2}) + "ab", list));
  CHECK_FALSE(Read(Write(~uint32_t{0}) + "ab", list));
  CHECK(list.size() == 2);
  CHECK_FALSE(Read(Write(~uint32_t{0}) + "ab", text));
}

TEST_CASE("What is no value of its type is refused") {
  bool yes = false;
  CHECK(Read("\x01", yes));
  CHECK_FALSE(Read("\x02", yes));
  Error error{Code::kBug, "why"};
  CHECK(Read(Write(error), error));
  CHECK_FALSE(Read(Write(Error{static_cast<Code>(99), "why"}), error));
  error = Error{Code::kBug, "why"};
  error.kind = ErrorKind::kReported;
  error.place = {"p.yml", 3, 5};
  const std::string message = Write(error);
  REQUIRE(Read(message, error));
  CHECK(error.kind == ErrorKind::kReported);
  CHECK(error.place.file == "p.yml");
  CHECK(error.place.line == 3);
  CHECK(error.place.column == 5);
  error.kind = static_cast<ErrorKind>(99);
  CHECK_FALSE(Read(Write(error), error));
  std::variant<uint8_t, std::string> choice;
  CHECK(Read(std::string("\0a", 2), choice));
  CHECK_FALSE(
      Read("\x02"
           "a",
           choice));
}

TEST_CASE("An error is cut to fit into a message") {
  Error error{Code::kIo, std::string(100'000, 'x')};
  REQUIRE(Read(Write(error), error));
  CHECK(error.what.size() == kErrorTextBytesMax);
}

}  // namespace
}  // namespace wire
