// SPDX-License-Identifier: Apache-2.0
#include "change/layer_watch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "base/skip.h"
#include "base/sys.h"

namespace change {
namespace {

namespace fs = std::filesystem;

std::string Told(const TouchedFiles& touched) {
  std::string text;
  for (const TouchedFile& file : touched.files) {
    constexpr const char* kWords[] = {"created", "modified", "deleted", "renamed", "mode"};
    text += std::string(text.empty() ? "" : ", ") + kWords[static_cast<int>(file.kind)] + " " +
            (file.old_path.empty() ? "" : file.old_path + " ") + file.path +
            (file.directory ? "/" : "");
  }
  return text;
}

// Returns what the next look tells; what changes from now on can be told from that.
std::string Next(LayerWatch& watch) {
  std::string told = Told(watch.Look());
  watch.Settle();
  return told;
}

// An upper layer over a checkout, as overlayfs would leave it.
struct Layers {
  Layers() {
    path = fs::temp_directory_path().string() + "/layer-watch-XXXXXX";
    REQUIRE(::mkdtemp(path.data()) != nullptr);
    for (const char* name : {"/lower", "/lower/d", "/upper"}) fs::create_directory(path + name);
    Write("lower/a", "alpha");
    Write("lower/d/b", "beta");
    upper = std::move(sys::Open(path + "/upper", O_RDONLY | O_DIRECTORY)).value();
  }
  ~Layers() { fs::remove_all(path); }

  void Write(const std::string& name, const std::string& text) const {
    REQUIRE(sys::WriteFile(path + "/" + name, text).ok());
  }
  LayerWatch Watch(bool copied = false, size_t path_bytes_max = LayerWatch::kPathBytesMax) const {
    return {upper.get(), std::move(sys::Open(path + "/lower", O_RDONLY | O_DIRECTORY)).value(),
            copied, LayerWatch::Since::kNow, path_bytes_max};
  }
  // Twenty files with 100 characters in each path.
  void WriteLongNames(const std::string& directory) const {
    for (char c = 'a'; c < 'a' + 20; ++c) Write(directory + std::string(98, c), "");
  }

  std::string path;
  Fd upper;
};

TEST_CASE("a touched file tells whether the lower layer was visible there before") {
  Layers layers;
  LayerWatch watch = layers.Watch();
  Next(watch);
  auto found = [&](const std::string& path) {
    bool lower = false;
    for (const TouchedFile& file : watch.Look().files)
      lower = file.path == path && file.found_lower;
    watch.Settle();
    return lower;
  };
  layers.Write("upper/a", "one");
  CHECK(found("a"));
  layers.Write("upper/a", "two");
  CHECK_FALSE(found("a"));
  fs::remove(layers.path + "/upper/a");
  layers.Write("upper/a", "three");
  CHECK_FALSE(found("a"));
  // Not in a directory that hides the lower one.
  fs::create_directory(layers.path + "/upper/d");
  layers.Write("upper/d/b", "one");
  CHECK(found("d/b"));
  fs::remove_all(layers.path + "/upper/d");
  layers.Write("upper/d", "a file");
  Next(watch);
  fs::remove(layers.path + "/upper/d");
  fs::create_directory(layers.path + "/upper/d");
  layers.Write("upper/d/b", "two");
  CHECK_FALSE(found("d/b"));
}

TEST_CASE("a layer's files are compared with what was seen before") {
  Layers layers;
  LayerWatch watch = layers.Watch();
  CHECK(Next(watch).empty());
  layers.Write("upper/n", "new");
  CHECK(Next(watch) == "created n");
  CHECK(Next(watch).empty());
  // The file is as long as before, and as old.
  layers.Write("upper/n", "NEW");
  timespec old[2] = {{1, 0}, {1, 0}};
  REQUIRE(::utimensat(AT_FDCWD, (layers.path + "/upper/n").c_str(), old, 0) == 0);
  CHECK(Next(watch) == "modified n");
  REQUIRE(::chmod((layers.path + "/upper/n").c_str(), 0755) == 0);
  CHECK(Next(watch) == "mode n");
  fs::rename(layers.path + "/upper/n", layers.path + "/upper/m");
  CHECK(Next(watch) == "renamed n m");
  fs::remove(layers.path + "/upper/m");
  fs::create_directory(layers.path + "/upper/x");
  fs::create_symlink("nowhere", layers.path + "/upper/x/l");
  CHECK(Next(watch) == "deleted m, created x/, created x/l");
}

TEST_CASE("what was copied up has changed when its content has") {
  Layers layers;
  LayerWatch watch = layers.Watch();
  layers.Write("upper/a", "alpha");
  fs::create_directory(layers.path + "/upper/d");
  layers.Write("upper/d/b", "BETA");
  CHECK(Next(watch) == "modified d/b");
}

TEST_CASE("git's own directory is not looked at") {
  Layers layers;
  LayerWatch watch = layers.Watch();
  fs::create_directory(layers.path + "/upper/.git");
  layers.Write("upper/.git/index", "x");
  layers.Write("upper/y", "x");
  CHECK(Next(watch) == "created y");
}

TEST_CASE("a whiteout deletes what the checkout has, with all that is beneath it") {
  Layers layers;
  LayerWatch watch = layers.Watch();
  if (::mknod((layers.path + "/upper/d").c_str(), S_IFCHR, 0) != 0) {
    SKIP("root: only root can make a whiteout outside of a sandbox");
  }
  REQUIRE(::mknod((layers.path + "/upper/a").c_str(), S_IFCHR, 0) == 0);
  layers.Write("upper/moved", "alpha");
  CHECK(Next(watch) == "deleted d/, deleted d/b, renamed a moved");
  // Made anew: nothing of the checkout's shows through.
  fs::remove(layers.path + "/upper/d");
  fs::create_directory(layers.path + "/upper/d");
  REQUIRE(::setxattr((layers.path + "/upper/d").c_str(), "trusted.overlay.opaque", "y", 1, 0) == 0);
  CHECK(Next(watch) == "created d/");
}

TEST_CASE("a look whose paths are too long together is not complete") {
  for (bool complete : {true, false}) {
    Layers layers;
    LayerWatch watch = layers.Watch(false, 3000);
    fs::create_directory(layers.path + "/upper/n");
    layers.WriteLongNames("upper/n/");
    if (!complete) {
      fs::create_directory(layers.path + "/upper/m");
      layers.WriteLongNames("upper/m/");
    }
    TouchedFiles touched = watch.Look();
    CHECK(touched.complete == complete);
    CHECK(touched.files.size() >= 21);
    CHECK(touched.files.size() <= 32);
  }
}

TEST_CASE("what was hidden is listed as far as its paths may go") {
  for (bool complete : {true, false}) {
    Layers layers;
    layers.WriteLongNames("lower/d/");
    if (!complete) {
      fs::create_directory(layers.path + "/lower/d/m");
      layers.WriteLongNames("lower/d/m/");
    }
    LayerWatch watch = layers.Watch(false, 3000);
    layers.Write("upper/d", "in its place");
    TouchedFiles touched = watch.Look();
    CHECK(touched.complete == complete);
    CHECK(touched.files.size() >= 22);
    CHECK(touched.files.size() <= 34);
  }
}

TEST_CASE("a copy is the whole tree") {
  Layers layers;
  layers.Write("upper/a", "alpha");
  LayerWatch watch = layers.Watch(true);
  CHECK(Next(watch).empty());
  fs::remove(layers.path + "/upper/a");
  CHECK(Next(watch) == "deleted a");
}

}  // namespace
}  // namespace change
