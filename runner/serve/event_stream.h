// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "serve/task.h"
#include "session/place.h"

namespace serve {

// The records of a sandbox's requests, as they come: `events`. Ends when it is cancelled, or when
// the sandbox has ended.
class EventStream final : public Task {
 public:
  static Result<std::unique_ptr<Task>> Start(const session::Place& place, std::string id,
                                             const codec::Json& params, Output& output);

  void AddSources(std::vector<pollfd>* sources) const override;
  void Serve(const pollfd* sources) override;
  Deadline next() const override { return next_; }
  void Cancel() override { Succeed(codec::Json::EmptyObject()); }

 private:
  EventStream(const session::Place& place, std::string id, Output& output, std::string sandbox)
      : Task(std::move(id), output), place_(place), sandbox_(std::move(sandbox)) {}
  bool SendMore();

  const session::Place& place_;
  std::string sandbox_;
  Fd file_;
  std::string rest_;  // A line that is not whole yet.
  Deadline next_ = Deadline::After({});
};

}  // namespace serve
