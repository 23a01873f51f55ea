// SPDX-License-Identifier: Apache-2.0
#include "eval/evidence/report_evidence.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/join.h"
#include "base/sys.h"
#include "codec/data/digest.h"
#include "codec/data/json.h"
#include "codec/data/secret_mask.h"
#include "eval/evidence/remote_record.h"
#include "record/ocsf.h"
#include "report/event_lines.h"
#include "report/record_json.h"
#include "sandbox/limit/control.h"

namespace eval {
namespace {

constexpr size_t kFileBytesMax = size_t{64} << 20;
constexpr size_t kAgentTextBytesMax = size_t{64} << 10;  // The most that run.json has.
constexpr size_t kCharacterBytesMax = 4;                 // Of UTF-8. A cut may leave 3 bytes less.
constexpr size_t kListMax = 200000;

// The digest of a file that is read line by line.
class LineDigest {
 public:
  void Take(std::string_view line) {
    hash_.Update(line);
    hash_.Update("\n");
    bytes_ += line.size() + 1;
  }
  // Adds it to the hashes, unless the lines were not all of the file's bytes: one was too long, or
  // the last one has no end.
  void AddTo(const std::string& directory, const std::string& name, ReportEvidence* out) {
    struct stat facts {};
    const bool is_there = ::lstat((directory + "/" + name).c_str(), &facts) == 0;
    if (!is_there || facts.st_size != bytes_) return;
    out->hashes.emplace_back(name, hash_.Hex());
  }

 private:
  codec::Sha256 hash_;
  off_t bytes_ = 0;
};

class Reader {
 public:
  // `known` has the texts that the records name by their numbers.
  explicit Reader(const std::string& directory, ReportEvidence known = {})
      : directory_(directory), out_(std::move(known)) {}

  std::optional<Ending> ReadEnding() {
    if (!TakeRun().ok()) return std::nullopt;
    return out_.ending;
  }

  ReportEvidence Read() {
    Result<report::RunFile> run = TakeRun();
    if (run.ok()) {
      for (const report::ControlRecord& control : run.value().record.isolation.controls) {
        const bool enforced = control.state == report::ControlState::kEnforced;
        if (control.name == "records" && !enforced) events_lossy_ = true;
        if (control.name == sandbox::TextOf(sandbox::ControlName::kAgentOutput) && !enforced)
          log_lossy_ = true;
      }
      TakeAnswer(run.value());
      TakeFiles();
      for (const report::Finding& finding : run.value().record.findings) {
        out_.evidence.findings.push_back(finding.rule + ": " + finding.message);
      }
    }
    // A run that was killed may have left some of them.
    TakeEvents(run.ok() && out_.ending != Ending::kNeverRan);
    return std::move(out_);
  }

 private:
  std::optional<std::string> File(const std::string& name) {
    Result<std::string> text = sys::ReadBeneath(directory_, name, kFileBytesMax);
    if (!text.ok()) return std::nullopt;
    out_.hashes.emplace_back(name, codec::Sha256Hex(text.value()));
    return std::move(text).value();
  }
  void Set(Channel channel, Completeness completeness) {
    out_.evidence.channels[channel] = completeness;
  }

  Result<report::RunFile> TakeRun() {
    std::optional<std::string> text = File("run.json");
    Result<report::RunFile> run = Invalid("run.json: missing");
    if (text) run = report::ParseRun(*text);
    if (run.ok()) {
      TakeEnding(run.value().record);
    } else {
      out_.ending = ShowsStart(directory_) ? Ending::kLost : Ending::kNeverRan;
      out_.ending_reason = run.error().what;
    }
    return run;
  }

  void TakeEnding(const report::RunRecord& run) {
    using End = report::OutcomeKind;
    const report::OutcomeRecord& outcome = run.outcome;
    bool ran = outcome.agent_status.has_value();
    for (const auto& [phase, ms] : run.phases_ms) {
      if (phase != "agent") continue;
      out_.agent_ms = ms;
      ran = true;
    }
    switch (outcome.kind) {
      case End::kSuccess:
      case End::kFindings:
        out_.ending = Ending::kEnded;
        break;
      // Refused by a gate, after the agent had ended; otherwise it never started.
      case End::kRefused:
        out_.ending = ran ? Ending::kEnded : Ending::kNeverRan;
        break;
      case End::kAgentFailed:
      case End::kTimedOut:
      case End::kIdle:
      case End::kLimit:
        out_.ending = Ending::kFailed;
        break;
      case End::kCredentialRefused:
        out_.ending = ran ? Ending::kLost : Ending::kNeverRan;
        break;
      default:
        out_.ending = ran ? Ending::kLost : Ending::kNeverRan;
        events_lossy_ = true;
    }
    if (out_.ending != Ending::kEnded) {
      out_.ending_reason = report::Render(outcome.kind);
      if (!outcome.reason.empty()) out_.ending_reason += ": " + outcome.reason;
    }
  }

  // Takes the answer. If a program's output is not parsed, all of it is the answer. What a mask
  // stands for may be any text.
  void TakeAnswer(const report::RunFile& run) {
    if (out_.ending == Ending::kNeverRan) return;
    bool whole = true;
    if (run.record.agent.name != "command") {
      out_.evidence.answer = run.agent_text;
      whole = out_.ending == Ending::kEnded &&
              run.agent_text.size() <= kAgentTextBytesMax - kCharacterBytesMax;
    } else {
      std::optional<std::string> log = File("agent.log");
      if (!log) return;
      out_.evidence.answer = std::move(*log);
      const bool cut =
          std::any_of(run.record.limits.begin(), run.record.limits.end(),
                      [](const auto& one) { return one.name == "output" && one.fired; });
      whole = !cut && !log_lossy_;
    }
    whole = whole && !codec::HasMark(out_.evidence.answer);
    Set(Channel::kAnswer, whole ? Completeness::kComplete : Completeness::kLossy);
  }

  // Takes what the agent left, not the patch: that is without ignored files, `.git` and what it
  // cannot express, and its bytes are converted.
  void TakeFiles() {
    if (out_.ending == Ending::kNeverRan || !File(report::kFilesFile)) return;
    using Change = ChangedPath::Change;
    Result<bool> all = report::ForEachLeftFile(directory_, [&](report::LeftFile file) {
      const Change change = file.change == "created"   ? Change::kCreated
                            : file.change == "deleted" ? Change::kDeleted
                                                       : Change::kModified;
      out_.evidence.files.push_back({std::move(file.path), change, std::move(file.content)});
    });
    if (!all.ok()) return;
    Set(Channel::kFiles, all.value() ? Completeness::kComplete : Completeness::kLossy);
  }

  void TakeEvents(bool ended) {
    bool odd = events_lossy_;
    bool recorded = sys::Exists(directory_ + "/events.ocsf.jsonl");
    LineDigest digest;
    Status read = report::ForEachEventLine(directory_, [&](std::string_view line, bool whole) {
      digest.Take(line);
      const std::optional<record::Record> parsed = record::ParseOcsf(line);
      if (!whole || !parsed || !TakeRecord(*parsed)) odd = true;
    });
    if (!recorded || !read.ok()) return;
    digest.AddTo(directory_, "events.ocsf.jsonl", &out_);
    Completeness events = odd || !ended ? Completeness::kLossy : Completeness::kComplete;
    Set(Channel::kNetwork, events);
    Set(Channel::kFindings, events);
    // Known for programs that connect, without their arguments.
    Set(Channel::kCommands, Completeness::kLossy);
    TakePrograms(ended);
    // Without any request, the model may have been asked in a way that was not recognised.
    const bool looked = out_.evidence.markers && !out_.evidence.markers->empty();
    if (looked && models_asked_) Set(Channel::kModel, events);
    if (model_lossy_) Set(Channel::kModel, Completeness::kLossy);
    if (out_.evidence.watched) Set(Channel::kSent, sent_lossy_ ? Completeness::kLossy : events);
  }

  // Takes all programs, if they were recorded.
  void TakePrograms(bool ended) {
    if (!File(report::kProgramsFile)) return;
    Result<bool> all = report::ForEachProgram(directory_, [&](const report::StartedProgram& one) {
      out_.evidence.programs.push_back({one.path, Join(one.arguments, " ")});
    });
    if (all.ok() && all.value() && ended) Set(Channel::kCommands, Completeness::kComplete);
  }

  // Returns false if it is not understood.
  bool TakeRecord(const record::Record& parsed) {
    using Kind = record::Notice::Kind;
    if (out_.evidence.network.size() + out_.evidence.programs.size() > kListMax) return false;
    if (const auto* event = std::get_if<record::Event>(&parsed)) return TakeNetwork(*event);
    const auto* notice = std::get_if<record::Notice>(&parsed);
    if (notice == nullptr) return false;
    if (notice->kind == Kind::kInference) models_asked_ = true;
    if (notice->kind == Kind::kFinding) TakeFinding(*notice);
    return true;  // Lifecycle and configuration: not asked about.
  }

  bool TakeNetwork(const record::Event& seen) {
    using Outcome = record::Event::Outcome;
    if (!seen.binary.empty() && seen.binary != "-") {
      out_.evidence.programs.push_back({seen.binary, ""});
    }
    if (seen.outcome == Outcome::kFailed) return true;  // It was recorded as allowed before.
    NetworkEvent event;
    // In audit what the rules deny passes.
    event.allowed = seen.outcome == Outcome::kAllowed || seen.outcome == Outcome::kAudited;
    event.host = seen.host;
    event.port = seen.port;
    event.method = seen.method;
    event.path = seen.path;
    if (seen.protocol == "hosted-tools") {
      for (const policy::Operation& use : seen.operations) event.hosted.push_back(use.tool);
    }
    out_.evidence.network.push_back(event);
    return seen.outcome != Outcome::kNone;
  }

  void TakeFinding(const record::Notice& notice) {
    if (notice.type == "watch.unread") {
      model_lossy_ = true;
    } else if (notice.type == "watch.sent-unread") {
      sent_lossy_ = true;
    } else if (notice.type == "watch.sent") {
      const std::string* text = Numbered(notice, out_.evidence.watched);
      sent_lossy_ = sent_lossy_ || text == nullptr;
      if (text == nullptr) return;
      out_.evidence.sent.push_back(
          {*text, std::string(notice.ContextAt("host")), notice.CountAt("model").value_or(0) != 0});
    } else if (notice.type == "watch.text") {
      const std::string* text = Numbered(notice, out_.evidence.markers);
      model_lossy_ = model_lossy_ || text == nullptr;
      if (text != nullptr) {
        out_.evidence.delivered.emplace(*text, notice.CountAt("request").value_or(0));
      }
    } else {
      out_.evidence.findings.push_back(notice.title);
    }
  }

  // Returns the text whose number a record has; null if there is no such text.
  static const std::string* Numbered(const record::Notice& notice,
                                     const std::optional<std::vector<std::string>>& texts) {
    const int64_t number = notice.CountAt("text").value_or(0);
    if (!texts || number < 1 || number > static_cast<int64_t>(texts->size())) return nullptr;
    return &(*texts)[static_cast<size_t>(number) - 1];
  }

  const std::string& directory_;
  ReportEvidence out_;
  bool models_asked_ = false;
  bool model_lossy_ = false;
  bool sent_lossy_ = false;
  bool events_lossy_ = false;  // OpenShell's last records did not come.
  bool log_lossy_ = false;     // The agent's output was not written whole.
};

// Returns the texts that a run was to look for; nothing if it was told none.
std::optional<std::vector<std::string>> ReadTexts(const std::string& directory, const char* name,
                                                  ReportEvidence* out) {
  Result<std::string> text = sys::ReadBeneath(directory, name, kFileBytesMax);
  if (!text.ok()) return std::nullopt;
  out->hashes.emplace_back(name, codec::Sha256Hex(text.value()));
  std::vector<std::string> texts;
  for (std::string_view rest = text.value(); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (!line.empty()) texts.emplace_back(line);  // As `run` numbers them.
  }
  return texts;
}

// Nothing of a record that cannot be read is known.
ReportEvidence ReadRemote(const std::string& directory, ReportEvidence out) {
  Result<std::string> text = sys::ReadBeneath(directory, kRemoteFile, kFileBytesMax);
  Result<RemoteRecord> record = Invalid("");
  if (text.ok()) {
    out.hashes.emplace_back(kRemoteFile, codec::Sha256Hex(text.value()));
    record = ParseRemoteRecord(text.value());
  }
  out.tools_reached = record.ok() && record.value().tools_reached;
  if (!record.ok()) {
    out.ending = Ending::kLost;
    out.ending_reason = std::string(kRemoteFile) + ": cannot be read";
    return out;
  }
  RemoteRecord& remote = record.value();
  out.ending = remote.ending;
  out.ending_reason = std::move(remote.reason);
  out.agent_ms = remote.ms;
  if (!IsJudged(remote.ending)) return out;  // There is no answer.
  const bool whole =
      remote.whole && remote.ending == Ending::kEnded && !codec::HasMark(remote.answer);
  out.evidence.answer = std::move(remote.answer);
  out.evidence.channels[Channel::kAnswer] = whole ? Completeness::kComplete : Completeness::kLossy;
  return out;
}

}  // namespace

ReportEvidence ReadCellEvidence(const std::string& directory) {
  ReportEvidence known;
  known.evidence.watched = ReadTexts(directory, kSentTextsFile, &known);
  known.evidence.markers = ReadTexts(directory, kMarkersFile, &known);
  if (sys::Exists(directory + "/" + kRemoteFile)) return ReadRemote(directory, std::move(known));
  const std::string report = directory + "/report";
  return Reader(report, std::move(known)).Read();
}

bool ShowsStart(const std::string& report) {
  auto shows = [&](const std::string& name, off_t bytes_min) {
    struct stat facts {};
    const bool is_there = ::lstat((report + "/" + name).c_str(), &facts) == 0;
    return is_there && S_ISREG(facts.st_mode) && facts.st_size >= bytes_min;
  };
  return shows(report::kProgramsFile, 0) || shows("agent.log", 1) || shows("agent.jsonl", 1);
}

std::optional<Ending> ReadEnding(const std::string& report) { return Reader(report).ReadEnding(); }

void ReadToolEvidence(const std::string& directory, const codec::Json& before,
                      ReportEvidence* out) {
  Evidence& evidence = out->evidence;
  evidence.state_before = before;
  Result<std::string> text = sys::ReadBeneath(directory, "state.json", kFileBytesMax);
  if (!text.ok()) return;
  out->hashes.emplace_back("state.json", codec::Sha256Hex(text.value()));
  Result<codec::Json> state = codec::ParseJson(text.value(), {.bytes_max = kFileBytesMax});
  if (!state.ok() || !out->tools_reached) return;
  evidence.state_after = std::move(state).value();
  bool odd = codec::HasMark(text.value());
  evidence.channels[Channel::kState] = odd ? Completeness::kLossy : Completeness::kComplete;
  if (!sys::Exists(directory + "/tools.jsonl")) return;  // It is there before the first call.
  odd = false;
  LineDigest digest;
  Status read = report::ForEachLine(
      directory + "/tools.jsonl", kFileBytesMax, kFileBytesMax,
      [&](std::string_view line, bool whole) {
        digest.Take(line);
        Result<codec::Json> json = codec::ParseJson(line, {.bytes_max = kFileBytesMax});
        odd = odd || !whole || !json.ok() || codec::HasMark(line);
        if (!json.ok()) return;
        ToolCall call;
        call.tool = json.value().StringAt("tool");
        call.result = json.value().StringAt("result");
        if (const codec::Json* arguments = json.value().Find("arguments"))
          call.arguments = *arguments;
        evidence.tools.push_back(std::move(call));
      });
  digest.AddTo(directory, "tools.jsonl", out);
  evidence.channels[Channel::kTools] =
      odd || !read.ok() ? Completeness::kLossy : Completeness::kComplete;
}

}  // namespace eval
