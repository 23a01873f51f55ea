// SPDX-License-Identifier: Apache-2.0
// The requests that go on, by one interface for the loop that serves them.
#pragma once

#include <poll.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "codec/data/json.h"
#include "serve/output.h"

namespace serve {

// A request that goes on. It adds kSources descriptors to what is waited for (some may be -1), and
// is served with the same ones after the wait; it never waits itself. It answers once, and has done
// so when done().
class Task {
 public:
  static constexpr size_t kSources = 3;
  using Answer = std::function<void(const Result<codec::Json>& result)>;

  Task(std::string id, Output& output) : id_(std::move(id)), output_(output) {}
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  virtual void AddSources(std::vector<pollfd>* sources) const = 0;
  virtual void Serve(const pollfd* sources) = 0;
  virtual Deadline next() const { return Deadline::Never(); }
  virtual void Cancel() = 0;
  // Commands take these, and an archive that is put the first: other requests fail with kUsage.
  virtual Status Input(std::string, bool) { return Unfit(); }
  virtual Status Acknowledge(int64_t) { return Unfit(); }
  virtual bool input_full() const { return false; }

  // The answer goes to `answer`, and not to the client.
  void AnswerTo(Answer answer) { answer_ = std::move(answer); }
  const std::string& id() const { return id_; }
  bool done() const { return done_; }

 protected:
  void Conclude(const Result<codec::Json>& result);
  void Succeed(const codec::Json& result) { Conclude(result); }
  void Fail(const Error& error) { Conclude(error); }
  Output& output() { return output_; }
  const Output& output() const { return output_; }

 private:
  static Error Unfit() { return {Code::kUsage, "that request does not take this message"}; }

  const std::string id_;
  Output& output_;
  Answer answer_;
  bool done_ = false;
};

// Returns the error of a request that was cancelled.
Error Cancelled();

}  // namespace serve
