// SPDX-License-Identifier: Apache-2.0
#include "codec/glob/glob.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

namespace codec {
namespace {

bool Path(std::string_view pattern, std::string_view value) {
  return GlobMatches(pattern, value, '/');
}
bool Host(std::string_view pattern, std::string_view value) {
  return GlobMatches(pattern, value, '.');
}

TEST_CASE("Glob: a star stops at the delimiter") {
  CHECK(Path("/repos/*", "/repos/a"));
  CHECK_FALSE(Path("/repos/*", "/repos/a/b"));
  CHECK(Path("/repos/*", "/repos/"));
  CHECK(Path("/usr/bin/*", "/usr/bin/node"));
  CHECK_FALSE(Path("/usr/bin/*", "/usr/bin/x/y"));
  CHECK(Path("/a/?", "/a/b"));
  CHECK_FALSE(Path("/a?b", "/a/b"));
}

TEST_CASE("Glob: a double star crosses it as a whole component") {
  CHECK(Path("/repos/**", "/repos/"));
  CHECK(Path("/repos/**", "/repos/a/b"));
  CHECK_FALSE(Path("/repos/**", "/repos"));
  CHECK(Path("**", ""));
  CHECK(Path("**", "/anything/at all"));
  CHECK(Path("/**", "/a/b"));
  CHECK_FALSE(Path("/**", "a"));
  CHECK(Path("**/node", "node"));
  CHECK(Path("**/node", "/usr/bin/node"));
  CHECK_FALSE(Path("**/node", "/usr/bin/nodejs"));
  CHECK(Path("/a/**/b", "/a/b"));
  CHECK(Path("/a/**/b", "/a/x/y/b"));
  CHECK_FALSE(Path("/a/**/b", "/ab"));
  CHECK(Path("/**/info/refs*", "/info/refs"));
  CHECK(Path("/**/info/refs*", "/a/b.git/info/refs"));
  CHECK_FALSE(Path("/a**", "/a/b"));
  CHECK(Path("/a**", "/abc"));
}

TEST_CASE("Glob: stars alone mean the same by components as in a group, by the machine") {
  for (std::string_view pattern : {"/a/*/b*/**", "/**/x/*", "/a/**/b/**/c", "*/b", "/a*b*c/**/d"}) {
    for (std::string_view value : {"/a/x/bc/", "/a/x/bc", "/a/b/c", "/a/b/b/x/c", "/x/y", "/q/x/",
                                   "a/b", "/abc/d", "/axbxc/y/d", "/a/b/c/", ""}) {
      INFO(pattern << " on " << value);
      CHECK(Path(pattern, value) == Path("{" + std::string(pattern) + "}", value));
    }
  }
  CHECK(Path("/a/**/b/**/c", "/a/b/b/x/c"));
  CHECK_FALSE(Path("/a/**/b/**/c", "/a/c/b"));
}

TEST_CASE("Glob: a star of many patterns does not take long on a hostile value") {
  std::string pattern;
  for (int i = 0; i < 500; ++i) pattern += "/**/a*";
  std::string value;
  for (int i = 0; i < 1000; ++i) value += "/aa";
  CHECK_FALSE(Path(pattern + "/b", value));
  CHECK(Path(pattern, value));
}

TEST_CASE("Glob: classes, groups and escapes") {
  CHECK(Path("/[a-c]x", "/bx"));
  CHECK_FALSE(Path("/[!a-c]x", "/bx"));
  CHECK(Path("/[!a-c]x", "/zx"));
  CHECK(Path("/[]]x", "/]x"));
  CHECK(Path("/{a,b*}/c", "/bxx/c"));
  CHECK_FALSE(Path("/{a,b*}/c", "/d/c"));
  CHECK(Path("/{a,{b,c}}", "/c"));
  CHECK(Path("/{,a}", "/a"));
  CHECK_FALSE(Path("/{,a}", "/"));
  CHECK(Path("/\\*", "/*"));
  CHECK_FALSE(Path("/\\*", "/a"));
  CHECK(Path("a,b", "a,b"));
}

TEST_CASE("Glob: a pattern that does not parse matches nothing") {
  for (std::string_view bad : {"/[", "/[a", "/{a", "/a}", "/a\\", "/[z-a]"}) {
    CHECK_FALSE(Glob::Parse(bad, '/').ok());
    CHECK_FALSE(Path(bad, bad));
  }
  CHECK_FALSE(Glob::Parse(std::string(4097, 'a'), '/').ok());
}

TEST_CASE("Glob: with a dot as the delimiter a star is one label") {
  CHECK(Host("*.example.com", "api.example.com"));
  CHECK_FALSE(Host("*.example.com", "example.com"));
  CHECK_FALSE(Host("*.example.com", "a.b.example.com"));
  CHECK(Host("**.example.com", "a.b.example.com"));
  CHECK_FALSE(Host("**.example.com", "example.com"));
  CHECK(Host("*-api.example.com", "tenant-api.example.com"));
  CHECK(Host("*-api.example.com", "-api.example.com"));
  CHECK_FALSE(Host("*-api.example.com", "api.example.com"));
  CHECK(Host("*-aiplatform.googleapis.com", "us-central1-aiplatform.googleapis.com"));
  CHECK_FALSE(Host("*-aiplatform.googleapis.com", "a.b-aiplatform.googleapis.com"));
  CHECK_FALSE(Host("api.**.com", "api.com"));
  CHECK(Host("api.**.com", "api.x.com"));
  CHECK(Host("api.**.com", "api.x.y.com"));
  CHECK(Host("*", "com"));
  CHECK_FALSE(Host("*", "example.com"));
  CHECK(Host("**", "a.b.c"));
  CHECK(Host("*.a?i.example.com", "x.abi.example.com"));
  CHECK(Host("v1.*", "v1.2/3"));
  CHECK_FALSE(Host("v1.*", "v1.2.3"));
}

TEST_CASE("Glob: a zero byte matches nothing") {
  CHECK_FALSE(Host("*.example.com", std::string_view("a\0b.example.com", 15)));
  CHECK_FALSE(Path("**", std::string_view("/a\0", 3)));
  CHECK_FALSE(Path(std::string_view("/a\0", 3), std::string_view("/a\0", 3)));
}

TEST_CASE("Glob: hostile patterns and values take polynomial time") {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  CHECK_FALSE(Path(pattern + "b", std::string(4000, 'a')));
  std::string nested;
  for (int i = 0; i < 200; ++i) nested += "{a,aa}";
  CHECK_FALSE(Path(nested + "b", std::string(300, 'a')));
}

TEST_CASE("Glob: the shortcuts for simple patterns agree with the machine") {
  // Every text over a small alphabet, up to a length that shows every shape.
  std::vector<std::string> texts = {""};
  for (size_t from = 0, length = 1; length <= 5; ++length) {
    size_t until = texts.size();
    for (; from < until; ++from) {
      for (char c : {'*', '/', '.', 'a'}) {
        if (texts[from].size() == length - 1) texts.push_back(texts[from] + c);
      }
    }
  }
  std::vector<std::string> values;
  for (const std::string& text : texts) {
    if (text.find('*') == std::string::npos) values.push_back(text);
  }
  REQUIRE(texts.size() == 1365);
  std::erase_if(texts, [](const std::string& text) { return text.size() > 4; });  // As patterns.
  for (const char* longer : {"a/**/a", "a**/a", "a.**.a", "a/**a", "**/a/a", "a/a/**", "**/*/a",
                             "a*/**/a", "**.a.a", "a.a.**", "*.a.*.a", "/**/a/**"}) {
    texts.push_back(longer);
  }
  int disagreements = 0;
  for (const std::string& pattern : texts) {
    for (char delimiter : {'/', '.'}) {
      Glob glob = Glob::Parse(pattern, delimiter).value();
      for (const std::string& value : values) {
        if (GlobMatches(pattern, value, delimiter) != glob.Matches(value)) ++disagreements;
      }
    }
  }
  CHECK(disagreements == 0);
}

TEST_CASE("RequiredTexts are what every value holds that a pattern matches") {
  std::minstd_rand random(20260101);
  auto text = [&](std::string_view letters) {
    std::string made;
    for (size_t size = random() % 9; made.size() < size;) {
      made += letters[random() % letters.size()];
    }
    return made;
  };
  size_t matched = 0;
  for (char delimiter : {'/', '.'}) {
    const std::string values = std::string("ab") + delimiter;
    const std::string patterns = values + "**?*" + delimiter;
    for (int i = 0; i < 200000; ++i) {
      const std::string pattern = text(patterns);
      const std::string value = text(values);
      if (!GlobMatches(pattern, value, delimiter)) continue;
      ++matched;
      for (std::string_view wanted : RequiredTexts(pattern, delimiter)) {
        const bool begins = wanted.data() == pattern.data();
        if (begins ? value.starts_with(wanted) : value.find(wanted) != std::string::npos) continue;
        FAIL(pattern << " matches " << value << " without " << wanted);
      }
    }
  }
  CHECK(matched > 1000);
  CHECK(RequiredTexts("/a/**/bc*", '/') == std::vector<std::string_view>{"/a", "bc"});
  CHECK(RequiredTexts("a-*.b.c", '.') == std::vector<std::string_view>{"a-", "b.c"});
  CHECK(RequiredTexts("/a/{b,c}", '/').empty());
}

TEST_CASE("PathSelectorMatches follows the crossing dialect") {
  CHECK(PathSelectorMatches("", "/x"));
  CHECK(PathSelectorMatches("**", "/x"));
  CHECK(PathSelectorMatches("/**", "/x"));
  CHECK(PathSelectorMatches("/v1/**", "/v1"));
  CHECK(PathSelectorMatches("/v1/**", "/v1/a/b"));
  CHECK_FALSE(PathSelectorMatches("/v1/**", "/v10"));
  CHECK(PathSelectorMatches("/v1/*", "/v1/chat/messages"));
  CHECK_FALSE(PathSelectorMatches("/v1/*/messages", "/v1/chat/completions"));
  CHECK(PathSelectorMatches("/a/**/b", "/a/x/y/b"));
  CHECK(PathSelectorMatches("/a/**/b", "/a/b"));
  CHECK(PathSelectorMatches("/[!a]", "/b"));
  CHECK_FALSE(PathSelectorMatches("/[!a]", "/a"));
}

TEST_CASE("PathSelectorMatches compares what does not parse as it stands") {
  CHECK(PathSelectorMatches("[", "["));
  CHECK_FALSE(PathSelectorMatches("[", "/x"));
  CHECK(PathSelectorMatches("/a**b", "/a**b"));
  CHECK_FALSE(PathSelectorMatches("/a**b", "/axb"));
}

}  // namespace
}  // namespace codec
