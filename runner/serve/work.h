// SPDX-License-Identifier: Apache-2.0
// The requests that take their time and are not commands: each is carried out in a process of its
// own, a copy of this one, which ends with it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/task.h"
#include "session/place.h"

namespace serve {

// Carries out a request and gives its result. What it writes to standard output is sent in `data`
// notifications.
using Job = std::function<Result<codec::Json>()>;

// Returns the job for `method`, one of: put, get, diff, apply, snapshot, restore, reset, delete,
// list, policy, state. `params` were checked. Fails with kUsage.
Result<Job> JobOf(const session::Place& place, const std::string& method,
                  const codec::Json& params);

class Work final : public Task {
 public:
  // `in_child` is what the process does first. With `takes_input`, the job's standard input is what
  // Input() brings; otherwise it is empty.
  static Result<std::unique_ptr<Work>> Start(std::string id, Output& output, const Job& job,
                                             const std::function<void()>& in_child,
                                             bool takes_input = false);
  ~Work() override;

  void AddSources(std::vector<pollfd>* sources) const override;
  void Serve(const pollfd* sources) override;
  void Cancel() override;
  Status Input(std::string bytes, bool ends) override;
  bool input_full() const override { return input_.size() - input_from_ > kInputBytesMax; }
  // What is written to standard output becomes `text` or `base64` of the result, up to 4 MiB, and
  // `truncated` counts the rest.
  void Collect() { collects_ = true; }

 private:
  static constexpr size_t kInputBytesMax = size_t{1} << 20;

  Work(std::string id, Output& output, pid_t pid, Fd answer, Fd data, Fd to_job)
      : Task(std::move(id), output),
        pid_(pid),
        answer_(std::move(answer)),
        data_(std::move(data)),
        to_job_(std::move(to_job)),
        input_ends_(!to_job_.valid()) {}
  void End();
  void TakeData(std::string_view bytes);
  void SendInput();

  pid_t pid_;
  Fd answer_;
  Fd data_;
  Fd to_job_;
  std::string input_;  // What was not sent yet is from input_from_ on.
  size_t input_from_ = 0;
  bool input_ends_;
  TextPieces pieces_;
  std::string told_;
  bool collects_ = false;
  std::string collected_;
  CollectRoom room_;
  int64_t left_out_ = 0;
  bool cancelled_ = false;
};

}  // namespace serve
