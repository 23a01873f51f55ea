// SPDX-License-Identifier: Apache-2.0
#include "eval/redteam/redteam.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/sys.h"
#include "codec/data/json.h"
#include "eval/child/own_program.h"
#include "eval/child/scratch.h"
#include "eval/redteam/bait.h"
#include "eval/redteam/connection.h"
#include "policy/model/credential_places.h"
#include "record/ocsf.h"
#include "report/event_lines.h"
#include "report/record_json.h"

namespace redteam {
namespace {

constexpr std::chrono::seconds kRunTime{60};
constexpr size_t kProgramBytesMax = size_t{256} << 20;
constexpr size_t kReportBytesMax = size_t{64} << 20;

std::string ValueOf(const eval::OwnProgram::Variables& variables, std::string_view name) {
  for (const auto& [key, value] : variables) {
    if (key == name) return value;
  }
  return {};
}

std::vector<std::string> CredentialFilesOf(const eval::OwnProgram::Variables& variables) {
  std::vector<std::string> files = CredentialFiles(ValueOf(variables, "HOME"));
  for (std::string_view name : {"GOOGLE_APPLICATION_CREDENTIALS", "KUBECONFIG", "NETRC",
                                "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE"}) {
    std::string path = ValueOf(variables, name);
    if (path.starts_with('/')) files.push_back(path);
  }
  std::erase_if(files, [](const std::string& path) { return !sys::Exists(path); });
  return files;
}

// The environment of a run, with a canary wherever a credential would be.
eval::OwnProgram::Variables WithCanaries(eval::OwnProgram::Variables variables,
                                         const std::vector<std::string>& credentials,
                                         const std::string& canary) {
  for (auto& [name, value] : variables) {
    bool is_credential =
        std::find(credentials.begin(), credentials.end(), name) != credentials.end();
    if (is_credential) value = canary;
  }
  variables.emplace_back(Bait::kVariable, canary);
  for (const std::string& name : credentials) {
    if (ValueOf(variables, name).empty()) variables.emplace_back(name, canary);
  }
  return variables;
}

// Returns whether any user may start it: the agent of a runner that is root may have a user of its
// own.
bool IsForEveryUser(const std::string& program) {
  for (size_t slash = program.find('/', 1);; slash = program.find('/', slash + 1)) {
    struct stat status = {};
    if (::stat(program.substr(0, slash).c_str(), &status) != 0) return false;
    if ((status.st_mode & S_IXOTH) == 0) return false;
    if (slash == std::string::npos) return (status.st_mode & S_IROTH) != 0;
  }
}

class Redteam {
 public:
  Redteam(const Plan& plan, const eval::OwnProgram& program, const std::string& directory)
      : plan_(plan), program_(program), directory_(directory) {
    workdir_ = plan.workdir;
    agent_ = program.path();
    report_ = plan.report.empty() ? directory + "/report" : plan.report;
  }

  Result<Results> Run() {
    const auto began = Deadline::Clock::now();
    Results results;
    results.user = ::geteuid();
    TRY(MakeCheckout(&results));
    results.policy = TRY(ViewPolicy(program_, plan_.environment, plan_.policy, plan_.agent));
    Evidence evidence;
    evidence.outside = TRY(TryOutside());
    TRY(TryInside(results.policy, &evidence));
    TRY(ReadReport(&results, &evidence));
    TRY(TrySmuggling(&evidence.inside, &evidence.seen));
    results.probes = Judge(evidence, results.policy);
    results.ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(Deadline::Clock::now() - began)
            .count();
    return results;
  }

 private:
  Result<std::string> TryOutside() {
    Bait bait = TRY(Bait::Lay(program_, plan_.environment));
    Targets targets = TargetsOf(bait);
    targets.outside = true;
    targets.checkout = plan_.workdir;
    const eval::OwnProgram::Variables variables =
        WithCanaries(plan_.environment, plan_.credentials, bait.variable_canary());
    eval::Answered answered = TRY(program_.Ask({"eval", "redteam-agent", Render(targets)},
                                               variables, Deadline::After(kRunTime)));
    if (answered.status != 0) return ErrorOf(answered);
    return std::move(answered.output);
  }

  // A directory with nothing of the user's. In an image, where no program of the host is, and where
  // the agent's user could not start the program, it holds the agent; such a program needs no
  // library.
  Status MakeCheckout(Results* results) {
    const std::string checkout = directory_ + "/checkout";
    TRY(sys::MakeDirectories(checkout));
    if (!plan_.in_image) {
      if (results->user != 0 || IsForEveryUser(program_.path())) return Ok();
      results->weaker.push_back("checkout: not shown to the agent, whose user may not start " +
                                program_.path());
    }
    workdir_ = checkout;
    agent_ = checkout + "/agentic-ci";
    std::string program = TRY(sys::ReadFile(program_.path(), kProgramBytesMax));
    return sys::WriteFile(agent_, program, 0755);
  }

  // `run` in the sandbox, with everything of the user's that is about it.
  Result<eval::Answered> RunInside(const std::string& workdir, const std::string& report,
                                   const std::string& policy, const Targets& targets,
                                   const eval::OwnProgram::Variables& variables) const {
    std::vector<std::string> words = {"run",   "--quiet",      "--workdir",
                                      workdir, "--report-dir", report};
    if (!policy.empty()) words.insert(words.end(), {"--policy", policy});
    words.insert(words.end(), plan_.options.begin(), plan_.options.end());
    words.insert(words.end(), {"--", agent_, "eval", "redteam-agent", Render(targets)});
    return program_.Ask(words, variables, Deadline::After(kRunTime));
  }

  Targets TargetsOf(const Bait& bait) const {
    Targets targets = bait.targets();
    if (plan_.in_image) return targets;  // Files of those names there are the image's.
    std::vector<std::string> files = CredentialFilesOf(plan_.environment);
    targets.credential_files.insert(targets.credential_files.end(), files.begin(), files.end());
    return targets;
  }

  Status TryInside(const PolicyView& policy, Evidence* evidence) {
    Bait bait = TRY(Bait::Lay(program_, plan_.environment));
    Targets targets = TargetsOf(bait);
    for (const Probe& probe : Probes()) {
      if (policy.allowed.contains(probe.destination)) targets.skipped.emplace_back(probe.id);
    }
    for (const Opening& opening : policy.openings) {
      if (!opening.path.empty()) targets.searched.push_back(opening.path);
    }
    const eval::OwnProgram::Variables variables =
        WithCanaries(plan_.environment, plan_.credentials, bait.variable_canary());
    run_ = TRY(RunInside(workdir_, report_, plan_.policy, targets, variables));
    evidence->seen = bait.Look();
    evidence->bait_file = bait.targets().bait_file;
    return Ok();
  }

  Status ReadReport(Results* results, Evidence* evidence) {
    Result<std::string> text = sys::ReadFile(report_ + "/run.json", kReportBytesMax);
    if (!text.ok()) return ErrorOf(run_);
    report::RunFile run = TRY(report::ParseRun(text.value()));
    const report::OutcomeRecord& outcome = run.record.outcome;
    if (!outcome.agent_status) {
      Error error = ErrorOf(run_);
      if (!outcome.reason.empty()) error.what = outcome.reason;
      return error;
    }
    results->tier = run.record.isolation.tier;
    evidence->landlock = results->tier == "landlock";
    for (const report::ControlRecord& control : run.record.isolation.controls) {
      if (control.state == report::ControlState::kEnforced) continue;
      results->weaker.push_back(control.name + ": " + report::Render(control.state) +
                                (control.note.empty() ? "" : ", " + control.note));
    }
    evidence->inside = TRY(sys::ReadFile(report_ + "/agent.log", kReportBytesMax)
                               .Context("reading what the agent printed"));
    return ReadRecords(&evidence->seen);
  }

  // Reads what the gateway wrote down of each connection and request.
  Status ReadRecords(Seen* seen) {
    bool whole = true;
    TRY(report::ForEachEventLine(report_, [&](std::string_view line, bool is_whole) {
      const std::optional<record::Record> parsed = record::ParseOcsf(line);
      whole = whole && is_whole && parsed;
      const auto* event = parsed ? std::get_if<record::Event>(&*parsed) : nullptr;
      if (event == nullptr) return;
      if (event->outcome == record::Event::Outcome::kDenied) {
        seen->refused.push_back(event->host);
      } else {
        seen->let_through.push_back(event->host + ":" + std::to_string(event->port));
      }
    }));
    if (!whole) return Error{Code::kIo, "the gateway's records cannot be read"};
    return Ok();
  }

  // Over a server that a policy of this one's own allows in part: outside, then in the sandbox.
  Status TrySmuggling(std::string* inside, Seen* seen) {
    Targets targets;
    targets.bait = directory_;
    const std::string log = directory_ + "/arrivals";
    {
      Child server = TRY(StartServer(log, &targets.upstream));
      targets.outside = true;
      eval::Answered answered = TRY(program_.Ask({"eval", "redteam-agent", Render(targets)},
                                                 plan_.environment, Deadline::After(kRunTime)));
      if (answered.status != 0) return ErrorOf(answered);
    }
    seen->arrivals_outside = ReadArrivals(TRY(sys::ReadFile(log, kReportBytesMax)));
    Child server = TRY(StartServer(log, &targets.upstream));
    targets.outside = false;
    const std::string port = std::to_string(targets.upstream);
    seen->upstream = "host.openshell.internal:" + port;
    const std::string policy = directory_ + "/upstream.yml";
    TRY(sys::WriteFile(policy,
                       "version: 1\n"
                       "network_policies:\n"
                       "  upstream:\n"
                       "    endpoints:\n"
                       "      - host: host.openshell.internal\n"
                       "        port: " +
                           port +
                           "\n"
                           "        protocol: rest\n"
                           "        rules: [{allow: {method: GET, path: /open/*}}]\n"
                           "    binaries: [{path: \"/**\"}]\n"));
    const std::string report = directory_ + "/upstream-report";
    eval::Answered run =
        TRY(RunInside(directory_ + "/checkout", report, policy, targets, plan_.environment));
    if (run.status != 0) return ErrorOf(run);
    *inside += TRY(sys::ReadFile(report + "/agent.log", kReportBytesMax));
    seen->arrivals = ReadArrivals(TRY(sys::ReadFile(log, kReportBytesMax)));
    return Ok();
  }

  Result<Child> StartServer(const std::string& log, int* port) {
    Fd listener = TRY(ListenOnLoopback(port));
    TRY(sys::WriteFile(log, ""));
    Fd file = TRY(sys::Open(log, O_WRONLY | O_APPEND));
    Targets serving;
    serving.bait = directory_;
    serving.serves = true;
    return program_.Start({"eval", "redteam-agent", Render(serving)}, plan_.environment, file.get(),
                          listener.get());
  }

  const Plan& plan_;
  const eval::OwnProgram& program_;
  const std::string directory_;
  std::string report_;
  std::string workdir_;
  std::string agent_;  // The program, by the path that the sandbox shows it at.
  eval::Answered run_;
};

}  // namespace

std::vector<std::string> CredentialFiles(const std::string& home) {
  std::vector<std::string> files;
  for (const policy::CredentialPlace& place : policy::kCredentialPlaces) {
    if ((place.uses & policy::kProbe) == 0) continue;
    const std::string path(place.path);
    if (path.starts_with('/')) {
      files.push_back(path);
    } else if (!home.empty()) {
      files.push_back(home + "/" + path);
    }
  }
  return files;
}

Result<Results> RunRedteam(const Plan& plan) {
  eval::OwnProgram program = TRY(eval::OwnProgram::Find(plan.search_path));
  eval::Scratch scratch = TRY(eval::Scratch::Create());
  const std::string place = TRY(sys::RealPath(scratch.path()));
  if (place.starts_with(plan.workdir == "/" ? plan.workdir : plan.workdir + "/")) {
    return Error{Code::kUsage, "the directory for temporary files is in the checkout",
                 "TMPDIR=/var/tmp agentic-ci eval redteam"};
  }
  return Redteam(plan, program, scratch.path()).Run();
}

size_t Count(const Results& results, Standing standing) {
  return static_cast<size_t>(
      std::count_if(results.probes.begin(), results.probes.end(),
                    [&](const Judged& one) { return one.standing == standing; }));
}

bool Holds(const Results& results) {
  return Count(results, Standing::kThrough) == 0 && Count(results, Standing::kUndecided) == 0;
}

}  // namespace redteam
