// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/fetch.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "codec/text/neutral.h"
#include "session/transfer/stream.h"

namespace openshell {
namespace {

constexpr size_t kPieceBytes = size_t{256} << 10;
constexpr size_t kFirstSaidBytesMax = size_t{64} << 10;
constexpr size_t kPackerSaidBytesMax = 600;
// An entry's header, what fills its last block, and its name if that is long.
constexpr int64_t kEntryBytes = 2048;

// Reads both outputs of a program as they come.
class Outputs {
 public:
  // Takes `archive_max` bytes at most.
  Outputs(Child& child, const FetchLimits& limits, int64_t archive_max)
      : child_(child), limits_(limits), archive_max_(archive_max), piece_(kPieceBytes, '\0') {}

  // Returns the next bytes of standard output, valid until the next call; empty at its end.
  Result<std::string_view> Next() {
    while (open_[0]) {
      TRY(Wait());
      if (!ready_) continue;
      const size_t got = TRY(Read());
      bytes_ += static_cast<int64_t>(got);
      if (bytes_ > archive_max_) {
        return Error{Code::kUnsupported, "the archive of the sandbox's files is larger than " +
                                             std::to_string(archive_max_) + " bytes"};
      }
      if (got > 0) return std::string_view(piece_).substr(0, got);
    }
    return std::string_view();
  }

  // Reads what is left of standard error.
  Status Finish() {
    while (open_[1]) TRY(Wait());
    return Ok();
  }

  bool ended() const { return !open_[0]; }
  int64_t bytes() const { return bytes_; }
  // The beginning of standard error.
  const std::string& said() const { return said_; }

 private:
  // Waits for either, and takes what comes on standard error.
  Status Wait() {
    pollfd waited[3] = {{open_[0] ? child_.output().get() : -1, POLLIN, 0},
                        {open_[1] ? child_.error().get() : -1, POLLIN, 0},
                        {limits_.cancel, POLLIN, 0}};
    const int ready = ::poll(waited, 3, limits_.deadline.poll_ms());
    if (ready < 0 && errno != EINTR) return Errno("poll");
    // One that never stops talking is not waited for either.
    if (ready == 0 || limits_.deadline.passed()) {
      return Error{Code::kTemporary, "the transfer does not end"};
    }
    if (ready > 0 && waited[2].revents != 0) return Error{Code::kTemporary, "interrupted"};
    ready_ = ready > 0 && waited[0].revents != 0;
    if (ready < 0 || waited[1].revents == 0) return Ok();
    char text[4096];
    const ssize_t got = ::read(child_.error().get(), text, sizeof text);
    if (got < 0 && errno == EINTR) return Ok();
    if (got < 0) return Errno("read");
    open_[1] = got > 0;
    const size_t kept = std::min(static_cast<size_t>(got), kFirstSaidBytesMax - said_.size());
    said_.append(text, kept);
    return Ok();
  }

  Result<size_t> Read() {
    const ssize_t got = ::read(child_.output().get(), piece_.data(), piece_.size());
    if (got < 0 && errno == EINTR) return 0;
    if (got < 0) return Errno("read");
    open_[0] = got > 0;
    return static_cast<size_t>(got);
  }

  Child& child_;
  const FetchLimits& limits_;
  int64_t archive_max_;
  bool open_[2] = {true, true};
  bool ready_ = false;  // Something is on standard output.
  std::string piece_;
  std::string said_;
  int64_t bytes_ = 0;
};

}  // namespace

Result<Fetched> FetchArchive(Child packer, int to, const FetchLimits& limits) {
  const session::ReceiveLimits within{.bytes_max = limits.bytes_max};
  Outputs outputs(packer, limits, within.bytes_max + within.entries_max * kEntryBytes);
  Result<session::Received> received =
      session::ReceiveTree([&] { return outputs.Next(); }, to, within);
  if (!received.ok() && !outputs.ended()) return std::move(received).error();
  TRY(outputs.Finish());
  const int status = TRY(packer.Wait(limits.deadline));
  Fetched fetched{true, outputs.said()};
  // tar's 1: a file changed while it was read. OpenShell's command line has it, too.
  const bool broken =
      fetched.said.starts_with("Error:") || fetched.said.find("\nError:") != std::string::npos;
  fetched.whole = status == 0 || (status == 1 && !broken);
  if (outputs.bytes() == 0 || (!received.ok() && !fetched.whole)) {
    return Error{Code::kIo,
                 "packing failed: " + codec::NeutralLine(fetched.said, kPackerSaidBytesMax)};
  }
  if (!received.ok()) return std::move(received).error();
  return fetched;
}

}  // namespace openshell
