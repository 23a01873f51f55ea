// SPDX-License-Identifier: Apache-2.0
#include "caller/executable_cache.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/sys.h"

namespace caller {
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
  void Touch() { REQUIRE(::futimens(fd_.get(), nullptr) == 0); }
  void Stretch(off_t size) { REQUIRE(::ftruncate(fd_.get(), size) == 0); }
  Fd Open() const { return sys::Open(path_, O_RDONLY).value(); }
  int fd() const { return fd_.get(); }

 private:
  std::string path_;
  Fd fd_;
};

// Checks with all the reading that it takes.
std::string CheckWhole(ExecutableCache& cache, const std::string& path, const Executable& file) {
  for (int i = 0; i < 100; ++i) {
    std::optional<std::string> why = cache.Check(path, file.Open());
    if (why.has_value()) return *why;
    while (!cache.Proceed()) {
    }
  }
  return "never done";
}

TEST_CASE("An executable is trusted as it was when first seen") {
  Executable file;
  ExecutableCache cache;
  file.Write("one");
  CHECK(CheckWhole(cache, "/bin/x", file).empty());
  CHECK(cache.Check("/bin/x", file.Open()) == "");
  file.Write("other");
  CHECK(CheckWhole(cache, "/bin/x", file) == "Binary integrity violation: /bin/x has changed");
  CHECK(CheckWhole(cache, "/bin/y", file).empty());
  file.Write("one");
  CHECK(CheckWhole(cache, "/bin/x", file).empty());
}

TEST_CASE("An executable is known by its fingerprint until that changes") {
  Executable file;
  ExecutableCache cache;
  file.Write("one");
  struct stat st {};
  REQUIRE(::fstat(file.fd(), &st) == 0);
  CHECK_FALSE(cache.Knows("/bin/x", st));
  REQUIRE(CheckWhole(cache, "/bin/x", file).empty());
  CHECK(cache.Knows("/bin/x", st));
  CHECK_FALSE(cache.Knows("/bin/y", st));
  st.st_ctim.tv_nsec ^= 1;
  CHECK_FALSE(cache.Knows("/bin/x", st));
}

TEST_CASE("An executable is read a piece at a time, and one after the other") {
  Executable large;
  Executable small;
  ExecutableCache cache;
  large.Write(std::string(2 * ExecutableCache::kPieceBytes + 1, 'x'));
  small.Write("one");
  CHECK_FALSE(cache.Check("/bin/large", large.Open()).has_value());
  CHECK_FALSE(cache.Check("/bin/small", small.Open()).has_value());
  CHECK_FALSE(cache.Proceed());
  CHECK_FALSE(cache.Check("/bin/large", large.Open()).has_value());
  CHECK_FALSE(cache.Proceed());
  CHECK(cache.Proceed());
  CHECK(cache.Check("/bin/large", large.Open()) == "");
  CHECK_FALSE(cache.Check("/bin/small", small.Open()).has_value());
  CHECK(cache.Proceed());
  CHECK(cache.Check("/bin/small", small.Open()) == "");
}

TEST_CASE("What would take long to read is refused unread") {
  ExecutableCache cache;
  Executable holes;
  holes.Stretch(off_t{64} << 20);
  CHECK(cache.Check("/bin/holes", holes.Open()) == "/bin/holes: the executable is mostly sparse");
  Executable huge;
  huge.Stretch(ExecutableCache::kExecutableBytesMax + 1);
  CHECK(cache.Check("/bin/huge", huge.Open()) == "/bin/huge: the executable is too large");
  CHECK(cache.Proceed());
}

TEST_CASE("Touching an executable has it read again, and not without end") {
  ExecutableCache cache;
  Executable file;
  file.Write(std::string(size_t{32} << 20, 'x'));
  std::string why;
  int readings = 0;
  while (why.empty() && readings < 1000) {
    file.Touch();
    why = CheckWhole(cache, "/bin/x", file);
    readings += why.empty();
  }
  CHECK(why == "/bin/x: the run has changed its executables too often for them to be verified");
  CHECK(readings == ExecutableCache::kRunBytesMax / (32 << 20));
}

}  // namespace
}  // namespace caller
