// SPDX-License-Identifier: Apache-2.0
#include "post/review_plan.h"

#include <catch2/catch.hpp>

namespace post {
namespace {

constexpr char kKey[] = "ci/agent";

Placed At(const std::string& fingerprint, Spot spot = Spot::kLines) {
  Placed placed;
  placed.remark.fingerprint = fingerprint;
  placed.spot = spot;
  return placed;
}

// What our thread for `fingerprint` is like before `change`.
forge::ReviewThread Thread(const std::string& fingerprint, int64_t id,
                           void (*change)(forge::ReviewThread&) = nullptr) {
  forge::ReviewThread thread;
  Remark remark;
  remark.fingerprint = fingerprint;
  thread.id = std::to_string(id);
  thread.first_id = id;
  thread.first_text = MarkerOf(kKey, remark) + "\ntext";
  thread.ours = true;
  thread.comments = 1;
  if (change != nullptr) change(thread);
  return thread;
}

void ByUs(forge::ReviewThread& thread) { thread.resolved = thread.resolved_by_us = true; }
void ByPerson(forge::ReviewThread& thread) { thread.resolved = true; }
void Moved(forge::ReviewThread& thread) { thread.outdated = true; }
void Hidden(forge::ReviewThread& thread) { thread.hidden = true; }
void Answered(forge::ReviewThread& thread) { thread.comments = 2; }
void AnsweredAndMoved(forge::ReviewThread& thread) {
  thread.comments = 2;
  thread.outdated = true;
}
void ByUsAndMoved(forge::ReviewThread& thread) {
  ByUs(thread);
  thread.outdated = true;
}
void Foreign(forge::ReviewThread& thread) { thread.ours = false; }
void OfAnotherJob(forge::ReviewThread& thread) {
  thread.first_text = "<!-- agentic-ci:ci/other:f -->\ntext";
}

// "post 1, reopen 2, resolve 3, remove 4, settled 1": what there is of it, by the threads' ids.
std::string Told(const std::vector<Placed>& placed, const std::vector<forge::ReviewThread>& threads,
                 bool judged = true) {
  ReviewPlan plan = PlanReview(placed, threads, {kKey, judged});
  std::string told;
  auto add = [&told](const std::string& what) { told += (told.empty() ? "" : ", ") + what; };
  for (const Placed* one : plan.post) add("post " + one->remark.fingerprint);
  for (const auto* thread : plan.reopen) add("reopen " + thread->id);
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
  CHECK(Told({At("g")}, {Thread("f", 1), Thread("g", 2)}) == "resolve 1");
  CHECK(Told({At("g")}, {Thread("f", 1)}, false) == "post g");
}

}  // namespace post
