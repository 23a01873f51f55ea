// SPDX-License-Identifier: Apache-2.0
#include "base/privileges.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <sstream>

#include "base/sys.h"

namespace {

// Returns what `steps` returns in a process of its own.
int InChild(const std::function<int()>& steps) {
  pid_t pid = ::fork();
  if (pid == 0) ::_exit(steps());
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The line `name` of /proc/self/status, a number in hexadecimal.
uint64_t StatusLine(std::string_view name) {
  std::istringstream lines(sys::ReadFile("/proc/self/status", 1 << 16).value());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) return ::strtoull(line.c_str() + name.size() + 1, nullptr, 16);
  }
  return ~uint64_t{0};
}

}  // namespace

TEST_CASE("Capabilities are dropped but for those kept") {
  constexpr uint32_t kKept = 1U << CAP_FSETID;
  constexpr int kNoNamespace = 77;
  int result = InChild([] {
    if (::geteuid() != 0 && ::unshare(CLONE_NEWUSER) != 0) return kNoNamespace;
    if ((StatusLine("CapEff") & kKept) == 0) return kNoNamespace;
    if (!sys::DropCapabilities(kKept).ok()) return 1;
    if (StatusLine("CapEff") != kKept || StatusLine("CapPrm") != kKept) return 2;
    return StatusLine("CapBnd") == 0 && StatusLine("CapInh") == 0 ? 0 : 3;
  });
  if (result == kNoNamespace) {
    WARN("skipped: neither root nor user namespaces");
  } else {
    CHECK(result == 0);
  }
}

TEST_CASE("A Landlock ruleset denies files but for those allowed") {
  if (sys::landlock::Abi() == 0) {
    WARN("skipped: this kernel has no Landlock");
    return;
  }
  CHECK(InChild([] {
          using namespace sys::landlock;
          auto denied = [](const char* path, int flags) {
            Result<Fd> file = sys::Open(path, flags);
            return !file.ok() && file.error().os_error == EACCES;
          };
          if (!sys::Open("/etc/passwd", O_RDONLY).ok()) return 1;
          if (!sys::Open("/dev/null", O_WRONLY).ok()) return 2;
          Fd ruleset = CreateRuleset(0).value();
          Fd etc = sys::Open("/etc", O_PATH).value();
          Fd null = sys::Open("/dev/null", O_PATH).value();
          if (!Allow(ruleset, etc.get(), kRead).ok()) return 3;
          if (!Allow(ruleset, null.get(), kAllFiles).ok()) return 4;
          if (!sys::ForgoNewPrivileges().ok() || !Restrict(ruleset.get()).ok()) return 5;
          if (!sys::Open("/etc/passwd", O_RDONLY).ok()) return 6;
          if (!sys::Open("/dev/null", O_WRONLY).ok()) return 7;
          if (!denied("/proc/self/status", O_RDONLY)) return 8;
          return denied("/etc/passwd", O_WRONLY | O_APPEND) ? 0 : 9;
        }) == 0);
}
