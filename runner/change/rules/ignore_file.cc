// SPDX-License-Identifier: Apache-2.0
#include "change/rules/ignore_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace change {
namespace {

constexpr size_t kNone = std::string_view::npos;

bool InNamedClass(std::string_view name, unsigned char c, bool* known) {
  constexpr std::array<std::pair<std::string_view, int (*)(int)>, 12> kClasses = {
      {{"alnum", std::isalnum},
       {"alpha", std::isalpha},
       {"blank", std::isblank},
       {"cntrl", std::iscntrl},
       {"digit", std::isdigit},
       {"graph", std::isgraph},
       {"lower", std::islower},
       {"print", std::isprint},
       {"punct", std::ispunct},
       {"space", std::isspace},
       {"upper", std::isupper},
       {"xdigit", std::isxdigit}}};
  for (const auto& [one, contains] : kClasses) {
    if (one == name) return c < 128 && contains(c) != 0;
  }
  *known = false;
  return false;
}

// Reads the set of characters at `at` of the pattern, a `[`. Returns the position behind it, or
// kNone if it does not end; `*matches` says whether it has `c`.
size_t ReadSet(std::string_view pattern, size_t at, unsigned char c, bool* matches) {
  auto next = [&] { return ++at < pattern.size() ? static_cast<unsigned char>(pattern[at]) : 0; };
  int now = next();
  const bool negated = now == '!' || now == '^';
  if (negated) now = next();
  bool found = false;
  int before = 0;  // The character that a range may begin with.
  do {
    if (now == '-' && before != 0 && at + 1 < pattern.size() && pattern[at + 1] != ']') {
      if ((now = next()) == '\\') now = next();
      found = found || (before <= c && c <= now);
      before = now == 0 ? 0 : -1;
    } else if (now == '[' && at + 1 < pattern.size() && pattern[at + 1] == ':') {
      const size_t end = pattern.find(']', at + 2);
      if (end == kNone) return kNone;
      if (end == at + 2 || pattern[end - 1] != ':') {
        found = found || c == '[';
        before = '[';
      } else {
        bool known = true;
        const std::string_view name = pattern.substr(at + 2, end > at + 3 ? end - at - 3 : 0);
        found = InNamedClass(name, c, &known) || found;
        if (!known) return kNone;
        at = end;
        before = -1;
      }
    } else {
      if (now == '\\') now = next();
      found = found || c == now;
      before = now;
    }
    if (now == 0) return kNone;
    if (before == -1) before = 0;
    now = next();
  } while (now != ']');
  *matches = found != negated;
  return at + 1;
}

// Returns the position behind the element at `at` of the pattern if that matches `c`, or kNone.
size_t MatchOne(std::string_view pattern, size_t at, char c) {
  if (at >= pattern.size()) return kNone;
  if (pattern[at] == '?') return at + 1;
  if (pattern[at] == '[') {
    bool matches = false;
    const size_t end = ReadSet(pattern, at, static_cast<unsigned char>(c), &matches);
    return matches ? end : kNone;
  }
  if (pattern[at] == '\\') ++at;
  return at < pattern.size() && pattern[at] == c ? at + 1 : kNone;
}

// Matches what is between two slashes. Only the last star can have to take more: what the ones
// before it have to take is the least that they can.
bool MatchName(std::string_view pattern, std::string_view name) {
  size_t star = kNone;
  size_t taken = 0;  // How far that star reaches.
  for (size_t p = 0, n = 0;;) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
      continue;
    }
    const size_t behind = n < name.size() ? MatchOne(pattern, p, name[n]) : kNone;
    if (behind != kNone) {
      p = behind;
      ++n;
      continue;
    }
    if (n == name.size() && p == pattern.size()) return true;
    if (star == kNone || taken >= name.size()) return false;
    p = star + 1;
    n = ++taken;
  }
}

bool IsDeep(std::string_view segment) {
  return segment.size() > 1 && segment.find_first_not_of('*') == kNone;
}

// Matches segment by segment, with `**` in the part of the star.
bool MatchPath(const std::vector<std::string>& segments,
               const std::vector<std::string_view>& names) {
  size_t star = kNone;
  size_t taken = 0;
  for (size_t s = 0, n = 0;;) {
    if (s < segments.size() && IsDeep(segments[s])) {
      if (s + 1 == segments.size()) return n < names.size();  // `**` at the end: all beneath.
      star = s++;
      taken = n;
      continue;
    }
    if (s < segments.size() && n < names.size() && MatchName(segments[s], names[n])) {
      ++s;
      ++n;
      continue;
    }
    if (n == names.size() && s == segments.size()) return true;
    if (star == kNone || taken >= names.size()) return false;
    s = star + 1;
    n = ++taken;
  }
}

// Splits a pattern at its slashes, but for those in a set. Returns none if it matches nothing. A
// backslash before a slash makes one difference to git: `**\/` stands for one directory at least.
std::vector<std::string> Split(std::string_view pattern) {
  std::vector<std::string> segments(1);
  for (size_t at = 0; at < pattern.size();) {
    const bool escaped = pattern.substr(at).starts_with("\\/");
    if (escaped) ++at;
    size_t end = at + 1;
    bool matches = false;
    if (pattern[at] == '[') end = ReadSet(pattern, at, 0, &matches);
    if (pattern[at] == '\\') end = at + 2;
    if (end == kNone || end > pattern.size()) return {};
    if (pattern[at] == '/') {
      if (escaped && IsDeep(segments.back())) segments.emplace_back("*");
      segments.emplace_back();
    } else {
      segments.back() += pattern.substr(at, end - at);
    }
    at = end;
  }
  return segments;
}

// Without the blanks at its end that no backslash is before.
std::string_view Trimmed(std::string_view line) {
  size_t end = 0;
  for (size_t at = 0; at < line.size(); ++at) {
    if (line[at] == ' ') continue;
    if (line[at] == '\\') ++at;
    end = std::min(at + 1, line.size());
  }
  return line.substr(0, end);
}

}  // namespace

IgnoreFile::IgnoreFile(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && line.front() != '#') Add(Trimmed(line));
  }
}

void IgnoreFile::Add(std::string_view line) {
  Rule rule;
  rule.wanted = line.starts_with('!');
  if (rule.wanted) line.remove_prefix(1);
  rule.directories = line.ends_with('/');
  if (rule.directories) line.remove_suffix(1);
  rule.by_name = line.find('/') == kNone;
  if (line.starts_with('/')) line.remove_prefix(1);
  rule.segments = Split(line);
  if (!rule.segments.empty() && !line.empty()) rules_.push_back(std::move(rule));
}

std::optional<bool> IgnoreFile::Decide(std::string_view path, bool directory) const {
  std::vector<std::string_view> names;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    names.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (rule->directories && !directory) continue;
    const bool matches = rule->by_name ? MatchName(rule->segments.front(), names.back())
                                       : MatchPath(rule->segments, names);
    if (matches) return !rule->wanted;
  }
  return std::nullopt;
}

}  // namespace change
