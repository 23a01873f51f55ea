// SPDX-License-Identifier: Apache-2.0
#include "serve/event_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/sys.h"
#include "base/wire.h"
#include "serve/message.h"
#include "serve/result_json.h"
#include "session/protocol.h"

namespace serve {
namespace {

constexpr std::chrono::milliseconds kInterval{100};
constexpr std::chrono::milliseconds kQuestionInterval{200};
constexpr int kRestFactor = 19;  // An answer is the sandbox's work: a twentieth of its time.
constexpr size_t kRecordBytes = 65536;
constexpr size_t kLineBytesMaxOfRecord = size_t{1} << 20;

// How full a limit is at which it is sent, in percent.
constexpr int kNearlyFull = 80;
constexpr int kFull = 100;

int FullnessOf(const session::LimitUse& use) {
  if (use.used < 0 || use.most <= 0) return 0;
  const double share = static_cast<double>(use.used) / static_cast<double>(use.most);
  return share >= 1 ? kFull : share * kFull >= kNearlyFull ? kNearlyFull : 0;
}

}  // namespace

std::optional<std::string> RepeatedQuestion::Turn(short revents) {
  std::string message;
  Fd fd;
  if (channel_) channel_->Flush();
  const bool answered = revents != 0 && channel_ && channel_->Receive(&message, &fd);
  if (answered) {
    const auto took = Deadline::Clock::now() - asked_at_;
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(took * kRestFactor);
    next_ = Deadline::After(std::max(kQuestionInterval, rest));
    asked_ = false;
    return message;
  }
  if (channel_ && channel_->closed()) {
    channel_.reset();
    next_ = Deadline::After(kQuestionInterval);
    asked_ = false;
  }
  if (!asked_ && next_.passed()) Ask();
  return std::nullopt;
}

void RepeatedQuestion::Ask() {
  if (!channel_) {
    Result<Fd> connection = place_.Connect(sandbox_, {});
    if (!connection.ok()) {
      next_ = Deadline::After(kQuestionInterval);
      return;
    }
    channel_.emplace(std::move(connection).value());
  }
  channel_->Send(question_);
  asked_ = true;
  asked_at_ = Deadline::Clock::now();
}

Result<std::unique_ptr<Task>> EventStream::Start(const session::Place& place, std::string id,
                                                 const codec::Json& params, Output& output) {
  const std::string name = params.StringAt("sandbox");
  const session::Facts facts = TRY(place.Find(name));
  std::unique_ptr<EventStream> stream(new EventStream(place, std::move(id), output, name));
  stream->file_ = TRY(sys::Open(facts.report_dir + "/events.ocsf.jsonl", O_RDONLY | O_NOFOLLOW));
  if (!params.BooleanAt("all")) (void)::lseek(stream->file_.get(), 0, SEEK_END);
  if (params.BooleanAt("limits")) {
    stream->limits_.emplace(place, name, wire::Write(session::MessageKind::kStatus));
  }
  if (params.BooleanAt("files")) {
    stream->files_.emplace(place, name, wire::Write(session::MessageKind::kTouched));
    stream->omits_files_ = !params.BooleanAt("all");
    (void)stream->files_->Turn(0);  // Before the sandbox is asked anything else.
  }
  return std::unique_ptr<Task>(std::move(stream));
}

void EventStream::AddSources(std::vector<pollfd>* sources) const {
  for (const std::optional<RepeatedQuestion>* question : {&limits_, &files_}) {
    const bool reads = *question && !output().full();
    sources->push_back(reads ? (*question)->source() : pollfd{-1, 0, 0});
  }
  sources->push_back({-1, 0, 0});
}

Deadline EventStream::next() const {
  Deadline next = next_;
  for (const std::optional<RepeatedQuestion>* question : {&limits_, &files_}) {
    if (*question) next = std::min(next, (*question)->next());
  }
  return next;
}

void EventStream::Serve(const pollfd* sources) {
  if (output().full()) return;
  if (limits_) {
    if (const auto answer = limits_->Turn(sources[0].revents)) TakeLimits(*answer);
  }
  if (files_) {
    if (const auto answer = files_->Turn(sources[1].revents)) TakeFiles(*answer);
  }
  if (!next_.passed() || SendMore()) return;
  next_ = Deadline::After(kInterval);
  if (!place_.Find(sandbox_).ok() && !SendMore()) Succeed(codec::Json::EmptyObject());
}

// Returns false once there is nothing more at present.
bool EventStream::SendMore() {
  std::string chunk(kRecordBytes, '\0');
  const ssize_t n = ::read(file_.get(), chunk.data(), chunk.size());
  if (n <= 0) return false;
  rest_.append(chunk, 0, static_cast<size_t>(n));
  for (size_t end = 0; (end = rest_.find('\n')) != std::string::npos; rest_.erase(0, end + 1)) {
    Result<codec::Json> record = codec::ParseJson(std::string_view(rest_).substr(0, end));
    if (record.ok()) Send("event", record.value());
  }
  if (rest_.size() > kLineBytesMaxOfRecord) rest_.clear();
  return true;
}

// Each limit is sent once when it is nearly full, and once when it is full.
void EventStream::TakeLimits(std::string_view answer) {
  session::MessageKind kind{};
  session::SandboxState state;
  if (!wire::Read(answer, kind, state) || kind != session::MessageKind::kState) return;
  for (const session::LimitUse& use : state.limits) {
    const int fullness = FullnessOf(use);
    if (fullness <= sent_fullness_[use.name]) continue;
    sent_fullness_[use.name] = fullness;
    codec::Json limit = JsonOf(use);
    limit.Set("reached", fullness == kFull);
    Send("limit", limit);
  }
}

void EventStream::TakeFiles(std::string_view answer) {
  session::MessageKind kind{};
  session::ChangedFiles changed;
  if (!wire::Read(answer, kind, changed.changes, changed.complete) ||
      kind != session::MessageKind::kChanges) {
    return;
  }
  if (std::exchange(omits_files_, false)) return;
  if (!changed.changes.empty() || !changed.complete) {
    Send("changes", JsonOf(changed.changes));
  }
}

void EventStream::Send(const char* name, const codec::Json& value) {
  output().Write(RenderNotification(
      name, "\"request\":" + id() + ",\"" + name + "\":" + codec::RenderJsonLine(value)));
}

}  // namespace serve
