// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/version.h"

namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return Error{Code::kInvalid, "odd"};
  return n / 2;
}

Result<int> Quarter(int n) {
  int half = TRY(Half(n));
  return Half(half).Context("halving again");
}

}  // namespace

TEST_CASE("TRY hands on the value of a Result that is ok") { CHECK(Quarter(8).value() == 2); }

TEST_CASE("TRY returns the error of a Result that is not") {
  Result<int> result = Quarter(3);

  REQUIRE_FALSE(result.ok());
  CHECK(result.error().what == "odd");
}

TEST_CASE("Context puts what was being done before the error") {
  Result<int> result = Quarter(2);

  REQUIRE_FALSE(result.ok());
  CHECK(result.error().what == "halving again: odd");
}

TEST_CASE("Errno calls a missing file kNotFound") {
  CHECK(Errno("openat", ENOENT).code == Code::kNotFound);
  CHECK(Errno("openat", EACCES).code == Code::kIo);
}

TEST_CASE("An error keeps the errno of when it was made") {
  errno = EACCES;
  Result<int> failed = Result<int>(Errno("openat")).Context("looking");
  errno = ENOENT;
  CHECK(failed.error().os_error == EACCES);
  CHECK(Error{Code::kIo, "no system call"}.os_error == 0);
}

TEST_CASE("A bug says where it is and where to report it") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::signal(SIGABRT, SIG_DFL);  // Catch2's handler would print more.
    ENSURE(1 + 1 == 3);
  }
  ::close(ends[1]);
  std::string said;
  for (char c = 0; ::read(ends[0], &c, 1) == 1;) said += c;
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WTERMSIG(status) == SIGABRT);
  CHECK(said.find("result_test.cc:") != std::string::npos);
  CHECK(said.ends_with("1 + 1 == 3\nplease report this line: " + std::string(kHomepage) +
                       "/issues\n"));
}
