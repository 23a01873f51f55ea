// SPDX-License-Identifier: Apache-2.0
#include "gateway/executable_cache.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/sys.h"

namespace gateway {
namespace {

// A file that tests change behind the cache's back.
class Executable {
 public:
  Executable() {
    char path[] = "/tmp/executable-test-XXXXXX";
    fd_ = Fd(::mkstemp(path));
    path_ = path;
  }
  ~Executable() { ::unlink(path_.c_str()); }
  void Write(std::string_view bytes) {
    REQUIRE(::ftruncate(fd_.get(), 0) == 0);
    REQUIRE(::lseek(fd_.get(), 0, SEEK_SET) == 0);
    REQUIRE(sys::WriteAll(fd_.get(), bytes).ok());
  }
  int fd() const { return fd_.get(); }

 private:
  std::string path_;
  Fd fd_;
};

TEST_CASE("An executable is trusted as it was when first seen") {
  Executable file;
  ExecutableCache cache;
  file.Write("one");
  CHECK(cache.Unchanged("/bin/x", file.fd()).value());
  CHECK(cache.Unchanged("/bin/x", file.fd()).value());
  file.Write("other");
  CHECK_FALSE(cache.Unchanged("/bin/x", file.fd()).value());
  CHECK(cache.Unchanged("/bin/y", file.fd()).value());
  file.Write("one");
  CHECK(cache.Unchanged("/bin/x", file.fd()).value());
}

TEST_CASE("An executable is known by its fingerprint until that changes") {
  Executable file;
  ExecutableCache cache;
  file.Write("one");
  struct stat st {};
  REQUIRE(::fstat(file.fd(), &st) == 0);
  CHECK_FALSE(cache.Knows("/bin/x", st));
  REQUIRE(cache.Unchanged("/bin/x", file.fd()).ok());
  CHECK(cache.Knows("/bin/x", st));
  CHECK_FALSE(cache.Knows("/bin/y", st));
  st.st_ctim.tv_nsec ^= 1;
  CHECK_FALSE(cache.Knows("/bin/x", st));
}

}  // namespace
}  // namespace gateway
