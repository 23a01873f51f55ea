// SPDX-License-Identifier: Apache-2.0
#include "eval/suite/yaml_value.h"

#include <charconv>
#include <system_error>

namespace eval {
namespace {

Result<codec::Json> ScalarOf(const std::string& file, const codec::YamlNode& node) {
  if (node.quoted) return codec::Json(node.text);
  if (std::optional<bool> boolean = codec::YamlBool(node)) return codec::Json(*boolean);
  const char* begin = node.text.data();
  const char* end = begin + node.text.size();
  if (begin != end && *begin == '+') ++begin;
  int64_t whole = 0;
  auto [whole_end, whole_error] = std::from_chars(begin, end, whole);
  if (begin != end && whole_end == end) {
    if (whole_error == std::errc()) return codec::Json(whole);
    return codec::InvalidAt(file, node.at, "the number is out of range", "'" + node.text + "'");
  }
  if (!codec::IsYamlNumberOrBool(node)) return codec::Json(node.text);
  double number = 0;
  auto [number_end, number_error] = std::from_chars(begin, end, number);
  if (number_end == end && number_error == std::errc()) return codec::Json(number);
  return codec::Json(node.text);
}

}  // namespace

Result<codec::Json> JsonOf(const std::string& file, const codec::YamlNode& node) {
  switch (node.kind) {
    case codec::YamlKind::kNull:
      return codec::Json();
    case codec::YamlKind::kScalar:
      return ScalarOf(file, node);
    case codec::YamlKind::kSequence: {
      codec::Json list = codec::Json::EmptyArray();
      for (const codec::YamlNode& item : node.items) {
        codec::Json value = TRY(JsonOf(file, item));
        list.Push(std::move(value));
      }
      return list;
    }
    case codec::YamlKind::kMapping: {
      codec::Json object = codec::Json::EmptyObject();
      for (const codec::YamlEntry& entry : node.entries) {
        codec::Json value = TRY(JsonOf(file, entry.value));
        object.Set(entry.key, std::move(value));
      }
      return object;
    }
  }
  return codec::Json();
}

Status RefuseNul(const std::string& file, const codec::YamlNode& node) {
  auto check = [&](const std::string& text, codec::Position at) -> Status {
    if (text.find('\0') == std::string::npos) return Ok();
    return codec::InvalidAt(file, at, "a text may not have a NUL in it");
  };
  TRY(check(node.text, node.at));
  for (const codec::YamlNode& item : node.items) TRY(RefuseNul(file, item));
  for (const codec::YamlEntry& entry : node.entries) {
    TRY(check(entry.key, entry.at));
    TRY(RefuseNul(file, entry.value));
  }
  return Ok();
}

}  // namespace eval
