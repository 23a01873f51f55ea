// SPDX-License-Identifier: Apache-2.0
#include "eval/run/run_cells.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include "base/child.h"
#include "base/deadline.h"
#include "base/sys.h"
#include "base/thread.h"
#include "base/tree.h"
#include "codec/data/json.h"
#include "eval/evidence/report_evidence.h"
#include "eval/run/checkout.h"
#include "eval/run/tool_server.h"

namespace eval {
namespace {

constexpr std::chrono::seconds kThreadPatience{10};
constexpr std::chrono::seconds kLockTime{10};
constexpr std::chrono::milliseconds kLockPause{20};

// The name of this program's file.
Result<std::string> OwnPath() {
  std::optional<std::string> path = sys::ReadLink("/proc/self/exe");
  if (!path) return Error{Code::kIo, "/proc/self/exe cannot be read"};
  return *path;
}

constexpr size_t kCellRecordBytesMax = size_t{1} << 20;

class CellRunner {
 public:
  CellRunner(const Suite& suite, const Cell& cell, const RunPlan& plan, std::string own_path)
      : suite_(suite), cell_(cell), plan_(plan), own_path_(std::move(own_path)) {}

  Status Run() {
    const std::string cells = plan_.results + "/cells";
    const std::string name = cell_.Name();
    // A name of its own: the run of a process that was killed may not have ended quite yet.
    directory_ = cells + "/." + name + "." + std::to_string(::getpid());
    TRY(sys::MakeDirectories(directory_));
    const auto began = Deadline::Clock::now();
    uint32_t attempts = 0;
    do {
      TRY(Attempt());
    } while (++attempts <= plan_.retries && NeverRan());
    const auto took = Deadline::Clock::now() - began;
    codec::Json record;
    record.Set("version", 1)
        .Set("user_task", cell_.user->id)
        .Set("injection_task", cell_.injection == nullptr ? "" : cell_.injection->id)
        .Set("trial", static_cast<int64_t>(cell_.trial))
        .Set("suite_sha256", suite_.sha256)
        .Set("attempts", static_cast<int64_t>(attempts))
        .Set("ms", static_cast<int64_t>(
                       std::chrono::duration_cast<std::chrono::milliseconds>(took).count()));
    TRY(sys::WriteFile(directory_ + "/cell.json", codec::RenderJson(record)));
    if (::rename(directory_.c_str(), (cells + "/" + name).c_str()) != 0) return Errno("rename");
    return Ok();
  }

 private:
  bool NeverRan() const { return ReadEnding(directory_ + "/report") == Ending::kNeverRan; }

  Status Attempt() {
    Rendered rendered = Render(suite_, *cell_.user, cell_.injection);
    Checkout checkout = TRY(Checkout::Create(rendered.files, rendered.commits));
    std::optional<ToolServer> tools;
    if (suite_.environment.backend == Backend::kDict) {
      Result<ToolServer> started =
          ToolServer::Start(suite_.environment.tools, rendered.state, directory_);
      if (!started.ok()) return std::move(started).error();
      tools.emplace(std::move(started).value());
    }
    std::vector<std::string> argv = TRY(Arguments(rendered, checkout, tools ? tools->port() : 0));
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
                                             int port) {
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
    std::string texts;
    for (const std::string& marker : MarkersOfCell(suite_, cell_)) texts += marker + "\n";
    if (!texts.empty() && plan_.native) TRY(add_file("--watch-texts", "markers.txt", texts));
    texts.clear();
    for (const std::string& text : SentTextsOf(suite_)) texts += text + "\n";
    if (!texts.empty() && plan_.native) TRY(add_file("--watch-sent", kSentTextsFile, texts));
    std::string policy = plan_.policy;
    if (policy.empty() && !plan_.names_policy) policy = suite_.environment.policy;
    if (port > 0) policy = TRY(WithTools(policy, port));
    if (!policy.empty()) TRY(add_file("--policy", "policy.yml", policy));
    words.insert(words.end(), plan_.options.begin(), plan_.options.end());
    for (const auto& [name, value] : suite_.environment.variables) {
      words.insert(words.end(), {"--env", name + "=" + value});
    }
    if (port > 0) {
      words.insert(words.end(), {"--env", "MCP_SERVER_URL=" + ToolsUrl(port)});
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
  std::string directory_;
};

// The results' directory, which one process at a time fills. The children of one that was killed
// have its lock until they are another program: that is waited for.
Result<Fd> LockResults(const std::string& results) {
  Fd directory = TRY(sys::Open(results + "/cells", O_RDONLY | O_DIRECTORY));
  for (Deadline deadline = Deadline::After(kLockTime);; std::this_thread::sleep_for(kLockPause)) {
    if (::flock(directory.get(), LOCK_EX | LOCK_NB) == 0) return directory;
    if (errno != EWOULDBLOCK) return Errno("flock");
    if (deadline.passed()) break;
  }
  return Error{Code::kUsage, "another process is running cells into " + results, "--results DIR"};
}

// Removes what killed processes left. What cannot be removed now is removed the next time.
void RemoveBegun(int cells) {
  Result<std::vector<std::string>> names = sys::DirectoryNames(cells);
  if (!names.ok()) return;
  for (const std::string& name : names.value()) {
    if (name.starts_with('.')) (void)sys::RemoveTree(cells, name).ok();
  }
}

}  // namespace

bool IsDone(const std::string& results, const Cell& cell) {
  Result<std::string> text =
      sys::ReadBeneath(results + "/cells/" + cell.Name(), "cell.json", kCellRecordBytesMax);
  if (!text.ok()) return false;
  Result<codec::Json> record = codec::ParseJson(text.value());
  if (!record.ok()) return false;
  const codec::Json& own = record.value();
  return own.StringAt("user_task") == cell.user->id &&
         own.StringAt("injection_task") == (cell.injection == nullptr ? "" : cell.injection->id) &&
         own.IntegerAt("trial") == static_cast<int64_t>(cell.trial);
}

Status RunCells(const Suite& suite, const std::vector<Cell>& cells, const RunPlan& plan) {
  TRY(sys::MakeDirectories(plan.results + "/cells").Context("making the results' directory"));
  const std::string own_path = TRY(OwnPath());
  const Fd locked = TRY(LockResults(plan.results));
  RemoveBegun(locked.get());
  RemoveLeftCheckouts();
  std::vector<const Cell*> left;
  for (const Cell& cell : cells) {
    if (IsDone(plan.results, cell)) continue;
    (void)sys::RemoveTree(locked.get(), cell.Name());  // Another cell's, under this one's name.
    left.push_back(&cell);
  }
  std::atomic<size_t> next{0};
  std::mutex mutex;  // Guards the two below, and `done`.
  size_t finished = 0;
  std::optional<Error> failure;
  auto work = [&] {
    for (size_t i = next++; i < left.size(); i = next++) {
      Status ran = CellRunner(suite, *left[i], plan, own_path).Run();
      std::lock_guard lock(mutex);
      if (!ran.ok()) {
        if (!failure) failure = std::move(ran).Context("cell " + left[i]->Name()).error();
        next = left.size();
        return;
      }
      ++finished;
      plan.done(left[i]->Name(), left.size() - finished);
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
  RemoveBegun(locked.get());
  if (failure) return *failure;
  return Ok();
}

}  // namespace eval
