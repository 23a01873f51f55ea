// SPDX-License-Identifier: Apache-2.0
#include "advise/cover.h"

#include <algorithm>
#include <string>
#include <vector>

#include "codec/glob/glob.h"
#include "policy/model/host_pattern.h"

namespace advise {
namespace {

constexpr size_t kAlternativesMax = 64;
// A byte in no pattern, so only a star of the wide one can take it.
constexpr char kFresh = '\x01';

Cover Of(bool covers) { return covers ? Cover::kYes : Cover::kNo; }

bool IsLiteral(std::string_view pattern) {
  return pattern.find_first_of("*?[]{}\\") == std::string_view::npos;
}

// `a{b,c}` is ab and ac. Returns the pattern as it stands if groups are nested or too many.
std::vector<std::string> Alternatives(std::string_view pattern) {
  std::vector<std::string> done;
  std::vector<std::string> open = {std::string(pattern)};
  while (!open.empty() && done.size() + open.size() <= kAlternativesMax) {
    std::string text = std::move(open.back());
    open.pop_back();
    size_t begin = text.find('{');
    size_t end = text.find('}');
    if (begin == std::string::npos) {
      done.push_back(std::move(text));
      continue;
    }
    bool nested = end == std::string::npos || end < begin || text.find('{', begin + 1) < end;
    if (nested || text.find('\\') != std::string::npos) return {std::string(pattern)};
    for (size_t start = begin + 1; start <= end;) {
      size_t comma = std::min(text.find(',', start), end);
      open.push_back(text.substr(0, begin) + text.substr(start, comma - start) +
                     text.substr(end + 1));
      start = comma + 1;
    }
  }
  if (!open.empty()) return {std::string(pattern)};
  return done;
}

std::vector<std::string> Components(std::string_view pattern, char delimiter) {
  std::vector<std::string> components;
  size_t start = 0;
  while (true) {
    size_t end = std::min(pattern.find(delimiter, start), pattern.size());
    components.emplace_back(pattern.substr(start, end - start));
    if (end == pattern.size()) return components;
    start = end + 1;
  }
}

// A value that `components` matches: every star is one fresh byte, the first two "**" are
// `first_depth` and `second_depth` fresh components.
std::string Sample(const std::vector<std::string>& components, char delimiter, size_t first_depth,
                   size_t second_depth) {
  std::vector<std::string> parts;
  size_t deep = 0;
  for (size_t i = 0; i < components.size(); ++i) {
    const std::string& component = components[i];
    if (component == "**") {
      size_t depth = deep++ == 0 ? first_depth : second_depth;
      parts.insert(parts.end(), depth, std::string(1, kFresh));
      if (depth == 0 && i + 1 == components.size()) parts.emplace_back();
      continue;
    }
    std::string part;
    for (char c : component) {
      bool repeated = c == '*' && !part.empty() && part.back() == kFresh;
      if (!repeated) part.push_back(c == '*' ? kFresh : c);
    }
    parts.push_back(std::move(part));
  }
  std::string sample;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) sample.push_back(delimiter);
    sample += parts[i];
  }
  return sample;
}

// Both without groups. A star of `narrow` stands for any text, and so must the star of `wide` that
// takes the fresh byte in its place; a "**" is tried at every depth up to one that only a "**" of
// `wide` can take. What one sample refutes is refuted.
Cover PlainGlobCovers(const std::string& wide, const std::string& narrow, char delimiter) {
  if (wide == narrow) return Cover::kYes;
  if (IsLiteral(narrow)) return Of(codec::GlobMatches(wide, narrow, delimiter));
  bool hard = narrow.find_first_of("?[]{}\\") != std::string::npos ||
              wide.find_first_of("?[]{}\\") != std::string::npos;
  if (wide == "**") return Cover::kYes;
  if (hard) return Cover::kUnknown;
  std::vector<std::string> components = Components(narrow, delimiter);
  auto deep = std::count(components.begin(), components.end(), "**");
  if (deep > 2) return Cover::kUnknown;
  size_t depth_max = Components(wide, delimiter).size() + components.size() + 1;
  for (size_t i = 0; i <= (deep > 0 ? depth_max : 0); ++i) {
    for (size_t j = 0; j <= (deep > 1 ? depth_max : 0); ++j) {
      std::string sample = Sample(components, delimiter, i, j);
      if (!codec::GlobMatches(narrow, sample, delimiter)) continue;
      if (!codec::GlobMatches(wide, sample, delimiter)) return Cover::kNo;
    }
  }
  return Cover::kYes;
}

Cover MethodCovers(std::string_view wide, std::string_view narrow) {
  return Of(wide == "*" || wide == narrow || (wide == "GET" && narrow == "HEAD"));
}

// A request that satisfies every matcher of `narrow` satisfies every one of `wide`.
Cover QueryCovers(const std::vector<policy::QueryMatcher>& wide,
                  const std::vector<policy::QueryMatcher>& narrow) {
  Cover all = Cover::kYes;
  for (const policy::QueryMatcher& wanted : wide) {
    auto has_key = [&](const policy::QueryMatcher& matcher) { return matcher.key == wanted.key; };
    auto given = std::find_if(narrow.begin(), narrow.end(), has_key);
    if (given == narrow.end()) return Cover::kNo;
    for (const std::string& pattern : given->any) {
      Cover any = Cover::kNo;
      for (const std::string& wider : wanted.any)
        any = Either(any, GlobCovers(wider, pattern, '.'));
      all = Both(all, any);
    }
  }
  return all;
}

// Compares patterns of names, of which an empty one matches any text.
Cover NameCovers(const std::string& wide, const std::string& narrow) {
  if (wide.empty()) return Cover::kYes;
  return narrow.empty() ? Cover::kNo : GlobCovers(wide, narrow, '.');
}

Cover FieldsCover(const std::vector<std::string>& wide, const std::vector<std::string>& narrow) {
  if (wide.empty()) return Cover::kYes;
  if (narrow.empty()) return Cover::kNo;
  Cover all = Cover::kYes;
  for (const std::string& field : narrow) {
    Cover any = Cover::kNo;
    for (const std::string& wider : wide) any = Either(any, GlobCovers(wider, field, '.'));
    all = Both(all, any);
  }
  return all;
}

Cover OperationCovers(const policy::HttpRule& wide, const policy::HttpRule& narrow) {
  Cover type = Of(wide.operation_type == "*" || wide.operation_type == narrow.operation_type);
  Cover name = NameCovers(wide.operation_name, narrow.operation_name);
  return Both(type, Both(name, FieldsCover(wide.fields, narrow.fields)));
}

Cover CallCovers(const policy::HttpRule& wide, const policy::HttpRule& narrow) {
  bool every = wide.method == "*";
  Cover method = every ? Cover::kYes : GlobCovers(wide.method, narrow.method, '.');
  return Both(method, NameCovers(wide.tool, narrow.tool));
}

}  // namespace

Cover Both(Cover first, Cover second) { return std::min(first, second); }

Cover Either(Cover first, Cover second) { return std::max(first, second); }

Cover GlobCovers(std::string_view wide, std::string_view narrow, char delimiter) {
  Cover all = Cover::kYes;
  for (const std::string& one : Alternatives(narrow)) {
    Cover any = Cover::kNo;
    for (const std::string& other : Alternatives(wide)) {
      any = Either(any, PlainGlobCovers(other, one, delimiter));
    }
    all = Both(all, any);
  }
  return all;
}

Cover HostCovers(std::string_view wide, std::string_view narrow) {
  if (wide.empty()) return Cover::kYes;
  if (narrow.empty()) return Cover::kNo;
  if (!policy::IsHostPattern(narrow)) return Of(policy::HostMatches(wide, narrow));
  return policy::IsHostPattern(wide) ? GlobCovers(wide, narrow, '.') : Cover::kNo;
}

Cover BinaryCovers(std::string_view wide, std::string_view narrow) {
  // The agent is whatever runs in a sandbox, its programs known or not.
  if (wide == policy::kAgentPrograms) return Cover::kYes;
  if (narrow == policy::kAgentPrograms) return Of(wide == "/**" || wide == "**");
  bool wide_pattern = wide.find('*') != std::string_view::npos;
  bool narrow_pattern = narrow.find('*') != std::string_view::npos;
  if (!wide_pattern) return Of(wide == narrow);
  if (!narrow_pattern) return Of(codec::GlobMatches(wide, narrow, '/'));
  return GlobCovers(wide, narrow, '/');
}

Cover SelectorCovers(std::string_view wide, std::string_view narrow) {
  if (wide.empty() || wide == "**" || wide == "/**") return Cover::kYes;
  if (narrow.empty() || narrow == "**") return Cover::kNo;
  return GlobCovers(wide, narrow, '/');
}

Cover RuleCovers(policy::Protocol protocol, const policy::HttpRule& wide,
                 const policy::HttpRule& narrow) {
  if (!wide.operation_type.empty() || !narrow.operation_type.empty()) {
    bool both = !wide.operation_type.empty() && !narrow.operation_type.empty();
    return both ? OperationCovers(wide, narrow) : Cover::kNo;
  }
  if (protocol == policy::Protocol::kSql) {
    return Of(wide.command == "*" || wide.command == narrow.command);
  }
  if (protocol == policy::Protocol::kJsonRpc || protocol == policy::Protocol::kMcp) {
    return CallCovers(wide, narrow);
  }
  // Every path starts with '/', but for the "*" of an OPTIONS request.
  bool rooted = narrow.path == "**" && narrow.method != "OPTIONS" && narrow.method != "*";
  Cover path =
      wide.path == "**" ? Cover::kYes : GlobCovers(wide.path, rooted ? "/**" : narrow.path, '/');
  return Both(MethodCovers(wide.method, narrow.method),
              Both(path, QueryCovers(wide.query, narrow.query)));
}

}  // namespace advise
