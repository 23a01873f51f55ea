// SPDX-License-Identifier: Apache-2.0
#include "change/protected_links.h"

#include <catch2/catch.hpp>

#include "change/test_tree.h"

namespace change {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs LinksOf(const std::string& top, const std::vector<std::string>& tracked = {}) {
  Pairs pairs;
  Result<std::vector<ProtectedLink>> links = FindProtectedLinks(top, tracked);
  REQUIRE(links.ok());
  for (const ProtectedLink& link : links.value()) {
    pairs.emplace_back(link.path, link.target);
  }
  return pairs;
}

TEST_CASE("Links at protected paths are found with what they lead to in the end") {
  TestTree tree;
  tree.Write("docs/guide.md", "x");
  tree.Directory("tools/hooks");
  tree.Directory("a/b/c");
  tree.Link("AGENTS.md", "docs/guide.md");
  tree.Link("CLAUDE.md", "AGENTS.md");
  tree.Link(".husky", "tools/hooks");
  tree.Link(".claude/commands/run.md", "../../docs/later/run.md");  // Not there yet.
  tree.Link("GEMINI.md", "/etc/passwd");
  tree.Link(".cursorrules", "../outside.md");
  tree.Link("docs/other.md", "guide.md");  // Not protected.
  CHECK(LinksOf(tree.root()) == Pairs{{".claude/commands/run.md", "docs/later/run.md"},
                                      {".husky", "tools/hooks"},
                                      {"AGENTS.md", "docs/guide.md"},
                                      {"CLAUDE.md", "AGENTS.md"},
                                      {"CLAUDE.md", "docs/guide.md"}});
}

TEST_CASE("What lies on the way of a link is protected, and what lies in its directory") {
  TestTree tree;
  tree.Write("docs/v1/rules.md", "x");
  tree.Write("lib/x.md", "x");
  tree.Directory("tools");
  tree.Link("docs/now", "v1");
  tree.Link("CLAUDE.md", "docs/now/rules.md");
  tree.Link(".claude", "tools");
  tree.Link("tools/commands", "../lib");
  tree.Link("tools/loop", ".");
  CHECK(LinksOf(tree.root(), {"tools/commands", "tools/loop", "docs/now", "CLAUDE.md"}) ==
        Pairs{{".claude", "tools"},
              {".claude/commands", "lib"},
              {".claude/loop", "tools"},
              {"CLAUDE.md", "docs/now"},
              {"CLAUDE.md", "docs/v1/rules.md"}});
  tree.Link("GEMINI.md", "docs/now/../far.md");  // The kernel goes on from where docs/now leads.
  tree.Link("docs/other", "../lib/deep");
  tree.Directory("lib/deep");
  tree.Link("AGENTS.md", "docs/other/../near.md");
  CHECK(LinksOf(tree.root(), {"GEMINI.md", "AGENTS.md"}) == Pairs{{".claude", "tools"},
                                                                  {"AGENTS.md", "docs/other"},
                                                                  {"AGENTS.md", "lib/near.md"},
                                                                  {"CLAUDE.md", "docs/now"},
                                                                  {"CLAUDE.md", "docs/v1/rules.md"},
                                                                  {"GEMINI.md", "docs/far.md"},
                                                                  {"GEMINI.md", "docs/now"}});
}

TEST_CASE("Tracked links are found at any depth, and beside any number of files") {
  TestTree tree;
  tree.Write("docs/guide.md", "x");
  tree.Link("a/b/c/d/CLAUDE.md", "../../../../docs/guide.md");
  tree.Link("a/b/other.md", "../../docs/guide.md");
  CHECK(LinksOf(tree.root()).empty());
  CHECK(LinksOf(tree.root(), {"a/b/c/d/CLAUDE.md", "a/b/other.md", "gone/CLAUDE.md"}) ==
        Pairs{{"a/b/c/d/CLAUDE.md", "docs/guide.md"}});
}

TEST_CASE("Links that are too many to follow fail, rather than protect a part") {
  TestTree tree;
  tree.Directory("shared");
  std::vector<std::string> tracked;
  for (int i = 0; i < 401; ++i) {
    tracked.push_back(".claude/" + std::to_string(i));
    tree.Link(tracked.back(), "../shared");
  }
  for (int i = 0; i < 249; ++i) tracked.push_back("shared/" + std::to_string(i));
  CHECK(FindProtectedLinks(tree.root(), tracked).ok());
  tracked.emplace_back("shared/one more");
  Result<std::vector<ProtectedLink>> links = FindProtectedLinks(tree.root(), tracked);
  REQUIRE_FALSE(links.ok());
  CHECK(links.error().code == Code::kInvalid);
}

}  // namespace
}  // namespace change
