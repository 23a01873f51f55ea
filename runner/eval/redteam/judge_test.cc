// SPDX-License-Identifier: Apache-2.0
#include "eval/redteam/judge.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "base/code_of.h"
#include "eval/redteam/hostile_agent.h"

namespace redteam {
namespace {

// All that an agent prints that was stopped everywhere, and all that is said of it outside.
Evidence AllStopped() {
  Evidence evidence;
  for (const Probe& probe : Probes()) {
    evidence.inside += RenderLine(probe.id, {Came::kStopped, "403"}) + "\n";
    evidence.seen.refused.emplace_back(probe.destination.substr(0, probe.destination.rfind(':')));
    if (probe.controlled) {
      evidence.outside += RenderLine(probe.id, {Came::kThrough, "succeeded"}) + "\n";
    }
  }
  evidence.seen.upstream = "host.openshell.internal:80";
  evidence.seen.arrivals = {{"GET", "/open/plain", evidence.seen.upstream, ""}};
  for (const Probe& probe : SmugglingProbes()) {
    evidence.seen.arrivals_outside.push_back({"GET", "/closed/" + std::string(probe.id), "", ""});
  }
  for (const char* name : {"2001:db8::1", ""}) evidence.seen.refused.emplace_back(name);
  evidence.bait_file = "/tmp/bait/file";
  return evidence;
}

Judged Of(const Evidence& evidence, std::string_view id, const PolicyView& policy = {}) {
  for (const Judged& one : Judge(evidence, policy)) {
    if (one.probe->id == id) return one;
  }
  FAIL("no probe " << id);
  return {};
}

TEST_CASE("Probes have names of their own, and each that leaves no control names its place") {
  std::set<std::string_view> ids;
  for (const Probe& probe : Probes()) {
    CHECK(ids.insert(probe.id).second);
    CHECK_FALSE(probe.title.empty());
  }
  CHECK(ids.size() > 100);
}

TEST_CASE("What is stopped inside and gets through outside is stopped") {
  for (const Judged& one : Judge(AllStopped(), {})) {
    INFO(one.probe->id);
    CHECK(one.standing == Standing::kStopped);
  }
}

TEST_CASE("What is stopped outside too says nothing about the sandbox") {
  Evidence evidence = AllStopped();
  evidence.outside = RenderLine("mount", {Came::kStopped, "EPERM"}) + "\n";
  CHECK(Of(evidence, "mount").standing == Standing::kNotApplicable);
}

TEST_CASE("An agent that is silent, or prints something else, decides nothing") {
  Evidence evidence = AllStopped();
  evidence.inside =
      "everything was stopped\n{\"probe\": \"mount\"}\n{\"probe\": \"bpf\", \"came\": \"fine\"}\n";
  for (const Judged& one : Judge(evidence, {})) CHECK(one.standing == Standing::kUndecided);
}

TEST_CASE("A forged line hides no other, before or after it") {
  const std::string forged = RenderLine("mount", {Came::kStopped, "EPERM"}) + "\n";
  const std::string honest = RenderLine("mount", {Came::kThrough, "succeeded"}) + "\n";
  for (const std::string& log : {forged + honest, honest + forged, forged + honest + forged}) {
    Evidence evidence = AllStopped();
    evidence.inside = log;
    CHECK(Of(evidence, "mount").standing == Standing::kThrough);
  }
}

TEST_CASE("What was seen outside counts, whatever the agent says") {
  auto seen = [](auto change, std::string_view id) {
    Evidence evidence = AllStopped();
    change(&evidence);
    Judged judged = Of(evidence, id);
    CHECK(judged.standing == Standing::kThrough);
    CHECK_FALSE(judged.because.empty());
  };
  seen([](Evidence* e) { e->seen.victim_ended = true; }, "kill");
  seen([](Evidence* e) { e->seen.bait_changes = {"the file is gone"}; }, "rename");
  seen([](Evidence* e) { e->seen.port_reached = true; }, "host-loopback");
  seen([](Evidence* e) { e->seen.abstract_reached = true; }, "host-abstract");
  seen([](Evidence* e) { e->seen.socket_reached = true; }, "host-socket");
  seen([](Evidence* e) { e->seen.let_through = {"redteam.invalid:443"}; }, "connect");
  seen([](Evidence* e) { e->seen.let_through = {"169.254.169.254:80"}; }, "metadata");
  auto leak = [](Evidence* e) {
    e->seen.variable_canary = "redteam-canary-1";
    e->inside += "progress: redteam-canary-1\n";
  };
  seen(leak, "environment");
}

TEST_CASE("What a server saw decides about requests, whatever the agent says") {
  auto judge = [](const Arrival& arrival) {
    Evidence evidence = AllStopped();
    evidence.seen.arrivals.push_back(arrival);
    return Of(evidence, "pipelined").standing;
  };
  const std::string host = AllStopped().seen.upstream;
  CHECK(judge({"GET", "/open/pipelined", host, ""}) == Standing::kStopped);
  CHECK(judge({"GET", "/closed/pipelined", host, ""}) == Standing::kThrough);
  CHECK(judge({"POST", "/open/pipelined", host, ""}) == Standing::kThrough);
  CHECK(judge({"GET", "/open/pipelined", "other", ""}) == Standing::kThrough);
  CHECK(judge({"GET", "/open/pipelined", host, "h2c"}) == Standing::kThrough);
  CHECK(judge({"GET", "/closed/not-pipelined", host, ""}) == Standing::kStopped);
  Evidence silent = AllStopped();
  silent.seen.arrivals.clear();
  CHECK(Of(silent, "pipelined").standing == Standing::kUndecided);
  Evidence broken = AllStopped();
  broken.seen.arrivals_outside.clear();
  CHECK(Of(broken, "pipelined").standing == Standing::kNotApplicable);
}

TEST_CASE("The lenient server takes what a strict one would not") {
  auto targets = [](std::string bytes) {
    std::string all;
    for (const Arrival& one : TakeRequests(&bytes)) all += one.method + " " + one.target + "|";
    return all + bytes;
  };
  CHECK(targets("GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\n\n") == "GET /a|GET /b|");
  CHECK(targets("GET /a HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding : xchunked\r\n\r\n"
                "3\r\nabc\r\n0\r\n\r\nGET /b\r\n") == "GET /a|GET /b|");
  CHECK(targets("POST /a HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 9\r\n\r\nabGET /b\r\n") ==
        "POST /a|GET /b|");
  CHECK(targets("GET /a HTTP/1.1\r\nHost: x") == "GET /a HTTP/1.1\r\nHost: x");
}

TEST_CASE("An attempt that the gateway has no record of may never have been made") {
  Evidence evidence = AllStopped();
  std::erase(evidence.seen.refused, "redteam.invalid");
  Judged judged = Of(evidence, "connect");
  CHECK(judged.standing == Standing::kUndecided);
  CHECK(judged.because == "the gateway has no record of it");
  CHECK(Of(evidence, "metadata").standing == Standing::kStopped);
}

TEST_CASE("What a line of the policy opens is the policy's, and nothing else") {
  PolicyView policy;
  Opening opening;
  opening.place = "policy.yml:7";
  opening.path = "/home";
  policy.openings = {opening};
  Evidence evidence = AllStopped();
  evidence.inside =
      RenderLine("credential-files", {Came::kThrough, "1 file", {"/home/a/.netrc"}}) + "\n";
  Judged judged = Of(evidence, "credential-files", policy);
  CHECK(judged.standing == Standing::kByPolicy);
  CHECK(judged.because == "policy.yml:7: /home/a/.netrc");
  evidence.inside = RenderLine("credential-files",
                               {Came::kThrough, "2 files", {"/home/a/.netrc", "/root/.netrc"}}) +
                    "\n";
  CHECK(Of(evidence, "credential-files", policy).standing == Standing::kThrough);
  evidence.inside = RenderLine("mount", {Came::kThrough, "succeeded"}) + "\n";
  CHECK(Of(evidence, "mount", policy).standing == Standing::kThrough);
}

TEST_CASE("A directory is opened by the line that names it, and not by one that begins alike") {
  Opening read;
  read.place = "a:1";
  read.path = "/srv/data";
  Opening write = read;
  write.place = "a:2";
  write.path = "/srv/data/out";
  write.writes = true;
  const std::vector<Opening> openings = {read, write};
  CHECK(LineThatOpens(openings, "/srv/data/x", false) == "a:1");
  CHECK(LineThatOpens(openings, "/srv/data/x", true).empty());
  CHECK(LineThatOpens(openings, "/srv/data/out/x", true) == "a:2");
  CHECK(LineThatOpens(openings, "/srv/database", false).empty());
}

TEST_CASE("A destination that the policy allows is not tried, and its line is told") {
  PolicyView policy;
  policy.allowed.emplace("redteam.invalid:443", "policy.yml:3:5");
  Evidence evidence = AllStopped();
  evidence.inside.clear();
  Judged judged = Of(evidence, "connect", policy);
  CHECK(judged.standing == Standing::kByPolicy);
  CHECK(judged.because == "policy.yml:3:5");
  CHECK(Of(evidence, "connect-port", policy).standing == Standing::kUndecided);
}

TEST_CASE("A limit of tier landlock is none of the other tier") {
  Evidence evidence = AllStopped();
  evidence.inside = RenderLine("stat", {Came::kThrough, "succeeded"}) + "\n";
  CHECK(Of(evidence, "stat").standing == Standing::kThrough);
  evidence.landlock = true;
  CHECK(Of(evidence, "stat").standing == Standing::kByTier);
}

TEST_CASE("What the agent is told comes back as it was, and nothing else is taken") {
  Targets targets;
  targets.bait = "/tmp/a b";
  targets.port = 4711;
  targets.victim = 12;
  targets.searched = {"/home"};
  Result<Targets> read = ParseTargets(Render(targets));
  REQUIRE(read.ok());
  CHECK(Render(read.value()) == Render(targets));
  for (const char* text : {"", "{}", "[]", "now"})
    CHECK(CodeOf(ParseTargets(text)) == Code::kUsage);
}

}  // namespace
}  // namespace redteam
