// SPDX-License-Identifier: Apache-2.0
// The process that unpacks one layer, seen from outside.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string_view>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/result.h"
#include "image/unpack/layer_writer.h"
#include "image/unpack/unpack_message.h"

namespace image {

class UnpackProcess {
 public:
  // Returns what the layers below this one show. May wait until they are unpacked.
  using Look = std::function<Result<LowerEntry>(const std::string& path)>;

  // Starts it, waiting for bytes, with `directory`, which belongs to `uid` and `gid`, as its root.
  // Call while this process has one thread. `budget` stands in memory shared with children. Fails
  // with kUnsupported if user namespaces are not to be had.
  static Result<UnpackProcess> Start(const Fd& directory, bool lowest, int ratio_max,
                                     LayerBudget& budget, uid_t uid, gid_t gid);

  UnpackProcess(UnpackProcess&& other) noexcept;
  UnpackProcess& operator=(UnpackProcess&&) = delete;
  // Kills and reaps it.
  ~UnpackProcess();

  // Gives it the layer's next bytes, answering what it asks meanwhile. Its own error when it gave
  // up. SIGPIPE is blocked or ignored.
  Status Feed(std::string_view bytes, const Look& look, Deadline deadline);
  // Called after the last bytes; waits for what it made of them.
  Result<UnpackedLayer> Finish(const Look& look, Deadline deadline);

 private:
  UnpackProcess(pid_t pid, Fd pidfd, Fd packed, Fd reports)
      : pid_(pid),
        pidfd_(std::move(pidfd)),
        packed_(std::move(packed)),
        reports_(std::move(reports)) {}

  // Reads one report: answers a question, or keeps the result.
  Status TakeReport(const Look& look, Deadline deadline);
  void Kill();
  int Reap();

  pid_t pid_;
  Fd pidfd_;
  Fd packed_;
  Fd reports_;
  bool ended_ = false;
  UnpackedLayer layer_;
};

}  // namespace image
