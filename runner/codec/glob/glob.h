// SPDX-License-Identifier: Apache-2.0
// The two glob dialects of OpenShell's policies. Both run as a state machine: the time is at most
// proportional to the length of the pattern times that of the value.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace codec {

// One compiled pattern. Bytes, not characters: paths and hosts are ASCII by the time they get here.
// Matching allocates nothing.
class Glob {
 public:
  Glob() = default;  // Matches the empty value alone.

  // Parses the dialect of rules, binaries, hosts and query values: globset with a literal
  // separator. `*` and `?` stop at `delimiter`; `**` as a whole component crosses it; `[a-z]`,
  // `[!x]`, `{a,b}` and `\x`. With a delimiter other than '/', '*' crosses '/' (regorus swaps the
  // two). Fails with kInvalid and what is wrong: an unclosed class or group, a dangling backslash,
  // over 4096 bytes.
  static Result<Glob> Parse(std::string_view pattern, char delimiter);

  // Parses the dialect of Rust's `glob` crate without a literal separator: `*` crosses '/'; `**`
  // must be a whole component. No groups, no escapes.
  static Result<Glob> ParseCrossing(std::string_view pattern);

  // A value with a zero byte matches nothing.
  bool Matches(std::string_view value) const;

 private:
  friend class GlobProgram;

  enum class Op : uint8_t { kByte, kClass, kAny, kSplit, kMatch };
  struct State {
    Op op = Op::kMatch;
    uint8_t byte = 0;
    uint32_t next = 0;
    uint32_t other = 0;  // kSplit: the second way. kClass: the index of the class.
  };
  // The shapes nearly every pattern has are decided by their ends alone.
  enum class Shape : uint8_t {
    kLiteral,   // `prefix_` is the value.
    kOneStar,   // Between the ends no delimiter.
    kAllBelow,  // "X/**"
    kAnywhere,  // "**/X"
    kStars,     // No other pattern characters: component by component.
    kMachine,   // The ends rule out most values, the states decide.
  };
  // A set of states as bits, of as many words as the machine has.
  using Words = uint64_t;

  void FindShape(std::string_view pattern, char delimiter);
  bool RunMachine(std::string_view value) const;
  void Step(uint8_t byte, const Words* now, Words* then) const;
  void Close(Words* set) const;

  char delimiter_ = '/';
  Shape shape_ = Shape::kLiteral;
  std::string prefix_;
  std::string suffix_;
  std::string stars_;     // With kStars: the pattern,
  std::string required_;  // and its longest text that every value holds.
  std::vector<State> states_;
  std::vector<Words> splits_;  // The states that are kSplit.
  std::vector<std::bitset<256>> classes_;
  uint32_t start_ = 0;
};

// An endpoint's `path` selector: "", "**" and "/**" are every path; "X/**" is X and all below it;
// otherwise the crossing dialect; what does not parse is compared as it stands.
class PathSelector {
 public:
  explicit PathSelector(std::string_view selector);
  bool Matches(std::string_view path) const;

 private:
  enum class Kind : uint8_t { kEvery, kBelow, kLiteral, kGlob };
  Kind kind_ = Kind::kEvery;
  std::string text_;  // X of "X/**"; the selector itself.
  Glob glob_;
};

// Returns pieces of `pattern` that every value it matches holds (Glob::Parse's dialect, which
// `delimiter` is for). A piece with which the pattern begins, the value begins with. None for a
// pattern with classes, groups or escapes, or one that does not parse: nothing is known of those.
std::vector<std::string_view> RequiredTexts(std::string_view pattern, char delimiter);

// Parse and match in one; a pattern that does not parse matches nothing.
bool GlobMatches(std::string_view pattern, std::string_view value, char delimiter);

// Returns the same for a selector.
bool PathSelectorMatches(std::string_view selector, std::string_view path);

}  // namespace codec
