// SPDX-License-Identifier: Apache-2.0
#include "eval/suite/placeholder.h"

namespace eval {
namespace {

bool IsWordByte(char c, bool first) {
  bool letter = c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (!first && c >= '0' && c <= '9');
}

size_t WordEnd(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && IsWordByte(text[end], end == at)) ++end;
  return end;
}

// The length of the placeholder at `at`, where a '{' is; 0 if none.
size_t LengthAt(std::string_view text, size_t at) {
  size_t colon = WordEnd(text, at + 1);
  if (colon == at + 1 || colon >= text.size() || text[colon] != ':') return 0;
  size_t end = WordEnd(text, colon + 1);
  if (end == colon + 1 || end >= text.size() || text[end] != '}') return 0;
  return end + 1 - at;
}

}  // namespace

std::vector<std::string> PlaceholdersIn(std::string_view text) {
  std::vector<std::string> found;
  for (size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    size_t length = LengthAt(text, at);
    if (length > 0) found.emplace_back(text.substr(at + 1, length - 2));
  }
  return found;
}

std::string ReplacePlaceholders(std::string_view text,
                                const std::function<std::string(const std::string&)>& value) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    size_t brace = text.find('{', at);
    out += text.substr(at, brace - at);
    if (brace == std::string_view::npos) break;
    size_t length = LengthAt(text, brace);
    if (length > 0) {
      out += value(std::string(text.substr(brace + 1, length - 2)));
    } else {
      out += '{';
    }
    at = brace + (length > 0 ? length : 1);
  }
  return out;
}

codec::Json ReplaceInTree(const codec::Json& tree,
                          const std::function<std::string(const std::string&)>& value) {
  if (const std::string* text = tree.string()) return ReplacePlaceholders(*text, value);
  if (const codec::Json::Array* array = tree.array()) {
    codec::Json list = codec::Json::EmptyArray();
    for (const codec::Json& one : *array) list.Push(ReplaceInTree(one, value));
    return list;
  }
  if (const codec::Json::Object* object = tree.object()) {
    codec::Json out = codec::Json::EmptyObject();
    for (const auto& [name, one] : *object) out.Set(name, ReplaceInTree(one, value));
    return out;
  }
  return tree;
}

}  // namespace eval
