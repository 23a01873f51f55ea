// SPDX-License-Identifier: Apache-2.0
#include "serve/work.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys.h"
#include "base/wire.h"
#include "serve/message.h"

namespace serve {
namespace {

constexpr size_t kDataBytes = 65536;

[[noreturn]] void Carry(const Job& job, const Fd& answer) {
  Result<codec::Json> done = job();
  ::close(STDOUT_FILENO);
  (void)sys::WriteAll(answer.get(), done.ok()
                                        ? wire::Write(true, codec::RenderJsonLine(done.value()))
                                        : wire::Write(false, done.error()));
  ::_exit(0);
}

}  // namespace

Result<std::unique_ptr<Work>> Work::Start(std::string id, Output& output, const Job& job,
                                          const std::function<void()>& in_child) {
  auto [answer, tells] = TRY(sys::Pipe());
  auto [data, writes] = TRY(sys::Pipe());
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Errno("fork");
  if (pid == 0) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    answer.Close();
    data.Close();
    if (::dup2(writes.get(), STDOUT_FILENO) < 0) ::_exit(1);
    writes.Close();
    in_child();
    Carry(job, tells);
  }
  return std::unique_ptr<Work>(
      new Work(std::move(id), output, pid, std::move(answer), std::move(data)));
}

Work::~Work() {
  if (!done()) (void)::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Work::AddSources(std::vector<pollfd>* sources) const {
  sources->push_back({output().full() ? -1 : data_.get(), POLLIN, 0});
  sources->push_back({data_.valid() || output().full() ? -1 : answer_.get(), POLLIN, 0});
}

void Work::Serve(const pollfd* sources) {
  char chunk[kDataBytes];
  auto read = [&](Fd& from) {
    const ssize_t n = ::read(from.get(), chunk, sizeof chunk);
    if (n == 0 || (n < 0 && errno != EINTR)) from.Close();
    return std::string_view(chunk, n > 0 ? static_cast<size_t>(n) : 0);
  };
  if (sources[0].revents != 0) {
    TakeData(read(data_));
  }
  if (sources[1].revents != 0) {
    told_ += read(answer_);
    if (!answer_.valid()) End();
  }
}

// Nothing at the end.
void Work::TakeData(std::string_view bytes) {
  if (collects_) {
    const std::string_view taken = room_.Take(bytes);
    collected_ += taken;
    left_out_ += static_cast<int64_t>(bytes.size() - taken.size());
    return;
  }
  const std::string member = data_.valid() ? pieces_.Take(bytes) : pieces_.Finish();
  if (member.empty()) return;
  output().Write(RenderNotification("data", "\"request\":" + id() + "," + member));
}

void Work::End() {
  bool fine = false;
  std::string text;
  Error error{Code::kIo, "the process that carried out the request was killed"};
  if (cancelled_) return Fail(Cancelled());
  if (!wire::Read(told_, fine, text) || !fine) {
    (void)wire::Read(told_, fine, error);
    return Fail(error);
  }
  Result<codec::Json> result = codec::ParseJson(text, {.bytes_max = size_t{64} << 20});
  if (result.ok() && collects_) {
    SetBytes(&result.value(), collected_);
    result.value().Set("truncated", left_out_);
  }
  Conclude(result);
}

void Work::Cancel() {
  cancelled_ = true;
  (void)::kill(pid_, SIGKILL);
}

}  // namespace serve
