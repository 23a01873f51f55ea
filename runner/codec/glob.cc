// SPDX-License-Identifier: Apache-2.0
#include "codec/glob.h"

#include <optional>

#include "codec/glob_program.h"

namespace codec {
namespace {

// regorus gives `glob.match` other delimiters than '/' by renaming: '/' becomes a zero byte, which
// no value may contain, and each delimiter becomes a component of its own between slashes.
std::string Swap(std::string_view text, char delimiter) {
  if (delimiter == '/') return std::string(text);
  std::string swapped;
  swapped.reserve(text.size() + 16);
  for (char c : text) {
    if (c == '/') {
      swapped.push_back('\0');
    } else if (c == delimiter) {
      swapped.push_back('/');
      swapped.push_back(delimiter);
      swapped.push_back('/');
    } else {
      swapped.push_back(c);
    }
  }
  return swapped;
}

bool HasZero(std::string_view text) { return text.find('\0') != std::string_view::npos; }

// The shapes nearly every pattern has, decided without a machine: no star, one star, "X/**" and
// "**/X". Nothing when the pattern is of another shape and its ends do not rule the value out.
std::optional<bool> MatchSimple(std::string_view pattern, std::string_view value, char delimiter) {
  if (pattern.size() > kGlobBytesMax || HasZero(pattern) || HasZero(value)) return false;
  if (pattern.find_first_of("?[]{}\\") != std::string_view::npos) return std::nullopt;
  size_t first = pattern.find('*');
  if (first == std::string_view::npos) return pattern == value;
  size_t last = pattern.rfind('*');
  std::string_view prefix = pattern.substr(0, first);
  std::string_view suffix = pattern.substr(last + 1);
  if (first == last) {
    bool ends = value.size() >= prefix.size() + suffix.size() && value.starts_with(prefix) &&
                value.ends_with(suffix);
    if (!ends) return false;
    std::string_view middle =
        value.substr(prefix.size(), value.size() - prefix.size() - suffix.size());
    return middle.find(delimiter) == std::string_view::npos;
  }
  if (delimiter != '/') {
    // A "**" between delimiters may stand for nothing but one of them, so the ends are compared
    // without what touches it.
    if (prefix.ends_with(delimiter)) prefix.remove_suffix(1);
    if (suffix.starts_with(delimiter)) suffix.remove_prefix(1);
  } else if (last == first + 1) {
    if (suffix.empty() && prefix.ends_with('/')) return value.starts_with(prefix);
    if (prefix.empty() && suffix.size() > 1 && suffix[0] == '/') {
      return value.ends_with(suffix) || value == suffix.substr(1);
    }
  }
  if (delimiter == '/' && suffix.starts_with('/')) suffix.remove_prefix(1);
  if (!value.starts_with(prefix) || !value.ends_with(suffix)) return false;
  return std::nullopt;
}

}  // namespace

Result<Glob> Glob::Parse(std::string_view pattern, char delimiter) {
  if (pattern.size() > kGlobBytesMax) return Error{Code::kInvalid, "longer than 4096 bytes"};
  if (HasZero(pattern)) return Error{Code::kInvalid, "a zero byte"};
  Glob glob;
  glob.delimiter_ = delimiter;
  if (pattern.find_first_of("*?[]{}\\") == std::string_view::npos) {
    glob.literal_ = true;
    glob.text_ = std::string(pattern);
    return glob;
  }
  GlobTokens tokens = TRY(ParseSeparatedGlob(Swap(pattern, delimiter)));
  GlobProgram(&glob).Compile(tokens);
  return glob;
}

Result<Glob> Glob::ParseCrossing(std::string_view pattern) {
  if (pattern.size() > kGlobBytesMax) return Error{Code::kInvalid, "longer than 4096 bytes"};
  Glob glob;
  GlobTokens tokens = TRY(ParseCrossingGlob(pattern));
  GlobProgram(&glob).Compile(tokens);
  return glob;
}

// Adds `state` and all that is reachable from it without a byte. `seen` holds the step in which a
// state was last added, so that every state is visited once per byte.
void Glob::AddState(uint32_t state, std::vector<uint32_t>* list, std::vector<uint32_t>* seen,
                    uint32_t step) const {
  std::vector<uint32_t> pending = {state};
  while (!pending.empty()) {
    uint32_t current = pending.back();
    pending.pop_back();
    if ((*seen)[current] == step) continue;
    (*seen)[current] = step;
    const State& at = states_[current];
    if (at.op == Op::kSplit) {
      pending.push_back(at.other);
      pending.push_back(at.next);
    } else {
      list->push_back(current);
    }
  }
}

bool Glob::Matches(std::string_view value) const {
  if (HasZero(value)) return false;
  if (literal_) return value == text_;
  std::string swapped = Swap(value, delimiter_);
  std::vector<uint32_t> seen(states_.size(), 0);
  std::vector<uint32_t> now;
  std::vector<uint32_t> then;
  uint32_t step = 1;
  AddState(start_, &now, &seen, step);
  for (char c : swapped) {
    uint8_t byte = static_cast<uint8_t>(c);
    then.clear();
    ++step;
    for (uint32_t index : now) {
      const State& state = states_[index];
      bool passes = (state.op == Op::kByte && state.byte == byte) || state.op == Op::kAny ||
                    (state.op == Op::kClass && classes_[state.other].test(byte));
      if (passes) AddState(state.next, &then, &seen, step);
    }
    now.swap(then);
    if (now.empty()) return false;
  }
  for (uint32_t index : now) {
    if (states_[index].op == Op::kMatch) return true;
  }
  return false;
}

bool GlobMatches(std::string_view pattern, std::string_view value, char delimiter) {
  std::optional<bool> simple = MatchSimple(pattern, value, delimiter);
  if (simple) return *simple;
  Result<Glob> glob = Glob::Parse(pattern, delimiter);
  return glob.ok() && glob.value().Matches(value);
}

bool PathSelectorMatches(std::string_view selector, std::string_view path) {
  if (selector.empty() || selector == "**" || selector == "/**") return true;
  if (selector == path) return true;
  if (selector.ends_with("/**")) {
    std::string_view prefix = selector.substr(0, selector.size() - 3);
    return path == prefix ||
           (path.starts_with(prefix) && path.size() > prefix.size() && path[prefix.size()] == '/');
  }
  Result<Glob> glob = Glob::ParseCrossing(selector);
  return glob.ok() && glob.value().Matches(path);
}

}  // namespace codec
