// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "forge/open/open.h"
#include "forge/rest/event.h"

namespace forge {

TEST_CASE("The text of a pull request's event is read") {
  EventText text = ParseActionsText(R"({"action": "opened", "pull_request": {"number": 7,
    "title": "Fix it", "body": null, "user": {"login": "eve"},
    "labels": [{"name": "ai"}, {"name": "bug"}]}})")
                       .value();
  CHECK(text.action == "opened");
  CHECK(text.number == 7);
  CHECK(text.title == "Fix it");
  CHECK(text.body.empty());
  CHECK(text.author == "eve");
  CHECK(text.labels == std::vector<std::string>{"ai", "bug"});
  CHECK(text.comment.empty());
}

TEST_CASE("Where a label was added, that one counts alone") {
  EventText text = ParseActionsText(R"({"action": "labeled", "label": {"name": "bug"},
    "pull_request": {"labels": [{"name": "ai"}, {"name": "bug"}]}})")
                       .value();
  CHECK(text.labels == std::vector<std::string>{"bug"});
}

TEST_CASE("Gitea's activities have GitHub's names, and its labels are the pull request's") {
  // Gitea 1.26 does not name the label that was changed.
  auto read = [](const std::string& action) {
    return ParseActionsText(R"({"action": ")" + action + R"(", "number": 1,
      "pull_request": {"number": 1, "labels": [{"name": "ai"}, {"name": "bug"}]}})")
        .value();
  };
  EventText given = read("label_updated");
  CHECK(given.action == "labeled");
  CHECK(given.labels == std::vector<std::string>{"ai", "bug"});
  EventText cleared = read("label_cleared");
  CHECK(cleared.action == "unlabeled");
  CHECK(cleared.labels.empty());
  // Newer versions of Gitea name the labels that were changed.
  auto changed = [](const std::string& changes) {
    return ParseActionsText(R"({"action": "label_updated", "changes": )" + changes +
                            R"(, "pull_request": {"labels": [{"name": "ai"}, {"name": "bug"}]}})")
        .value();
  };
  EventText added = changed(R"({"added_labels": [{"name": "bug"}], "removed_labels": null})");
  CHECK(added.action == "labeled");
  CHECK(added.labels == std::vector<std::string>{"bug"});
  EventText removed = changed(R"({"added_labels": [], "removed_labels": [{"name": "old"}]})");
  CHECK(removed.action == "unlabeled");
  CHECK(removed.labels == std::vector<std::string>{"old"});
  CHECK(changed("null").labels.size() == 2);
  CHECK(read("synchronized").action == "synchronize");
  CHECK(read("synchronized").labels.size() == 2);
  CHECK(read("reviewed").action == "submitted");
  CHECK(read("opened").action == "opened");
}

TEST_CASE("The text of a comment and of a review is read, with its issue's") {
  EventText comment = ParseActionsText(R"({"action": "created", "issue": {"number": 3, "title": "t",
    "user": {"login": "ann"}}, "comment": {"body": "/fix", "user": {"login": "bob"}}})")
                          .value();
  CHECK(comment.number == 3);
  CHECK(comment.comment == "/fix");
  CHECK(comment.author == "ann");
  CHECK(comment.comment_author == "bob");
  EventText review = ParseActionsText(R"({"action": "submitted", "pull_request": {"number": 4},
    "review": {"body": "no"}})")
                         .value();
  CHECK(review.comment == "no");
  EventText gitea = ParseActionsText(R"({"action": "reviewed", "pull_request": {"number": 4},
    "review": {"type": "pull_request_review_comment", "content": "/fix"}})")
                        .value();
  CHECK(gitea.action == "submitted");
  CHECK(gitea.comment == "/fix");
}

TEST_CASE("All further texts of an event are kept, and what the forge says is not") {
  const EventText text = ParseActionsText(R"({"action": "edited", "sender": {"login": "eve"},
    "repository": {"description": "a tool"}, "issue": {"number": 3, "title": "t", "body": "new",
    "html_url": "https://github.example/o/r/issues/3", "labels": [{"name": "documentation"}],
    "milestone": {"title": "m", "description": "in spring"}},
    "changes": {"body": {"from": "old"}}, "discussion": {"title": "new", "body": "a question"},
    "pages": [{"summary": "a page"}], "client_payload": {"url": "anything", "a": {"name": "b"}}})")
                             .value();
  using Others = std::vector<std::pair<std::string, std::string>>;
  Others others = text.others;
  std::ranges::sort(others);
  CHECK(others == Others{{"changes.body.from", "old"},
                         {"client_payload.a.name", "b"},
                         {"client_payload.url", "anything"},
                         {"discussion.body", "a question"},
                         {"issue.milestone.description", "in spring"},
                         {"issue.milestone.title", "m"},
                         {"pages.summary", "a page"}});
}

TEST_CASE("The text of a merge request is read from GitLab's variables") {
  std::map<std::string, std::string> variables = {{"GITLAB_CI", "true"},
                                                  {"CI_MERGE_REQUEST_IID", "12"},
                                                  {"CI_MERGE_REQUEST_TITLE", "Fix it"},
                                                  {"CI_MERGE_REQUEST_DESCRIPTION", "because"},
                                                  {"CI_MERGE_REQUEST_LABELS", "ai,,needs work"}};
  auto read = [&](const std::string& name) -> std::optional<std::string> {
    auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
  Event event;
  event.forge = ForgeKind::kGitLab;
  EventText text = ReadEventText(read, event).value();
  CHECK(text.number == 12);
  CHECK(text.title == "Fix it");
  CHECK(text.body == "because");
  CHECK(text.labels == std::vector<std::string>{"ai", "needs work"});
}

TEST_CASE("An event without text, or with other types, gives none") {
  for (const char* payload : {"{}", R"({"pull_request": 1, "action": 2, "label": [], "issue": []})",
                              R"({"action": "labeled"})"}) {
    EventText text = ParseActionsText(payload).value();
    CHECK(text.title.empty());
    CHECK(text.number == 0);
  }
  CHECK_FALSE(ParseActionsText("[]").ok());
  CHECK_FALSE(ParseActionsText("").ok());
  CHECK(ReadEventText([](const std::string&) { return std::nullopt; }, Event()).value().title ==
        "");
}

}  // namespace forge
