// SPDX-License-Identifier: Apache-2.0
#include "post/review_plan.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace post {
namespace {

constexpr char kKey[] = "ci/agent";

// "f": of rule and file "p", with the message "f". "fXc" suggests "c".
Fingerprint Named(std::string name) {
  auto padded = [](std::string text, size_t digits) {
    return text.append(digits - text.size(), '.');
  };
  const size_t plus = std::min(name.find('X'), name.size());
  return {padded("p", 16), padded(name.substr(0, plus), 8), padded(name.substr(plus), 8)};
}

Placed At(const std::string& name, Spot spot = Spot::kLines, int line = 5) {
  Placed placed;
  placed.remark.fingerprint = Named(name);
  placed.remark.line = placed.remark.end_line = line;
  placed.spot = spot;
  return placed;
}

// Returns this tool's thread for the remark `name`, with `change` made to it.
forge::ReviewThread Thread(const std::string& name, int64_t id,
                           void (*change)(forge::ReviewThread&) = nullptr, int line = 5) {
  forge::ReviewThread thread;
  Remark remark;
  remark.fingerprint = Named(name);
  thread.id = std::to_string(id);
  thread.first_id = id;
  thread.first_text = MarkerOf(kKey, remark) + "\ntext";
  thread.ours = true;
  thread.comments = 1;
  thread.line = line;
  if (change != nullptr) change(thread);
  return thread;
}

void ByUs(forge::ReviewThread& thread) { thread.resolved = thread.resolved_by_us = true; }
void ByPerson(forge::ReviewThread& thread) { thread.resolved = true; }
void Moved(forge::ReviewThread& thread) {
  thread.outdated = true;
  thread.line = 0;
}
void Hidden(forge::ReviewThread& thread) { thread.hidden = true; }
void Answered(forge::ReviewThread& thread) { thread.comments = 2; }
void AnsweredAndMoved(forge::ReviewThread& thread) {
  Answered(thread);
  Moved(thread);
}
void ByUsAndMoved(forge::ReviewThread& thread) {
  ByUs(thread);
  Moved(thread);
}
void Stale(forge::ReviewThread& thread) { thread.stale = true; }
void Foreign(forge::ReviewThread& thread) { thread.ours = false; }
void OfAnotherJob(forge::ReviewThread& thread) {
  thread.first_text = "<!-- agentic-ci:ci/other:f -->\ntext";
}
void OfAnotherTask(forge::ReviewThread& thread) {
  thread.first_text.insert(thread.first_text.find(':', thread.first_text.find("ci/")), ":fix");
}

// "post 1, reopen 2, resolve 3, remove 4, settled 1": what there is of it, by the threads' ids.
std::string Told(const std::vector<Placed>& placed, const std::vector<forge::ReviewThread>& threads,
                 bool judged = true) {
  ReviewPlan plan = PlanReview(placed, threads, {kKey, judged});
  std::string told;
  auto add = [&told](const std::string& what) { told += (told.empty() ? "" : ", ") + what; };
  for (const Placed* one : plan.post) {
    const Fingerprint& said = one->remark.fingerprint;
    std::string name = said.message + said.suggestion;
    std::erase(name, '.');
    add("post " + name);
  }
  for (const auto& returned : plan.reopen) add("reopen " + returned.thread->id);
  for (const auto* thread : plan.resolve) add("resolve " + thread->id);
  for (const auto* thread : plan.remove) add("remove " + thread->id);
  if (plan.settled > 0) add("settled " + std::to_string(plan.settled));
  return told;
}

}  // namespace

TEST_CASE("A remark that is found, by what is there of it") {
  const std::vector<Placed> found = {At("f")};
  CHECK(Told(found, {}) == "post f");
  CHECK(Told(found, {Thread("f", 1)}).empty());
  CHECK(Told(found, {Thread("f", 1, ByUs)}) == "reopen 1");
  CHECK(Told(found, {Thread("f", 1, ByPerson)}) == "settled 1");
  CHECK(Told(found, {Thread("f", 1, Moved)}) == "post f, resolve 1");
  CHECK(Told(found, {Thread("f", 1, Moved), Thread("f", 2)}) == "resolve 1");
  CHECK(Told(found, {Thread("f", 1, Hidden)}) == "post f");
  CHECK(Told(found, {Thread("f", 1, Answered)}).empty());
  CHECK(Told(found, {Thread("f", 1, AnsweredAndMoved)}).empty());
  CHECK(Told(found, {Thread("f", 1, ByUsAndMoved)}) == "post f");
  CHECK(Told(found, {Thread("f", 1, ByUs), Thread("f", 2)}).empty());
  CHECK(Told(found, {Thread("f", 1, Foreign)}) == "post f");
  CHECK(Told(found, {Thread("f", 1, OfAnotherJob)}) == "post f");
  CHECK(Told(found, {Thread("f", 1, OfAnotherTask)}) == "post f");
  CHECK(Told({At("f", Spot::kSummary)}, {}).empty());
  CHECK(Told({At("f", Spot::kSummary)}, {Thread("f", 1)}).empty());
  CHECK(Told({At("f", Spot::kSummary)}, {Thread("f", 1, Moved)}) == "resolve 1");
}

TEST_CASE("Of threads that say the same the oldest stays, and what was answered") {
  CHECK(Told({At("f")}, {Thread("f", 2), Thread("f", 1), Thread("f", 3)}) == "remove 2, remove 3");
  CHECK(Told({At("f")}, {Thread("f", 1), Thread("f", 2, Answered)}).empty());
}

TEST_CASE("What is not found any more is resolved by a run that looked, and by no other") {
  CHECK(Told({}, {Thread("f", 1)}) == "resolve 1");
  CHECK(Told({}, {Thread("f", 1)}, false).empty());
  for (auto change : {ByUs, ByPerson, Hidden, Answered, Foreign, OfAnotherJob}) {
    CHECK(Told({}, {Thread("f", 1, change)}).empty());
  }
  CHECK(Told({At("g")}, {Thread("f", 1, nullptr, 9), Thread("g", 2)}) == "resolve 1");
  CHECK(Told({At("g")}, {Thread("f", 1, nullptr, 9)}, false) == "post g");
}

TEST_CASE("A remark is known by its rule and place before its words") {
  // Worded otherwise at the same line.
  CHECK(Told({At("g")}, {Thread("f", 1)}).empty());
  CHECK(Told({At("g")}, {Thread("f", 1, ByUs)}) == "post g");
  CHECK(Told({At("g")}, {Thread("f", 1, ByPerson)}) == "settled 1");
  CHECK(Told({At("g")}, {Thread("f", 1, Moved)}) == "post g, resolve 1");
  CHECK(Told({At("g")}, {Thread("f", 1, Stale)}) == "post g, resolve 1");
  CHECK(Told({At("f")}, {Thread("f", 1, Stale)}).empty());
  CHECK(Told({At("g", Spot::kFile)}, {Thread("f", 1)}) == "post g, resolve 1");
  // A thread that says the same goes before.
  CHECK(Told({At("g"), At("f")}, {Thread("f", 1), Thread("g", 2)}).empty());
  CHECK(Told({At("g"), At("f")}, {Thread("f", 1)}) == "post g");
  // A click must apply what is meant now.
  CHECK(Told({At("fXnew")}, {Thread("fXold", 1)}) == "post fXnew, resolve 1");
  CHECK(Told({At("fXnew")}, {Thread("fXold", 1), Thread("fXnew", 2)}, false) == "resolve 1");
  CHECK(Told({At("fXnew")}, {Thread("fXold", 1, Answered)}).empty());
}

TEST_CASE("Equal remarks are known by their lines") {
  const auto first = At("f", Spot::kLines, 5);
  const auto second = At("f", Spot::kLines, 50);
  CHECK(Told({first, second}, {}) == "post f, post f");
  CHECK(Told({first, second}, {Thread("f", 1), Thread("f", 2, nullptr, 50)}).empty());
  CHECK(Told({second}, {Thread("f", 1), Thread("f", 2, nullptr, 50)}) == "resolve 1");
  CHECK(Told({second}, {Thread("f", 1), Thread("f", 2, nullptr, 50)}, false).empty());
  // At another line it is another remark; but not in people's hands.
  CHECK(Told({second}, {Thread("f", 1)}) == "post f, resolve 1");
  CHECK(Told({second}, {Thread("f", 1, Answered)}).empty());
  CHECK(Told({second}, {Thread("f", 1, ByPerson)}) == "settled 1");
  CHECK(Told({first, second}, {Thread("f", 1, ByPerson)}) == "post f, settled 1");
  CHECK(Told({first, first}, {}) == "post f, post f");
  CHECK(Told({first, first}, {Thread("f", 1), Thread("f", 2), Thread("f", 3)}) == "remove 3");
}

}  // namespace post
