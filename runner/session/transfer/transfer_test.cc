// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/code_of.h"
#include "base/sys.h"
#include "base/tree.h"
#include "image/unpack/tar_reader.h"
#include "session/transfer/landing.h"
#include "session/transfer/tar_writer.h"
#include "session/transfer/tree_receiver.h"
#include "session/transfer/tree_sender.h"

namespace session {
namespace {

// A directory that is gone at the end.
class Temporary {
 public:
  Temporary() {
    parent_ = sys::Environment("TMPDIR").value_or("/tmp");
    path_ = parent_ + "/transfer-test-XXXXXX";
    REQUIRE(::mkdtemp(path_.data()) != nullptr);
    fd_ = sys::Open(path_, O_RDONLY | O_DIRECTORY).value();
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    Fd parent = sys::Open(parent_, O_RDONLY | O_DIRECTORY).value();
    CHECK(sys::RemoveTree(parent.get(), path_.substr(parent_.size() + 1)).ok());
  }
  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  std::string parent_;
  std::string path_;
  Fd fd_;
};

image::TarEntry Entry(image::TarType type, const std::string& path) {
  image::TarEntry entry;
  entry.type = type;
  entry.path = path;
  entry.mode = 0644;
  return entry;
}

std::string Render(const std::vector<std::pair<image::TarEntry, std::string>>& entries) {
  std::string bytes;
  TarWriter tar(
      [&](std::string_view more) {
        bytes += more;
        return Ok();
      },
      1000);
  for (auto [entry, content] : entries) {
    entry.size = static_cast<int64_t>(content.size());
    REQUIRE(tar.Begin(entry).ok());
    if (!content.empty()) REQUIRE(tar.Content(content).ok());
  }
  REQUIRE(tar.Finish().ok());
  return bytes;
}

image::TarReader ReaderOf(std::string_view& bytes) {
  return image::TarReader([&bytes]() -> Result<std::string_view> {
    std::string_view piece = bytes.substr(0, 700);
    bytes.remove_prefix(piece.size());
    return piece;
  });
}

Status Receive(std::string_view bytes, int directory, TreeReceiver::Kind kind,
               ReceiveLimits limits = {1 << 20, 100}) {
  TreeReceiver receiver(kind, limits, [directory](const std::string& path) {
    return std::optional(Spot{directory, path});
  });
  image::TarReader tar = ReaderOf(bytes);
  return receiver.Receive(tar);
}

}  // namespace

TEST_CASE("What a tar writer writes, the strict reader reads as it was") {
  image::TarEntry odd = Entry(image::TarType::kFile, std::string(300, 'n') + "\n\xff");
  odd.mtime_s = -2;
  odd.mtime_ns = 250'000'000;
  odd.xattrs = {{"user.a", std::string("x\0=\n", 4)}};
  image::TarEntry late = Entry(image::TarType::kDirectory, "d");
  late.mtime_s = 1'700'000'000;
  late.mtime_ns = 5;
  image::TarEntry link = Entry(image::TarType::kSymlink, "d/l");
  link.link = std::string(200, 'x');
  // Lengths around those at which a record's own length has one digit more.
  std::vector<std::pair<image::TarEntry, std::string>> entries = {
      {odd, std::string(513, 'c')}, {late, ""}, {link, ""}};
  for (size_t size = 85; size < 105; ++size) {
    entries.emplace_back(Entry(image::TarType::kFile, std::string(size, 'p')), "");
  }
  std::string bytes = Render(entries);
  CHECK(bytes.size() % 512 == 0);
  std::string_view left = bytes;
  image::TarReader tar = ReaderOf(left);
  for (const auto& [entry, content] : entries) {
    auto read = tar.Next();
    REQUIRE(read.ok());
    REQUIRE(read.value().has_value());
    std::string path = read.value()->path;
    if (path.ends_with('/')) path.pop_back();
    CHECK(path == entry.path);
    CHECK(read.value()->link == entry.link);
    CHECK(read.value()->mtime_s == entry.mtime_s);
    CHECK(read.value()->mtime_ns == entry.mtime_ns);
    CHECK(read.value()->xattrs == entry.xattrs);
    std::string found;
    for (auto piece = tar.Read(); piece.ok() && !piece.value().bytes.empty(); piece = tar.Read()) {
      found += piece.value().bytes;
    }
    CHECK(found == content);
  }
  auto end = tar.Next();
  REQUIRE(end.ok());
  CHECK_FALSE(end.value().has_value());
}

TEST_CASE("A layer's whiteouts remove what is there, and nothing else") {
  Temporary place;
  REQUIRE(sys::MakeDirectories(place.path() + "/opaque/inner").ok());
  REQUIRE(sys::MakeDirectories(place.path() + "/kept").ok());
  REQUIRE(sys::WriteFile(place.path() + "/gone", "x").ok());
  REQUIRE(sys::WriteFile(place.path() + "/opaque/old", "x").ok());
  std::string bytes = Render({{Entry(image::TarType::kFile, ".wh.gone"), ""},
                              {Entry(image::TarType::kFile, ".wh.never"), ""},
                              {Entry(image::TarType::kDirectory, "opaque"), ""},
                              {Entry(image::TarType::kFile, "opaque/.wh..wh..opq"), ""},
                              {Entry(image::TarType::kFile, "opaque/new"), "y"}});
  REQUIRE(Receive(bytes, place.fd(), TreeReceiver::Kind::kLayer).ok());
  CHECK(sys::DirectoryNames(place.fd()).value() == std::vector<std::string>{"kept", "opaque"});
  Fd opaque = sys::OpenAt(place.fd(), "opaque", O_RDONLY | O_DIRECTORY).value();
  CHECK(sys::DirectoryNames(opaque.get()).value() == std::vector<std::string>{"new"});
  // For files that are copied, these are names like others.
  REQUIRE(Receive(bytes, place.fd(), TreeReceiver::Kind::kFiles).ok());
  CHECK(sys::ExistsAt(place.fd(), ".wh.gone"));
  for (const char* name : {".wh.", ".wh..", ".wh..."}) {
    std::string bad = Render({{Entry(image::TarType::kFile, name), ""}});
    CHECK(CodeOf(Receive(bad, place.fd(), TreeReceiver::Kind::kLayer)) == Code::kInvalid);
  }
}

TEST_CASE("Nothing is reached through links, dots or empty names") {
  Temporary place;
  Temporary outside;
  REQUIRE(::symlinkat(outside.path().c_str(), place.fd(), "link") == 0);
  for (auto kind : {TreeReceiver::Kind::kFiles, TreeReceiver::Kind::kLayer}) {
    for (const char* path : {"link/x", "../x", "a/../../x", "/x", "a//x", "./x", ""}) {
      INFO(path);
      std::string bytes = Render({{Entry(image::TarType::kFile, path), "x"}});
      const bool link = path == std::string_view("link/x");  // Refused by the kernel.
      CHECK(CodeOf(Receive(bytes, place.fd(), kind)) == (link ? Code::kIo : Code::kInvalid));
    }
  }
  CHECK(sys::DirectoryNames(outside.fd()).value().empty());
  // The link itself gives way to a file.
  std::string bytes = Render({{Entry(image::TarType::kFile, "link"), "x"}});
  REQUIRE(Receive(bytes, place.fd(), TreeReceiver::Kind::kFiles).ok());
  CHECK(sys::DirectoryNames(outside.fd()).value().empty());
  CHECK(sys::ReadFile(place.path() + "/link", 9).value() == "x");
}

TEST_CASE("What is sent has the size of what was read") {
  // The kernel says that its files have 0 bytes, or 4096.
  for (const char* path : {"/proc/version", "/sys/kernel/mm/transparent_hugepage/enabled"}) {
    if (!sys::Exists(path)) continue;
    std::string bytes;
    TarWriter tar([&](std::string_view more) { return bytes += more, Ok(); }, 1000);
    TreeSender sender(tar, TreeSender::Kind::kFiles);
    REQUIRE(sender.Send(sys::Open(path, O_RDONLY).value(), "copy").ok());
    REQUIRE(tar.Finish().ok());
    std::string_view left = bytes;
    image::TarReader reader = ReaderOf(left);
    const std::string text = sys::ReadFile(path, 4096).value();
    CHECK(reader.Next().value()->size == static_cast<int64_t>(text.size()));
    CHECK(reader.Read().value().bytes == text);
  }
}

TEST_CASE("A file that is only said to be large is not read") {
  Temporary place;
  TarWriter tar([](std::string_view) { return Ok(); }, 1000);
  TreeSender sender(tar, TreeSender::Kind::kLayer);
  sender.Limit(5 << 20);
  Fd sparse = sys::OpenAt(place.fd(), "sparse", O_RDWR | O_CREAT, 0600).value();
  REQUIRE(::ftruncate(sparse.get(), 3 << 20) == 0);
  CHECK(sender.Send(sparse, "a").ok());
  REQUIRE(::ftruncate(sparse.get(), int64_t{1} << 40) == 0);
  Status sent = sender.Send(sparse, "b");
  REQUIRE_FALSE(sent.ok());
  CHECK(sent.error().code == Code::kUnsupported);
  CHECK(sender.sent().bytes == 3 << 20);
}

TEST_CASE("The limits of a copy hold") {
  Temporary place;
  std::string bytes = Render(
      {{Entry(image::TarType::kFile, "a"), "12345"}, {Entry(image::TarType::kFile, "b"), "67890"}});
  CHECK(Receive(bytes, place.fd(), TreeReceiver::Kind::kFiles, {10, 2}).ok());
  CHECK(CodeOf(Receive(bytes, place.fd(), TreeReceiver::Kind::kFiles, {9, 2})) == Code::kInvalid);
  CHECK(CodeOf(Receive(bytes, place.fd(), TreeReceiver::Kind::kFiles, {10, 1})) == Code::kInvalid);
}

TEST_CASE("A file that is cut stands nowhere, and what was there stays") {
  Temporary place;
  const std::string before = Render({{Entry(image::TarType::kFile, "a"), "before"},
                                     {Entry(image::TarType::kFile, "a.part"), "not ours"}});
  const std::string after = Render({{Entry(image::TarType::kFile, "a"), std::string(5000, 'x')}});
  REQUIRE(Receive(before, place.fd(), TreeReceiver::Kind::kFiles).ok());
  CHECK_FALSE(Receive(after.substr(0, 2048), place.fd(), TreeReceiver::Kind::kFiles).ok());
  CHECK(sys::ReadFile(place.path() + "/a", 100).value() == "before");
  CHECK(sys::DirectoryNames(place.fd()).value() == std::vector<std::string>{"a", "a.part"});
  CHECK(Receive(after, place.fd(), TreeReceiver::Kind::kFiles).ok());
  CHECK(sys::ReadFile(place.path() + "/a", 6000).value() == std::string(5000, 'x'));
  CHECK(sys::ReadFile(place.path() + "/a.part", 100).value() == "not ours");
}

TEST_CASE("A directory that becomes a link meanwhile changes the mode of no other file") {
  Temporary place;
  const std::string victim = place.path() + "/victim";
  const std::string directory = place.path() + "/d";
  const std::string link = place.path() + "/l";
  REQUIRE(sys::WriteFile(victim, "x", 0600).ok());
  REQUIRE(::mkdir(directory.c_str(), 0700) == 0);
  REQUIRE(::symlink("victim", link.c_str()) == 0);
  std::atomic<bool> ends = false;
  std::thread other([&] {
    while (!ends) {
      (void)::renameat2(AT_FDCWD, directory.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
    }
  });
  const std::string bytes = Render({{Entry(image::TarType::kDirectory, "d"), ""}});
  size_t received = 0;
  struct stat st {};
  for (int i = 0; i < 3000; ++i) {
    received += Receive(bytes, place.fd(), TreeReceiver::Kind::kFiles).ok() ? 1 : 0;
    REQUIRE(::stat(victim.c_str(), &st) == 0);
    if ((st.st_mode & 07777) != 0600) break;
  }
  ends = true;
  other.join();
  CHECK(received > 0);
  CHECK((st.st_mode & 07777) == 0600);
}

TEST_CASE("Copied files obey the umask, and what is restored does not") {
  Temporary place;
  image::TarEntry directory = Entry(image::TarType::kDirectory, "d");
  directory.mode = 0755;
  const std::string bytes = Render({{directory, ""}, {Entry(image::TarType::kFile, "d/f"), "x"}});
  auto modes = [&](mode_t mask, TreeReceiver::Kind kind) {
    (void)sys::RemoveTree(place.fd(), "d");
    const mode_t before = ::umask(mask);
    CHECK(Receive(bytes, place.fd(), kind).ok());
    ::umask(before);
    struct stat d {};
    struct stat f {};
    REQUIRE(::stat((place.path() + "/d").c_str(), &d) == 0);
    REQUIRE(::stat((place.path() + "/d/f").c_str(), &f) == 0);
    return std::pair(d.st_mode & 0777, f.st_mode & 0777);
  };
  CHECK(modes(022, TreeReceiver::Kind::kFiles) == std::pair<mode_t, mode_t>(0755, 0644));
  CHECK(modes(077, TreeReceiver::Kind::kFiles) == std::pair<mode_t, mode_t>(0700, 0600));
  CHECK(modes(077, TreeReceiver::Kind::kLayer) == std::pair<mode_t, mode_t>(0755, 0644));
}

}  // namespace session
