// SPDX-License-Identifier: Apache-2.0
#include "serve/loop.h"

#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/sys.h"
#include "base/wire.h"
#include "serve/command.h"
#include "serve/event_stream.h"
#include "serve/work.h"

namespace serve {
namespace {

constexpr size_t kClientBytes = size_t{256} << 10;
constexpr std::chrono::seconds kFarewell{2};
constexpr std::chrono::seconds kEndTime{20};  // For the reports of what is ended.

void Reap(pid_t child) {
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// The options of a sandbox that is created as one with `options` was, but for what `params` of
// `fork` say. Its name, its report and its first state are its own, and two that apply their
// changes at their ends would meet.
codec::Json ForkOptions(const codec::Json& options, const codec::Json& params) {
  constexpr std::string_view kOwn[] = {"name",         "report-dir", "snapshot",
                                       "snapshot-key", "apply",      "apply-ignored"};
  codec::Json merged = codec::Json::EmptyObject();
  for (const auto& [name, value] :
       options.object() != nullptr ? *options.object() : codec::Json::Object()) {
    const bool own = std::find(std::begin(kOwn), std::end(kOwn), name) != std::end(kOwn);
    if (!own && params.Find(name) == nullptr) merged.Set(name, value);
  }
  for (const auto& [name, value] : *params.object()) {
    if (name != "sandbox") merged.Set(name, value);
  }
  return merged;
}

constexpr size_t kFixedSources = 4;  // Of Sources(), before those of sandboxes and tasks.

}  // namespace

Loop::Loop(session::Place place, CreateOptions options, int in, int out)
    : place_(std::move(place)),
      options_(std::move(options)),
      methods_(Methods(options_.members)),
      in_(in),
      output_(out) {
  const pid_t parent = ::getppid();
  // A parent outside of this process's namespace, or a reaper of orphans, is not the client.
  if (parent <= 1) return;
  Result<Fd> process = sys::PidfdOpen(parent);
  if (process.ok() && ::getppid() == parent) client_ = std::move(process).value();
}

Status Loop::Serve() {
  sigset_t ends;
  ::sigemptyset(&ends);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&ends, signal);
  ::sigprocmask(SIG_BLOCK, &ends, &mask_before_);
  signals_ = Fd(::signalfd(-1, &ends, SFD_CLOEXEC));
  if (!signals_.valid()) return Errno("signalfd");
  while (!ended_ && !output_.closed()) {
    std::vector<pollfd> sources = Sources();
    if (::poll(sources.data(), sources.size(), Next().poll_ms()) < 0 && errno != EINTR) {
      return Errno("poll");
    }
    if ((sources[1].revents & ~POLLOUT) != 0) break;
    if (sources[1].revents != 0) output_.Flush();
    if (sources[2].revents != 0 || sources[3].revents != 0) ended_ = true;
    DropEnded(sources.data() + kFixedSources);
    const pollfd* source = sources.data() + kFixedSources + own_.size();
    for (auto& [id, task] : tasks_) {
      task->Serve(source);
      source += Task::kSources;
    }
    DropAnswered();
    if (sources[0].revents != 0 && sources[0].events == POLLIN) {
      ReadClient();
    } else if (sources[0].revents != 0) {
      ended_ = true;
    }
    TellEnded();
    Turn();
  }
  if (ended_) output_.Finish(Deadline::After(kFarewell));
  EndSandboxes();
  return Ok();
}

// A client that does not read its answers is not read either.
bool Loop::ReadsClient() const {
  if (output_.full()) return false;
  return std::none_of(tasks_.begin(), tasks_.end(),
                      [](const auto& entry) { return entry.second->input_full(); });
}

std::vector<pollfd> Loop::Sources() const {
  std::vector<pollfd> sources;
  // Of a client that is not read, the end is seen all the same.
  sources.push_back({in_, static_cast<short>(ReadsClient() ? POLLIN : POLLRDHUP), 0});
  sources.push_back({output_.fd(), static_cast<short>(output_.waits() ? POLLOUT : 0), 0});
  sources.push_back({client_.get(), POLLIN, 0});
  sources.push_back({signals_.get(), POLLIN, 0});
  for (const auto& [keeper, own] : own_) sources.push_back({own.process.get(), POLLIN, 0});
  for (const auto& [id, task] : tasks_) task->AddSources(&sources);
  return sources;
}

Deadline Loop::Next() const {
  Deadline next = next_turn();
  if (output_.full()) return Deadline::Never();
  for (const auto& [id, task] : tasks_) next = std::min(next, task->next());
  return next;
}

void Loop::DropEnded(const pollfd* sources) {
  for (auto& [keeper, own] : own_) {
    if ((sources++)->revents == 0) continue;
    Reap(keeper);
    own.ended = true;
  }
}

void Loop::DropAnswered() {
  for (auto& [keeper, own] : own_) {
    if (own.creation != nullptr && own.creation->done()) own.creation = nullptr;
  }
  std::erase_if(tasks_, [](const auto& entry) { return entry.second->done(); });
}

void Loop::TellEnded() {
  std::erase_if(own_, [this](const auto& entry) {
    if (entry.second.ended) TakeEnd(entry.second.name);
    return entry.second.ended;
  });
}

void Loop::ReadClient() {
  std::string chunk(kClientBytes, '\0');
  const ssize_t n = ::read(in_, chunk.data(), chunk.size());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n <= 0) {
    ended_ = true;
    return;
  }
  std::string_view bytes = std::string_view(chunk).substr(0, static_cast<size_t>(n));
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (!skips_ && line_.size() + piece.size() > kLineBytesMax) {
      skips_ = true;
      line_.clear();
      output_.Write(RenderFault("null", Fault::kParse, "a line is longer than 16 MiB"));
    }
    if (!skips_) line_ += piece;
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    if (!std::exchange(skips_, false)) TakeLine(line_);
    line_.clear();
  }
}

void Loop::TakeLine(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  std::variant<Request, BadMessage> message = ParseMessage(line);
  if (const auto* bad = std::get_if<BadMessage>(&message)) {
    return output_.Write(RenderFault(bad->id, bad->fault, bad->what));
  }
  Take(*std::get_if<Request>(&message));
}

Status Loop::BeginTask(const std::string& id, const std::string& method, const codec::Json& params,
                       Task::Answer answer) {
  if (tasks_.contains(id)) return Error{Code::kUsage, "a request with that id goes on"};
  if (tasks_.size() >= kTasksMax) {
    return Error{Code::kTemporary, std::to_string(kTasksMax) + " requests go on"};
  }
  std::unique_ptr<Task> task = TRY(StartTask(id, method, params));
  if (answer) task->AnswerTo(std::move(answer));
  tasks_.emplace(id, std::move(task));
  return Ok();
}

Result<std::unique_ptr<Task>> Loop::StartTask(const std::string& id, const std::string& method,
                                              const codec::Json& params) {
  auto in_child = [this] { Forget(); };
  if (method == "exec") return Command::Start(place_, id, params, output_);
  if (method == "events") return EventStream::Start(place_, id, params, output_);
  if (method == "create") return StartCreation(id, params, {});
  if (method == "fork") {
    const std::string origin = params.StringAt("sandbox");
    const auto own = TRY(FindOwn(origin));
    return StartCreation(id, ForkOptions(own->second.options, params), origin);
  }
  const Job job = TRY(JobOf(place_, method, params));
  const bool takes_input = method == "put" && params.BooleanAt("archive");
  std::unique_ptr<Work> work = TRY(Work::Start(id, output_, job, in_child, takes_input));
  if (takes_input) {
    std::string begins = TRY(BytesOf(params));
    TRY(work->Input(std::move(begins), params.BooleanAt("end", true)));
  }
  if (params.BooleanAt("collect")) work->Collect();
  return std::unique_ptr<Task>(std::move(work));
}

Result<std::unique_ptr<Task>> Loop::StartCreation(const std::string& id, const codec::Json& params,
                                                  const std::string& origin) {
  std::unique_ptr<Creation> creation =
      TRY(Creation::Start(place_, id, output_, options_, params, origin, [this] { Forget(); }));
  const auto keeper = static_cast<pid_t>(creation->facts().pid);
  Fd process = TRY(sys::PidfdOpen(keeper));
  own_.emplace(keeper, Own{creation->facts().name, std::move(process), params, creation.get()});
  return std::unique_ptr<Task>(std::move(creation));
}

Task* Loop::FindTask(const std::string& id) {
  auto found = tasks_.find(id);
  return found == tasks_.end() ? nullptr : found->second.get();
}

Result<std::map<pid_t, Loop::Own>::const_iterator> Loop::FindOwn(const std::string& sandbox) const {
  const auto own = std::find_if(own_.begin(), own_.end(), [&](const auto& entry) {
    return entry.second.name == sandbox && !entry.second.ended;
  });
  if (own == own_.end()) {
    return Error{Code::kNotFound, "'" + sandbox + "' was not created here, or has ended"};
  }
  if (own->second.creation != nullptr) {
    return Error{Code::kTemporary, "'" + sandbox + "' is being created"};
  }
  return own;
}

Status Loop::ReloadPolicy(const std::string& sandbox) const {
  const auto own = TRY(FindOwn(sandbox));  // While it is being created, the signal would end it.
  if (own->second.options.Find("policy") == nullptr) {
    return Error{Code::kUsage, "'" + sandbox + "' was created without 'policy'"};
  }
  return ::kill(own->first, SIGUSR1) == 0 ? Ok() : Status(Errno("kill"));
}

Status Loop::AskEnd(pid_t keeper, const std::string& name) const {
  const session::Facts facts = TRY(place_.Find(name));
  if (facts.pid != keeper) return Error{Code::kNotFound, "another sandbox has the name by now"};
  Fd connection = TRY(place_.Connect(name));
  return sys::SendMessage(connection.get(),
                          wire::Write(session::MessageKind::kDelete, session::DeleteRequest{}));
}

// Asks all to end, and waits until they have.
void Loop::EndSandboxes() {
  tasks_.clear();
  for (const auto& [keeper, own] : own_) {
    if (!AskEnd(keeper, own.name).ok()) (void)::kill(keeper, SIGTERM);
  }
  const Deadline deadline = Deadline::After(kEndTime);
  for (const auto& [keeper, own] : own_) {
    Result<bool> ended = sys::WaitReadable(own.process.get(), deadline);
    if (!ended.ok() || !ended.value()) (void)::kill(keeper, SIGKILL);
    Reap(keeper);
  }
  own_.clear();
}

void Loop::Forget() {
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  for (const pollfd& source : Sources()) {
    if (source.fd > STDERR_FILENO) ::close(source.fd);
  }
  ::close(STDIN_FILENO);
  (void)sys::FillStandardStreams();
}

}  // namespace serve
