// SPDX-License-Identifier: Apache-2.0
#include "base/sys.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/code_of.h"

namespace {

// A directory of the test's own, removed with everything in it.
struct Scratch {
  Scratch() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~Scratch() { std::filesystem::remove_all(path); }
  std::string path = "/tmp/sys_test.XXXXXX";
};

TEST_CASE("OpenBeneath follows no link and never leaves its directory") {
  Scratch top;
  REQUIRE(sys::MakeDirectories(top.path + "/in/deep").ok());
  REQUIRE(sys::WriteFile(top.path + "/out", "secret").ok());
  REQUIRE(sys::WriteFile(top.path + "/in/deep/file", "x").ok());
  std::filesystem::create_symlink("deep/file", top.path + "/in/link");
  std::filesystem::create_directory_symlink("deep", top.path + "/in/dir");
  Fd dir = sys::Open(top.path + "/in", O_RDONLY | O_DIRECTORY).value();
  CHECK(sys::OpenBeneath(dir.get(), "deep/file", O_RDONLY).ok());
  CHECK(sys::OpenBeneath(dir.get(), "deep/../deep/file", O_RDONLY).ok());
  for (const char* name : {"link", "dir/file", "../out", "deep/../../out", "/etc/passwd"}) {
    CAPTURE(name);
    CHECK(CodeOf(sys::OpenBeneath(dir.get(), name, O_RDONLY)) == Code::kIo);
  }
}

TEST_CASE("OpenInRoot takes absolute links and dots for those of the root") {
  Scratch top;
  REQUIRE(sys::MakeDirectories(top.path + "/etc").ok());
  REQUIRE(sys::WriteFile(top.path + "/etc/passwd", "ours").ok());
  std::filesystem::create_symlink("/etc/passwd", top.path + "/link");
  Fd root = sys::Open(top.path, O_RDONLY | O_DIRECTORY).value();
  for (const char* name : {"link", "/etc/passwd", "../../etc/passwd"}) {
    CAPTURE(name);
    Result<Fd> opened = sys::OpenInRoot(root.get(), name, O_RDONLY);
    REQUIRE(opened.ok());
    CHECK(sys::ReadAll(opened.value().get(), 100).value() == "ours");
  }
}

TEST_CASE("Dots beneath a directory are followed while something else is renamed") {
  Scratch top;
  REQUIRE(sys::MakeDirectories(top.path + "/dir/sub").ok());
  REQUIRE(sys::MakeDirectories(top.path + "/one").ok());
  const Fd root = sys::Open(top.path, O_RDONLY | O_DIRECTORY).value();
  std::atomic<bool> done = false;
  std::thread renames([&] {
    while (!done) {
      (void)::renameat(root.get(), "one", root.get(), "two");
      (void)::renameat(root.get(), "two", root.get(), "one");
    }
  });
  int failures = 0;
  for (int i = 0; i < 20000; ++i) {
    const char* path = "dir/sub/../sub/../sub/..";
    if (!sys::OpenInRoot(root.get(), path, O_PATH).ok()) ++failures;
    if (!sys::OpenBeneath(root.get(), path, O_PATH).ok()) ++failures;
  }
  done = true;
  renames.join();
  CHECK(failures == 0);
}

TEST_CASE("Descriptors are closed on exec") {
  auto [read, write] = sys::Pipe().value();
  auto [one, other] = sys::SocketPair().value();
  Fd null = sys::Open("/dev/null", O_RDONLY).value();
  for (const Fd* fd : {&read, &write, &one, &other, &null}) {
    CHECK((::fcntl(fd->get(), F_GETFD) & FD_CLOEXEC) != 0);
  }
}

TEST_CASE("ReadFile takes a file of its bound, and names the bound of a larger one") {
  Scratch top;
  REQUIRE(sys::WriteFile(top.path + "/f", std::string(20000, 'x')).ok());
  CHECK(sys::ReadFile(top.path + "/f", 20000).value().size() == 20000);
  Result<std::string> larger = sys::ReadFile(top.path + "/f", 19999);
  REQUIRE_FALSE(larger.ok());
  CHECK(larger.error().code == Code::kInvalid);
  CHECK(larger.error().what.find("larger than 19999 bytes") != std::string::npos);
}

TEST_CASE("A message arrives whole with its descriptor, or is an error") {
  auto [one, other] = sys::SocketPair().value();
  auto [read, write] = sys::Pipe().value();
  const Deadline soon = Deadline::After(std::chrono::milliseconds(20));
  const Deadline late = Deadline::After(std::chrono::seconds(30));
  CHECK(CodeOf(sys::ReceiveMessage(other.get(), 10, soon)) == Code::kIo);
  REQUIRE(sys::SendMessage(one.get(), "hello", read.get()).ok());
  sys::Message message = sys::ReceiveMessage(other.get(), 10, late).value();
  CHECK(message.bytes == "hello");
  REQUIRE(sys::WriteAll(write.get(), "through").ok());
  write.Close();
  CHECK(sys::ReadAll(message.fd.get(), 10).value() == "through");
  REQUIRE(sys::SendMessage(one.get(), "longer than that").ok());
  CHECK(CodeOf(sys::ReceiveMessage(other.get(), 10, late)) == Code::kBug);
  // Two descriptors are refused, and neither is left open.
  const int before = ::dup(read.get());
  ::close(before);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  char letter = 'x';
  iovec part{&letter, 1};
  msghdr two{};
  two.msg_iov = &part;
  two.msg_iovlen = 1;
  two.msg_control = control.data();
  two.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&two);
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  const std::array<int, 2> sent = {read.get(), read.get()};
  std::memcpy(CMSG_DATA(header), sent.data(), sizeof sent);
  REQUIRE(::sendmsg(one.get(), &two, 0) == 1);
  CHECK(CodeOf(sys::ReceiveMessage(other.get(), 10, late)) == Code::kInvalid);
  const int after = ::dup(read.get());
  ::close(after);
  CHECK(after == before);
  one.Close();
  CHECK(sys::ReceiveMessage(other.get(), 10, late).value().bytes.empty());
  CHECK(CodeOf(sys::SendMessage(other.get(), "x")) == Code::kIo);  // And no SIGPIPE.
}

TEST_CASE("A variable taken as a secret is overwritten where it stood") {
  REQUIRE(::setenv("SYS_TEST_TOKEN", "s3cret", 1) == 0);
  const char* place = ::getenv("SYS_TEST_TOKEN");
  Secret secret = sys::EnvironmentSecret("SYS_TEST_TOKEN");
  CHECK(secret.reveal() == "s3cret");
  CHECK(std::string_view(place, 6) == std::string_view("\0\0\0\0\0\0", 6));
  CHECK(sys::EnvironmentSecret("SYS_TEST_NOT_SET").empty());
}

TEST_CASE("A secret that was moved away is empty, and one that is replaced is the other") {
  Secret one("first"), other("second");
  Secret taken = std::move(one);
  CHECK(one.empty());
  CHECK(one.reveal().empty());
  other = std::move(taken);
  CHECK(other.reveal() == "first");
}

TEST_CASE("Random digits are 32 hexadecimal ones, and never the same") {
  const std::string one = sys::RandomHex();
  CHECK(one.size() == 32);
  CHECK(one.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(one != sys::RandomHex());
}

TEST_CASE("A deadline is after now, never, or passed") {
  CHECK_FALSE(Deadline::Never().passed());
  CHECK(Deadline::Never().poll_ms() == -1);
  CHECK(Deadline::After(std::chrono::milliseconds(0)).passed());
  CHECK(Deadline::After(std::chrono::milliseconds(-5)).poll_ms() == 0);
  CHECK(Deadline::After(std::chrono::hours(24 * 365)).poll_ms() == 2147483647);
  CHECK(Deadline::After(std::chrono::seconds(1)) < Deadline::Never());
}

}  // namespace
