// SPDX-License-Identifier: Apache-2.0
// A command that a client runs in a sandbox, from its request to its result.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "serve/result_json.h"
#include "serve/task.h"
#include "session/channel.h"
#include "session/place.h"

namespace serve {

// A command in a sandbox: `exec`. It is a connection to the sandbox's supervisor; no process is
// started for it here.
class Command final : public Task {
 public:
  // `params` were checked.
  static Result<std::unique_ptr<Task>> Start(const session::Place& place, std::string id,
                                             const codec::Json& params, Output& output);

  void AddSources(std::vector<pollfd>* sources) const override;
  void Serve(const pollfd* sources) override;
  Deadline next() const override { return next_; }
  void Cancel() override;
  Status Input(std::string bytes, bool ends) override;
  Status Acknowledge(int64_t bytes) override;
  bool input_full() const override { return input_.size() - input_from_ > kInputBytesMax; }

 private:
  static constexpr size_t kInputBytesMax = size_t{1} << 20;

  Command(const session::Place& place, std::string sandbox, std::string id, Output& output)
      : Task(std::move(id), output), place_(place), sandbox_(std::move(sandbox)) {}
  // Does nothing but try again later while as many wait for the sandbox as may.
  Status Connect();
  void TakeMessage(std::string_view message);
  void TakeOutput(bool error, std::string_view bytes);
  // Sends what `append` adds to a notification, if it adds anything.
  void Send(bool error, const std::function<bool(std::string* line)>& append);
  void SendInput();
  void End(session::CommandResult result);

  const session::Place& place_;
  const std::string sandbox_;
  session::Channel channel_{Fd()};
  Deadline next_ = Deadline::Never();  // When to connect again.
  std::string report_dir_;
  int64_t events_from_ = 0;  // Where this command's records begin.
  bool has_window_ = false;  // The supervisor keeps it.
  bool cancelled_ = false;
  std::optional<Written> collected_;
  CollectRoom room_;
  int64_t left_out_[2] = {0, 0};
  TextPieces pieces_[2];
  std::string line_;   // Kept for its memory.
  std::string input_;  // What was not sent yet is from input_from_ on.
  size_t input_from_ = 0;
  bool input_ends_ = true;
  bool input_end_sent_ = false;
  bool input_owed_ = false;  // The sandbox has not taken the last piece yet.
};

}  // namespace serve
