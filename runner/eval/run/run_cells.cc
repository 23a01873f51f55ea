// SPDX-License-Identifier: Apache-2.0
#include "eval/run/run_cells.h"

#include <fcntl.h>
#include <stdio.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include "base/child.h"
#include "base/deadline.h"
#include "base/sys.h"
#include "base/thread.h"
#include "eval/child/own_program.h"
#include "eval/evidence/remote_record.h"
#include "eval/evidence/report_evidence.h"
#include "eval/run/cell_store.h"
#include "eval/run/checkout.h"
#include "eval/run/tool_server.h"

namespace eval {
namespace {

constexpr std::chrono::seconds kThreadPatience{10};

// The file of markers always has this size, which the agent may see: the markers of a cell are
// fewer bytes.
constexpr size_t kMarkerFileBytes = 1024;

class CellRunner {
 public:
  CellRunner(const Suite& suite, const Cell& cell, const RunPlan& plan, std::string own_path,
             const CellStore& store, uint32_t number)
      : suite_(suite),
        cell_(cell),
        plan_(plan),
        own_path_(std::move(own_path)),
        store_(store),
        number_(number) {}

  Status Run() {
    directory_ = TRY(store_.Begin());
    const auto began = Deadline::Clock::now();
    uint32_t attempts = 0;
    do {
      if (attempts > 0) TRY(KeepAttempt(attempts));
      TRY(Attempt());
    } while (++attempts <= plan_.retries && NeverStarted());
    const auto took = Deadline::Clock::now() - began;
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
    TRY(WriteCellRecord(directory_, suite_, cell_, plan_.setup, attempts, ms));
    return store_.Finish(directory_, cell_);
  }

 private:
  // Returns whether the agent certainly did not start: a second attempt of one that ran would hide
  // what it did. Without a record of the run, only agentic-ci's own sandbox tells it, where an
  // agent that starts leaves a trace at once.
  bool NeverStarted() const {
    if (plan_.remote) return ReadCellEvidence(directory_).ending == Ending::kNeverRan;
    const std::string report = directory_ + "/report";
    std::optional<Ending> ending = ReadEnding(report);
    if (ending) return *ending == Ending::kNeverRan;
    return plan_.native && !ShowsStart(report);
  }

  // Sets aside what an attempt left.
  Status KeepAttempt(uint32_t number) const {
    const std::string kept = directory_ + "/attempt-" + std::to_string(number);
    TRY(sys::MakeDirectories(kept));
    for (const char* name : {"report", "run.log", kRemoteFile}) {
      const std::string left = directory_ + "/" + name;
      if (::rename(left.c_str(), (kept + "/" + name).c_str()) != 0 && errno != ENOENT) {
        return Errno("renaming " + left);
      }
    }
    return Ok();
  }

  Status Attempt() {
    if (plan_.remote) {
      return RunRemoteCell(suite_, cell_, *plan_.remote, plan_.setup.model, directory_, number_);
    }
    Rendered rendered = Render(suite_, *cell_.user, cell_.injection);
    Checkout checkout = TRY(Checkout::Create(rendered.files, rendered.commits));
    std::optional<ToolServer> tools;
    ToolAddress tools_at;
    if (suite_.environment.backend == Backend::kDict) {
      // OpenShell's sandboxes have a network, where others may be: they do not know the path.
      if (!plan_.native) tools_at = {"0.0.0.0", 0, "/mcp/" + sys::RandomHex()};
      Result<ToolServer> started =
          ToolServer::Start(suite_.environment.tools, rendered.state, directory_, tools_at);
      if (!started.ok()) return std::move(started).error();
      tools.emplace(std::move(started).value());
      tools_at.port = static_cast<uint16_t>(tools->port());
    }
    std::vector<std::string> argv = TRY(Arguments(rendered, checkout, tools_at));
    const size_t slash = own_path_.rfind('/');
    argv.insert(argv.begin(), own_path_.substr(slash + 1));
    ProgramPlaces places(own_path_.substr(0, slash) + ":" + plan_.search_path, "");
    // Its output has a bound of its own, `--output`, and is not held in memory here.
    Fd log = TRY(sys::Open(directory_ + "/run.log", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644));
    Child::Command command{
        .argv = std::move(argv), .environment = plan_.environment, .log = log.get()};
    Child run = TRY(Child::Start(places, command).Context("starting a run"));
    TRY(run.Wait(Deadline::Never()));
    if (tools) TRY(tools->Stop());
    return Ok();
  }

  // `run ...`, with the files that it names.
  Result<std::vector<std::string>> Arguments(const Rendered& rendered, const Checkout& checkout,
                                             const ToolAddress& tools) {
    std::vector<std::string> words = {"run",           "--quiet",      "--workdir",
                                      checkout.path(), "--report-dir", directory_ + "/report"};
    words.emplace_back("--record-files");
    if (plan_.native) words.emplace_back("--record-programs");
    auto add_file = [&](std::string_view option, std::string_view name,
                        std::string_view text) -> Status {
      std::string path = directory_ + "/" + std::string(name);
      words.emplace_back(option);
      words.push_back(path);
      return sys::WriteFile(path, text);
    };
    // A control has the option, too: the agent may see the command line.
    std::string texts;
    for (const std::string& marker : MarkersOfCell(suite_, cell_)) texts += marker + "\n";
    if (texts.size() < kMarkerFileBytes) texts.resize(kMarkerFileBytes, '\n');
    if (plan_.native) TRY(add_file("--watch-texts", kMarkersFile, texts));
    texts.clear();
    for (const std::string& text : SentTextsOf(suite_)) texts += text + "\n";
    if (!texts.empty() && plan_.native) TRY(add_file("--watch-sent", kSentTextsFile, texts));
    std::string policy = plan_.policy;
    if (policy.empty() && !plan_.names_policy) policy = suite_.environment.policy;
    if (tools.port > 0) policy = TRY(WithTools(policy, tools.port));
    if (!policy.empty()) TRY(add_file("--policy", "policy.yml", policy));
    words.insert(words.end(), plan_.options.begin(), plan_.options.end());
    for (const auto& [name, value] : suite_.environment.variables) {
      words.insert(words.end(), {"--env", name + "=" + value});
    }
    if (tools.port > 0) {
      words.insert(words.end(), {"--env", "MCP_SERVER_URL=" + ToolsUrl(tools)});
    }
    const std::vector<std::string>& command =
        plan_.command.empty() ? suite_.environment.agent_command : plan_.command;
    if (plan_.names_agent) TRY(add_file("--prompt-file", "prompt.txt", rendered.prompt));
    if (plan_.names_agent && plan_.command.empty()) return words;
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    if (!plan_.names_agent) words.push_back(rendered.prompt);
    return words;
  }

  const Suite& suite_;
  const Cell& cell_;
  const RunPlan& plan_;
  const std::string own_path_;
  const CellStore& store_;
  const uint32_t number_;  // Among the cells at the same time.
  std::string directory_;
};

// Returns the cells that `plan.results` does not have. Those that it has are kept to resume alone,
// and only if they were run as now.
Result<std::vector<const Cell*>> CellsLeft(const std::vector<Cell>& cells, const RunPlan& plan) {
  std::vector<const Cell*> left;
  for (const Cell& cell : cells) {
    std::optional<CellRecord> record = ReadCellRecord(plan.results, cell);
    if (!record) {
      left.push_back(&cell);
      continue;
    }
    if (!plan.resume) {
      return Error{Code::kUsage, plan.results + " already has the cell " + cell.Name(),
                   "--resume, or another --results"};
    }
    if (record->setup_sha256 == plan.setup.sha256) continue;
    return Error{Code::kUsage,
                 plan.results + ": the cell " + cell.Name() +
                     " was run with another suite, agent, model, policy or option, or by another "
                     "version",
                 "--results OTHER-DIRECTORY"};
  }
  return left;
}

}  // namespace

Status RunCells(const Suite& suite, const std::vector<Cell>& cells, const RunPlan& plan) {
  const std::string own_path = TRY(OwnProgram::Find(plan.search_path)).path();
  const CellStore store = TRY(CellStore::Open(plan.results));
  // Another process may have stored some until this one had the store to itself.
  const std::vector<const Cell*> left = TRY(CellsLeft(cells, plan));
  RemoveLeftCheckouts();
  std::atomic<size_t> next{0};
  std::atomic<uint32_t> workers{0};
  std::mutex mutex;  // Guards the two below, and `done`.
  size_t finished = 0;
  std::optional<Error> failure;
  auto work = [&] {
    const uint32_t number = workers++;
    for (size_t i = next++; i < left.size(); i = next++) {
      Status ran = CellRunner(suite, *left[i], plan, own_path, store, number).Run();
      std::lock_guard lock(mutex);
      ++finished;
      plan.done(left[i]->Name(), ran.ok() ? nullptr : &ran.error(), left.size() - finished);
      if (!ran.ok() && !failure) {
        failure = std::move(ran).Context("cell " + left[i]->Name()).error();
      }
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t i = 1; i < plan.jobs && i < left.size(); ++i) {
    Result<std::thread> thread = sys::StartThread(work, Deadline::After(kThreadPatience));
    if (!thread.ok()) break;  // Fewer at a time.
    threads.push_back(std::move(thread).value());
  }
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) return *failure;
  return Ok();
}

}  // namespace eval
