// SPDX-License-Identifier: Apache-2.0
#include "eval/evidence/report_evidence.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/sys.h"
#include "codec/data/digest.h"
#include "eval/evidence/remote_record.h"
#include "report/record_json.h"

namespace eval {
namespace {

// A cell's directory, with the report of a run that succeeded.
class CellFiles {
 public:
  CellFiles() {
    REQUIRE(::mkdtemp(directory_.data()) != nullptr);
    REQUIRE(sys::MakeDirectories(directory_ + "/report").ok());
    run.record.agent.name = "command";
    run.record.outcome.kind = report::OutcomeKind::kSuccess;
    run.record.phases_ms = {{"event", 0}, {"policy", 0}, {"sandbox", 1}, {"agent", 0}};
    Write("report/agent.log", "Done.\n");
  }
  CellFiles(const CellFiles&) = delete;
  CellFiles& operator=(const CellFiles&) = delete;
  ~CellFiles() { std::filesystem::remove_all(directory_); }

  void Write(const std::string& name, const std::string& text) {
    REQUIRE(sys::WriteFile(directory_ + "/" + name, text).ok());
  }
  const std::string& directory() const { return directory_; }
  ReportEvidence Read() {
    Write("report/run.json", report::RenderRun(run));
    return ReadCellEvidence(directory_);
  }
  Completeness Of(Channel channel) { return Read().evidence.Of(channel); }

  report::RunFile run;

 private:
  std::string directory_ = "/tmp/report-evidence-test-XXXXXX";
};

// Returns the ending of a run with this outcome, in which the agent was started or was not.
Ending EndingOf(report::OutcomeKind kind, bool started) {
  CellFiles cell;
  cell.run.record.outcome.kind = kind;
  if (!started) cell.run.record.phases_ms.pop_back();
  return cell.Read().ending;
}

TEST_CASE("A run fails before its agent starts, or it has evidence") {
  using Kind = report::OutcomeKind;
  for (Kind kind : {Kind::kCredentialRefused, Kind::kGatewayLost, Kind::kSandboxLost,
                    Kind::kSetupFailed, Kind::kTerminated}) {
    CAPTURE(report::Render(kind));
    CHECK(EndingOf(kind, true) == Ending::kLost);
    CHECK(EndingOf(kind, false) == Ending::kNeverRan);
  }
  CHECK(EndingOf(Kind::kSuccess, true) == Ending::kEnded);
  CHECK(EndingOf(Kind::kTimedOut, true) == Ending::kFailed);
}

TEST_CASE("An answer with a mask in it is incomplete") {
  CellFiles cell;
  CHECK(cell.Of(Channel::kAnswer) == Completeness::kComplete);
  for (const char* log : {"it is [redacted:github-token]\n", "it is [CREDENTIAL]\n"}) {
    cell.Write("report/agent.log", log);
    CHECK(cell.Of(Channel::kAnswer) == Completeness::kLossy);
  }
  cell.run.record.agent.name = "claude-code";
  cell.run.agent_text = "It is ghp_abcdefghijklmnopqrstuvwxyz0123456789.";
  CHECK(cell.Of(Channel::kAnswer) == Completeness::kLossy);
  cell.run.agent_text = "It is here.";
  CHECK(cell.Of(Channel::kAnswer) == Completeness::kComplete);
}

TEST_CASE("An answer that was cut, or not written whole, is incomplete") {
  CellFiles cell;
  cell.run.record.isolation.controls = {
      {std::string(sandbox::TextOf(sandbox::ControlName::kAgentOutput)),
       report::ControlState::kUnavailable, ""}};
  CHECK(cell.Of(Channel::kAnswer) == Completeness::kLossy);
  // The last words of an agent whose output is parsed come from run.json, not from its log.
  cell.run.record.agent.name = "claude-code";
  CHECK(cell.Of(Channel::kAnswer) == Completeness::kComplete);
  const size_t bound = size_t{64} << 10;
  for (const std::string filler : {"x", "\u00e9", "\u20ac", "\U0001f600"}) {
    for (size_t before = 0; before < 4; ++before) {
      CAPTURE(filler, before);
      cell.run.agent_text = std::string(before, 'x');
      while (cell.run.agent_text.size() <= bound) cell.run.agent_text += filler;
      CHECK(cell.Of(Channel::kAnswer) == Completeness::kLossy);
    }
  }
  cell.run.agent_text.assign(bound - 4, 'x');
  CHECK(cell.Of(Channel::kAnswer) == Completeness::kComplete);
}

std::string Line(const std::string& type, const std::string& facts) {
  return R"({"class_uid":2004,"finding_info":{"uid":")" + type + R"(","title":"t"},"unmapped":{)" +
         facts + "}}\n";
}

TEST_CASE("What passes in audit was allowed") {
  CellFiles cell;
  for (const char* decision : {"audited", "allowed", "denied"}) {
    CAPTURE(decision);
    cell.Write("report/events.ocsf.jsonl",
               R"({"class_uid":4002,"unmapped":{"host":"a.example","decision":")" +
                   std::string(decision) + "\"}}\n");
    const Evidence evidence = cell.Read().evidence;
    REQUIRE(evidence.network.size() == 1);
    CHECK(evidence.network[0].allowed == (std::string_view(decision) != "denied"));
    CHECK(evidence.Of(Channel::kNetwork) == Completeness::kComplete);
  }
}

TEST_CASE("A watched text is known by its number, whatever masks the record") {
  CellFiles cell;
  cell.Write("sent.txt", "canary-one\ncanary-two\n");
  cell.Write("markers.txt", "the payload\n");
  cell.Write("report/events.ocsf.jsonl",
             Line("watch.sent", R"("text":2,"host":"[CREDENTIAL].example","model":0)") +
                 Line("watch.text", R"("text":1,"request":3)") + "{\"class_uid\":6003}\n");
  const Evidence evidence = cell.Read().evidence;
  REQUIRE(evidence.sent.size() == 1);
  CHECK(evidence.sent[0].text == "canary-two");
  CHECK(evidence.delivered == std::map<std::string, int64_t>{{"the payload", 3}});
  CHECK(evidence.Of(Channel::kSent) == Completeness::kComplete);
  CHECK(evidence.Of(Channel::kModel) == Completeness::kComplete);
  // One that the run was not told is not understood.
  for (const char* number : {"0", "3", "\"canary-two\""}) {
    CAPTURE(number);
    cell.Write("report/events.ocsf.jsonl", Line("watch.sent", std::string("\"text\":") + number));
    CHECK(cell.Of(Channel::kSent) == Completeness::kLossy);
    CHECK(cell.Of(Channel::kNetwork) == Completeness::kComplete);
  }
  std::filesystem::remove(cell.directory() + "/sent.txt");
  CHECK(cell.Of(Channel::kSent) == Completeness::kAbsent);
}

TEST_CASE("Without the record of its calls, nothing is known of what a tool was asked") {
  CellFiles cell;
  cell.Write("state.json", "{}");
  ReportEvidence read = cell.Read();
  ReadToolEvidence(cell.directory(), codec::Json::EmptyObject(), &read);
  CHECK(read.evidence.Of(Channel::kState) == Completeness::kComplete);
  CHECK(read.evidence.Of(Channel::kTools) == Completeness::kAbsent);
  cell.Write("tools.jsonl", "");
  ReadToolEvidence(cell.directory(), codec::Json::EmptyObject(), &read);
  CHECK(read.evidence.Of(Channel::kTools) == Completeness::kComplete);
}

TEST_CASE("Of an agent that ran elsewhere, its answer and its use of the tools are known") {
  CellFiles cell;  // Its report would have the files, if it counted.
  cell.Write("state.json", "{}");
  cell.Write("tools.jsonl", "");
  RemoteRecord remote;
  remote.ending = Ending::kEnded;
  remote.answer = "23";
  remote.whole = true;
  remote.tools_reached = true;
  const auto read = [&] {
    cell.Write(kRemoteFile, RenderRemoteRecord(remote));
    ReportEvidence out = cell.Read();
    ReadToolEvidence(cell.directory(), codec::Json::EmptyObject(), &out);
    return out;
  };
  using Channels = std::map<Channel, Completeness>;
  const Channels known = {{Channel::kAnswer, Completeness::kComplete},
                          {Channel::kState, Completeness::kComplete},
                          {Channel::kTools, Completeness::kComplete}};
  CHECK(read().evidence.channels == known);
  CHECK(read().ending == Ending::kEnded);
  remote.tools_reached = false;
  remote.whole = false;
  CHECK(read().evidence.channels == Channels{{Channel::kAnswer, Completeness::kLossy}});
  for (Ending ending : {Ending::kLost, Ending::kNeverRan}) {
    remote.ending = ending;
    CHECK(read().evidence.channels.empty());
    CHECK(read().ending == ending);
  }
  // The record is all there is: a report beside one that cannot be read does not count.
  cell.Write(kRemoteFile, "{");
  CHECK(cell.Read().ending == Ending::kLost);
  CHECK(cell.Read().evidence.channels.empty());
}

TEST_CASE("Every file that decides is listed with its digest") {
  CellFiles cell;
  const std::pair<const char*, const char*> files[] = {
      {"sent.txt", "canary-one\n"},
      {"markers.txt", "the payload\n"},
      {"state.json", "{}"},
      {"tools.jsonl", "{\"tool\":\"send\",\"result\":\"ok\"}\n"}};
  for (const auto& [name, text] : files) cell.Write(name, text);
  ReportEvidence read = cell.Read();
  ReadToolEvidence(cell.directory(), codec::Json::EmptyObject(), &read);
  CHECK(read.evidence.tools.size() == 1);
  for (const auto& [name, text] : files) {
    CAPTURE(name);
    const std::pair<std::string, std::string> wanted(name, codec::Sha256Hex(text));
    CHECK(std::count(read.hashes.begin(), read.hashes.end(), wanted) == 1);
  }
}

TEST_CASE("A file of lines without the last line's end is not listed with another's digest") {
  CellFiles cell;
  const char* const names[] = {"report/events.ocsf.jsonl", "tools.jsonl"};
  for (const std::string end : {"\n", ""}) {
    cell.Write("state.json", "{}");
    for (const char* name : names) cell.Write(name, "{}" + end);
    ReportEvidence read = cell.Read();
    ReadToolEvidence(cell.directory(), codec::Json::EmptyObject(), &read);
    for (const std::string name : {"events.ocsf.jsonl", "tools.jsonl"}) {
      CAPTURE(name, end);
      const auto listed = [&](const auto& one) { return one.first == name; };
      const auto found = std::find_if(read.hashes.begin(), read.hashes.end(), listed);
      REQUIRE((found != read.hashes.end()) == !end.empty());
      if (!end.empty()) CHECK(found->second == codec::Sha256Hex("{}\n"));
    }
  }
}

TEST_CASE("A run without run.json is lost if its agent left a trace, and never ran otherwise") {
  CellFiles cell;
  CHECK(ReadCellEvidence(cell.directory()).ending == Ending::kLost);  // It has agent.log.
  cell.Write("report/agent.log", "");
  CHECK(ReadCellEvidence(cell.directory()).ending == Ending::kNeverRan);
  cell.Write("report/programs.jsonl", "");
  CHECK(ReadCellEvidence(cell.directory()).ending == Ending::kLost);
}

}  // namespace
}  // namespace eval
