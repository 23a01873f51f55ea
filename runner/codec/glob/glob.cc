// SPDX-License-Identifier: Apache-2.0
#include "codec/glob/glob.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "codec/glob/glob_program.h"

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

constexpr std::string_view kSpecial = "*?[]{}\\";
constexpr size_t kBitsPerWord = 64;

// One component against one of a value: '*' is any run of bytes.
bool MatchesComponent(std::string_view pattern, std::string_view value) {
  size_t p = 0;
  size_t v = 0;
  size_t star = std::string_view::npos;  // Behind the last star, and from where it goes on.
  size_t resume = 0;
  while (v < value.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      resume = v;
    } else if (p < pattern.size() && pattern[p] == value[v]) {
      ++p;
      ++v;
    } else if (star != std::string_view::npos) {
      p = star;
      v = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::string_view Component(std::string_view text, size_t begin) {
  return text.substr(begin, text.find('/', begin) - begin);
}

// Stars alone, with '/': "**" is any number of components, at least one at the end. The first place
// where the components behind a "**" match is as good as any later one, so that only the last "**"
// is ever tried again.
bool MatchesStars(std::string_view pattern, std::string_view value) {
  size_t p = 0;  // The place where the next component begins; beyond the size if there is none.
  size_t v = 0;
  size_t star = std::string_view::npos;
  size_t resume = 0;
  while (v <= value.size()) {
    std::string_view wanted = p <= pattern.size() ? Component(pattern, p) : std::string_view();
    std::string_view found = Component(value, v);
    if (p <= pattern.size() && wanted == "**") {
      if (p + wanted.size() == pattern.size()) return true;
      p += wanted.size() + 1;
      star = p;
      resume = v;
    } else if (p <= pattern.size() && MatchesComponent(wanted, found)) {
      p += wanted.size() + 1;
      v += found.size() + 1;
    } else if (star != std::string_view::npos) {
      p = star;
      resume += Component(value, resume).size() + 1;
      v = resume;
    } else {
      return false;
    }
  }
  return p > pattern.size();
}

}  // namespace

// Fills in the ends, and the shape when it is one of those that need no machine.
void Glob::FindShape(std::string_view pattern, char delimiter) {
  delimiter_ = delimiter;
  size_t first = std::min(pattern.find_first_of(kSpecial), pattern.size());
  std::string_view prefix = pattern.substr(0, first);
  std::string_view suffix;
  bool stars_only = pattern.find_first_of("?[]{}\\") == std::string_view::npos;
  size_t last = pattern.rfind('*');
  if (stars_only && last != std::string_view::npos) suffix = pattern.substr(last + 1);
  shape_ = Shape::kMachine;
  if (first == pattern.size()) {
    shape_ = Shape::kLiteral;
  } else if (stars_only && first == last) {
    shape_ = Shape::kOneStar;
  } else if (stars_only && delimiter == '/' && last == first + 1) {
    if (suffix.empty() && prefix.ends_with('/')) shape_ = Shape::kAllBelow;
    if (prefix.empty() && suffix.size() > 1 && suffix[0] == '/') shape_ = Shape::kAnywhere;
  }
  if (shape_ == Shape::kMachine) {
    // Two "**" in a row, or one alone, have quirks of their own.
    bool plain = stars_only && delimiter == '/' && pattern.find("**/**") == std::string_view::npos;
    if (plain && pattern != "**" && pattern != "**/") {
      shape_ = Shape::kStars;
      stars_ = pattern;
      for (std::string_view text : RequiredTexts(pattern, delimiter)) {
        if (text.size() > required_.size()) required_ = text;
      }
    }
    // A "**" between delimiters may stand for nothing but one of them, so what touches it does not
    // count as an end.
    if (delimiter != '/' && prefix.ends_with(delimiter)) prefix.remove_suffix(1);
    if (suffix.starts_with(delimiter)) suffix.remove_prefix(1);
  }
  prefix_ = prefix;
  suffix_ = suffix;
}

Result<Glob> Glob::Parse(std::string_view pattern, char delimiter) {
  if (pattern.size() > kGlobBytesMax) return Error{Code::kInvalid, "longer than 4096 bytes"};
  if (HasZero(pattern)) return Error{Code::kInvalid, "a zero byte"};
  Glob glob;
  glob.FindShape(pattern, delimiter);
  if (glob.shape_ != Shape::kMachine) return glob;
  GlobTokens tokens = TRY(ParseSeparatedGlob(Swap(pattern, delimiter)));
  GlobProgram(&glob).Compile(tokens);
  return glob;
}

Result<Glob> Glob::ParseCrossing(std::string_view pattern) {
  if (pattern.size() > kGlobBytesMax) return Error{Code::kInvalid, "longer than 4096 bytes"};
  Glob glob;
  glob.shape_ = Shape::kMachine;
  GlobTokens tokens = TRY(ParseCrossingGlob(pattern));
  GlobProgram(&glob).Compile(tokens);
  return glob;
}

// Adds all that is reachable without a byte. Splits lead to states of lower numbers (GlobProgram
// adds what follows first), except for the body of a run, which is not a split; so one pass from
// the top is enough.
void Glob::Close(Words* set) const {
  for (size_t word = splits_.size(); word-- > 0;) {
    uint64_t pending = set[word] & splits_[word];
    while (pending != 0) {
      size_t bit = kBitsPerWord - 1 - static_cast<size_t>(std::countl_zero(pending));
      pending &= ~(uint64_t{1} << bit);
      const State& split = states_[word * kBitsPerWord + bit];
      for (uint32_t to : {split.next, split.other}) {
        uint64_t mask = uint64_t{1} << (to % kBitsPerWord);
        if ((set[to / kBitsPerWord] & mask) != 0) continue;
        set[to / kBitsPerWord] |= mask;
        if (to / kBitsPerWord == word) pending |= mask & splits_[word];
      }
    }
  }
}

void Glob::Step(uint8_t byte, const Words* now, Words* then) const {
  for (size_t word = 0; word < splits_.size(); ++word) {
    uint64_t alive = now[word] & ~splits_[word];
    while (alive != 0) {
      size_t bit = static_cast<size_t>(std::countr_zero(alive));
      alive &= alive - 1;
      const State& state = states_[word * kBitsPerWord + bit];
      bool passes = (state.op == Op::kByte && state.byte == byte) || state.op == Op::kAny ||
                    (state.op == Op::kClass && classes_[state.other].test(byte));
      if (passes) then[state.next / kBitsPerWord] |= uint64_t{1} << (state.next % kBitsPerWord);
    }
  }
}

bool Glob::RunMachine(std::string_view value) const {
  size_t words = splits_.size();
  std::array<Words, kGlobStatesMax / kBitsPerWord> now;
  std::array<Words, kGlobStatesMax / kBitsPerWord> then;
  std::fill_n(now.begin(), words, 0);
  now[start_ / kBitsPerWord] |= uint64_t{1} << (start_ % kBitsPerWord);
  Close(now.data());
  auto take = [&](char c) {
    std::fill_n(then.begin(), words, 0);
    Step(static_cast<uint8_t>(c), now.data(), then.data());
    Close(then.data());
    std::copy_n(then.begin(), words, now.begin());
  };
  for (char c : value) {
    if (delimiter_ == '/') {
      take(c);
    } else if (c == '/') {
      take('\0');
    } else if (c == delimiter_) {
      for (char part : {'/', c, '/'}) take(part);
    } else {
      take(c);
    }
    if (std::all_of(now.begin(), now.begin() + static_cast<ptrdiff_t>(words),
                    [](Words word) { return word == 0; })) {
      return false;
    }
  }
  return (now[0] & 1) != 0;  // The state that matches was added first.
}

bool Glob::Matches(std::string_view value) const {
  if (HasZero(value)) return false;
  if (shape_ == Shape::kLiteral) return value == prefix_;
  if (shape_ == Shape::kAnywhere) {
    return value.ends_with(suffix_) || value == std::string_view(suffix_).substr(1);
  }
  if (!value.starts_with(prefix_)) return false;
  if (shape_ == Shape::kAllBelow) return true;
  if (!value.ends_with(suffix_)) return false;
  if (shape_ == Shape::kMachine) return RunMachine(value);
  if (shape_ == Shape::kStars) {
    return value.find(required_) != std::string_view::npos && MatchesStars(stars_, value);
  }
  if (value.size() < prefix_.size() + suffix_.size()) return false;
  std::string_view middle =
      value.substr(prefix_.size(), value.size() - prefix_.size() - suffix_.size());
  return middle.find(delimiter_) == std::string_view::npos;
}

bool GlobMatches(std::string_view pattern, std::string_view value, char delimiter) {
  Result<Glob> glob = Glob::Parse(pattern, delimiter);
  return glob.ok() && glob.value().Matches(value);
}

PathSelector::PathSelector(std::string_view selector) : text_(selector) {
  if (selector.empty() || selector == "**" || selector == "/**") return;
  kind_ = Kind::kLiteral;
  if (selector.ends_with("/**")) {
    kind_ = Kind::kBelow;
    text_.resize(selector.size() - 3);
    return;
  }
  Result<Glob> glob = Glob::ParseCrossing(selector);
  if (!glob.ok()) return;
  kind_ = Kind::kGlob;
  glob_ = std::move(glob).value();
}

bool PathSelector::Matches(std::string_view path) const {
  switch (kind_) {
    case Kind::kEvery:
      return true;
    case Kind::kBelow:
      // The selector's own text, too: it is under X.
      return path.starts_with(text_) && (path.size() == text_.size() || path[text_.size()] == '/');
    case Kind::kLiteral:
      return path == text_;
    case Kind::kGlob:
      return path == text_ || glob_.Matches(path);
  }
  return false;
}

std::vector<std::string_view> RequiredTexts(std::string_view pattern, char delimiter) {
  std::vector<std::string_view> texts;
  if (pattern.size() > kGlobBytesMax || HasZero(pattern)) return texts;
  if (pattern.find_first_of("[]{}\\") != std::string_view::npos) return texts;
  for (size_t at = 0; at < pattern.size();) {
    size_t end = std::min(pattern.find_first_of("*?", at), pattern.size());
    std::string_view text = pattern.substr(at, end - at);
    // A "**" may stand for nothing but one of the delimiters beside it.
    if (at > 0 && text.starts_with(delimiter)) text.remove_prefix(1);
    if (end < pattern.size() && text.ends_with(delimiter)) text.remove_suffix(1);
    if (!text.empty()) texts.push_back(text);
    at = end + 1;
  }
  return texts;
}

bool PathSelectorMatches(std::string_view selector, std::string_view path) {
  return PathSelector(selector).Matches(path);
}

}  // namespace codec
