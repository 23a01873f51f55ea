// SPDX-License-Identifier: Apache-2.0
#include "session/helper.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "base/process.h"
#include "base/sys.h"
#include "base/wire.h"

namespace session {
namespace {

constexpr size_t kResultBytesMax = 65536;

[[noreturn]] void Run(const sandbox::Inside& inside, sandbox::Rights rights, std::vector<Fd> given,
                      Fd tells, const std::vector<Fd>& groups, const Helper::Work& work) {
  auto carry = [&]() -> Result<std::string> {
    TRY(JoinCgroups(groups));
    std::vector<Fd*> kept{&tells};
    for (Fd& fd : given) kept.push_back(&fd);
    TRY(sandbox::Enter(inside, rights, kept));
    return work(given);
  };
  Result<std::string> result = carry();
  (void)sys::WriteAll(tells.get(), result.ok() ? wire::Write(true, result.value())
                                               : wire::Write(false, result.error()));
  ::_exit(0);
}

}  // namespace

Result<Helper> Helper::Start(const sandbox::Sandbox& sandbox, const sandbox::Inside& inside,
                             sandbox::Rights rights, std::vector<Fd> given, const Work& work) {
  std::vector<Fd> groups = TRY(sandbox.cgroup().OpenTasks({"memory", "cpu"}));
  auto [hears, tells] = TRY(sys::Pipe());
  pid_t pid = ::fork();
  if (pid < 0) return Errno("fork");
  if (pid == 0) Run(inside, rights, std::move(given), std::move(tells), groups, work);
  Helper helper(pid, std::move(hears));
  tells.Close();
  TRY(sandbox.cgroup().Attach(pid));
  return helper;
}

Helper::Helper(Helper&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), result_(std::move(other.result_)) {}

Helper::~Helper() {
  if (pid_ < 0) return;
  (void)::kill(pid_, SIGKILL);
  Reap();
}

void Helper::Reap() {
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

Result<std::string> Helper::Take() {
  std::string told = TRY(sys::ReadAll(result_.get(), kResultBytesMax));
  Reap();
  bool fine = false;
  std::string text;
  Error error{Code::kIo, "a process that worked in the sandbox was killed"};
  if (wire::Read(told, fine, text) && fine) return text;
  (void)wire::Read(told, fine, error);
  return error;
}

}  // namespace session
