// SPDX-License-Identifier: Apache-2.0
#include "serve/work.h"

#include <errno.h>
#include <fcntl.h>
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
                                          const std::function<void()>& in_child, bool takes_input) {
  auto [answer, tells] = TRY(sys::Pipe());
  auto [data, writes] = TRY(sys::Pipe());
  std::pair<Fd, Fd> input;
  if (takes_input) {
    input = TRY(sys::Pipe());
    (void)::fcntl(input.second.get(), F_SETPIPE_SZ, 1 << 20);
    if (::fcntl(input.second.get(), F_SETFL, O_WRONLY | O_NONBLOCK) != 0) return Errno("fcntl");
  }
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
    input.second.Close();
    in_child();
    if (takes_input && ::dup2(input.first.get(), STDIN_FILENO) < 0) ::_exit(1);
    input.first.Close();
    Carry(job, tells);
  }
  return std::unique_ptr<Work>(new Work(std::move(id), output, pid, std::move(answer),
                                        std::move(data), std::move(input.second)));
}

Work::~Work() {
  if (!done()) (void)::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Work::AddSources(std::vector<pollfd>* sources) const {
  sources->push_back({output().full() ? -1 : data_.get(), POLLIN, 0});
  sources->push_back({data_.valid() || output().full() ? -1 : answer_.get(), POLLIN, 0});
  // Always there, so that copies of this process close it: its reader waits for its end.
  sources->push_back({to_job_.get(), static_cast<short>(input_.empty() ? 0 : POLLOUT), 0});
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
  if ((sources[2].revents & POLLERR) != 0) {
    to_job_.Close();
  }
  if (sources[2].revents != 0) SendInput();
  if (sources[1].revents != 0) {
    told_ += read(answer_);
    if (!answer_.valid()) End();
  }
}

Status Work::Input(std::string bytes, bool ends) {
  if (input_ends_) return Error{Code::kUsage, "that request takes no input, or no more"};
  if (to_job_.valid()) input_ += bytes;
  input_ends_ = ends;
  SendInput();
  return Ok();
}

// What the job does not read is dropped once it has closed its end.
void Work::SendInput() {
  while (to_job_.valid() && input_from_ < input_.size()) {
    const ssize_t n =
        ::write(to_job_.get(), input_.data() + input_from_, input_.size() - input_from_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n < 0) to_job_.Close();
    input_from_ += n > 0 ? static_cast<size_t>(n) : 0;
  }
  input_.clear();
  input_from_ = 0;
  if (input_ends_) to_job_.Close();
}

// Nothing at the end.
void Work::TakeData(std::string_view bytes) {
  if (collects_) {
    const std::string_view taken = room_.Take(bytes);
    collected_ += taken;
    left_out_ += static_cast<int64_t>(bytes.size() - taken.size());
    return;
  }
  std::string line = BeginNotification("data", "\"request\":" + id() + ",");
  const bool any = data_.valid() ? pieces_.Take(bytes, &line) : pieces_.Finish(&line);
  if (any) output().Write(line.append(kNotificationEnd));
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
