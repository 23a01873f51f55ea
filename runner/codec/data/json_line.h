// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace codec {

// Writes one JSON object straight into a text, member by member, in the order of the calls. For
// what is written thousands of times a second; json.h for everything else. Keys are the program's
// own and are not escaped. Values may hold anything: what is not UTF-8 becomes U+FFFD.
class JsonLine {
 public:
  // Appends to `out`, which must outlive this. The object is open until the last Close.
  explicit JsonLine(std::string& out) : out_(out) { out_ += '{'; }

  JsonLine& Text(std::string_view key, std::string_view value);
  JsonLine& Number(std::string_view key, int64_t value);
  // Begins an object or an array as the value; Close ends the innermost one.
  JsonLine& Object(std::string_view key);
  JsonLine& Array(std::string_view key);
  JsonLine& Element(std::string_view value);
  JsonLine& CloseArray();
  JsonLine& Close();
  // Members that were rendered before: "\"a\":1,\"b\":{}".
  JsonLine& Members(std::string_view rendered);

 private:
  void Key(std::string_view key);
  void Separate();

  std::string& out_;
};

// Appends `value` as a string of JSON, in quotes, as JsonLine renders texts.
void AppendJsonText(std::string_view value, std::string* out);

}  // namespace codec
