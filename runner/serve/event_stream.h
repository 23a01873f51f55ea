// SPDX-License-Identifier: Apache-2.0
// What a client is sent about a sandbox while it goes on: records of requests, limits and files.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "serve/task.h"
#include "session/channel.h"
#include "session/place.h"

namespace serve {

// A question that is put to a sandbox again and again, over a connection of its own. It is never
// waited for; after an answer it rests for a time that leaves most of the sandbox's to others.
class RepeatedQuestion {
 public:
  // `question` is a message of session/protocol.h.
  RepeatedQuestion(const session::Place& place, std::string sandbox, std::string question)
      : place_(place), sandbox_(std::move(sandbox)), question_(std::move(question)) {}

  pollfd source() const {
    return channel_ ? pollfd{channel_->fd(), channel_->events(), 0} : pollfd{-1, 0, 0};
  }
  Deadline next() const { return asked_ ? Deadline::Never() : next_; }
  // Asks, if it is time. Returns the answer if one is there; `revents` are those of source(). A
  // connection that was lost is made again later.
  std::optional<std::string> Turn(short revents);

 private:
  void Ask();

  const session::Place& place_;
  const std::string sandbox_;
  const std::string question_;
  std::optional<session::Channel> channel_;
  bool asked_ = false;
  Deadline::Clock::time_point asked_at_;
  Deadline next_ = Deadline::After({});
};

// The records of a sandbox's requests, as they come, and where asked for the limits as they fill
// and the files as they change: `events`. Ends when it is cancelled, or when the sandbox has ended.
class EventStream final : public Task {
 public:
  static Result<std::unique_ptr<Task>> Start(const session::Place& place, std::string id,
                                             const codec::Json& params, Output& output);

  void AddSources(std::vector<pollfd>* sources) const override;
  void Serve(const pollfd* sources) override;
  Deadline next() const override;
  void Cancel() override { Succeed(codec::Json::EmptyObject()); }

 private:
  EventStream(const session::Place& place, std::string id, Output& output, std::string sandbox)
      : Task(std::move(id), output), place_(place), sandbox_(std::move(sandbox)) {}
  bool SendMore();
  void TakeLimits(std::string_view answer);
  void TakeFiles(std::string_view answer);
  void Send(const char* name, const codec::Json& value);

  const session::Place& place_;
  std::string sandbox_;
  Fd file_;
  std::string rest_;  // A line that is not whole yet.
  Deadline next_ = Deadline::After({});
  std::optional<RepeatedQuestion> limits_;
  std::map<std::string, int> sent_fullness_;  // By a limit's name: how full it was when last sent.
  std::optional<RepeatedQuestion> files_;
  bool omits_files_ = false;  // The next answer is about what was before.
};

}  // namespace serve
