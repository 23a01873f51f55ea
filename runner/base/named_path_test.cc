// SPDX-License-Identifier: Apache-2.0
#include "base/named_path.h"

#include <stdlib.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/sys.h"

namespace {

constexpr size_t kBytesMax = 1000;

// A checkout `repository` with a file and a directory below it, and a file beside it.
struct Place {
  Place() {
    char name[] = "/tmp/named-path-test.XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    top = name;
    REQUIRE(sys::MakeDirectories(top + "/repository/.git").ok());
    REQUIRE(sys::MakeDirectories(top + "/repository/services/api").ok());
    REQUIRE(sys::WriteFile(top + "/repository/.git/config", "token").ok());
    REQUIRE(sys::WriteFile(top + "/repository/task.md", "task").ok());
    REQUIRE(sys::WriteFile(top + "/secret.md", "secret").ok());
  }
  ~Place() { std::filesystem::remove_all(top); }
  void Link(const std::string& to, const std::string& at) const {
    REQUIRE(::symlink(to.c_str(), (top + "/" + at).c_str()) == 0);
  }
  std::string top;
};

void CheckRefused(const Result<std::string>& result) {
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code == Code::kInvalid);
}

}  // namespace

TEST_CASE("a named file in a checkout is read, and one beside it") {
  Place place;
  for (const char* path : {"/repository/task.md", "/repository/services/../task.md",
                           "/repository/absent/../task.md", "/repository/./task.md"}) {
    CAPTURE(path);
    Result<std::string> text = ReadNamedFile(place.top + path, kBytesMax);
    REQUIRE(text.ok());
    CHECK(text.value() == "task");
  }
  place.Link("secret.md", "mine.md");  // The machine's own.
  CHECK(ReadNamedFile(place.top + "/mine.md", kBytesMax).value() == "secret");
  Result<std::string> absent = ReadNamedFile(place.top + "/repository/absent.md", kBytesMax);
  REQUIRE_FALSE(absent.ok());
  CHECK(absent.error().code == Code::kNotFound);
  CHECK(ReadNamedFile(place.top + "/repository/task.md", 2).error().code == Code::kInvalid);
}

TEST_CASE("no link in a checkout leads to a named file") {
  Place place;
  place.Link("/proc/self/environ", "repository/environ.md");
  place.Link("../secret.md", "repository/beside.md");
  place.Link(".git/config", "repository/token.md");
  place.Link("..", "repository/prompts");
  place.Link("repository", "link");
  for (const char* path :
       {"/repository/environ.md", "/repository/beside.md", "/repository/token.md",
        "/repository/prompts/secret.md", "/link/beside.md", "/repository/services/../beside.md"}) {
    CAPTURE(path);
    CheckRefused(ReadNamedFile(place.top + path, kBytesMax));
  }
}

TEST_CASE("no file of /proc is a named file") {
  Place place;
  CheckRefused(ReadNamedFile("/proc/self/environ", kBytesMax));
  place.Link("/proc/self/environ", "environ.md");
  CheckRefused(ReadNamedFile(place.top + "/environ.md", kBytesMax));
}

TEST_CASE("a named directory is resolved, but for links in a checkout") {
  Place place;
  const std::string repository = place.top + "/repository";
  place.Link("repository", "link");
  place.Link("..", "repository/services/up");
  place.Link("../../..", "repository/services/out");
  for (const char* path : {"/repository", "/repository/", "/link", "/link/services/.."}) {
    CAPTURE(path);
    CHECK(ResolveNamedDirectory(place.top + path).value() == repository);
  }
  CHECK(ResolveNamedDirectory(place.top + "/link/services/api/").value() ==
        repository + "/services/api");
  CHECK(ResolveNamedDirectory(repository + "/services/out/..").value() == repository + "/services");
  CHECK(ResolveNamedDirectory(repository + "/services/out/../..").value() == repository);
  for (const char* path :
       {"/repository/services/up", "/link/services/out", "/repository/services/out/repository"}) {
    CAPTURE(path);
    CheckRefused(ResolveNamedDirectory(place.top + path));
  }
  CHECK(ResolveNamedDirectory(place.top + "/absent").error().code == Code::kNotFound);
  CHECK(ResolveNamedDirectory(repository + "/absent").error().code == Code::kNotFound);
}

TEST_CASE("the first link on a path is found, be it the last part or one that leads nowhere") {
  const Place place;
  place.Link("repository", "link");
  place.Link("nowhere", "repository/gone");
  CHECK(FindLinkOnPath(place.top + "/link/services/api") == place.top + "/link");
  CHECK(FindLinkOnPath(place.top + "/repository/gone") == place.top + "/repository/gone");
  CHECK(FindLinkOnPath(place.top + "/repository/services/new") == std::nullopt);
}

TEST_CASE("a named directory is made, and through no link in a checkout") {
  Place place;
  for (const char* path :
       {"/new/deep", "/repository/new/deep", "/repository/services", "/repository"}) {
    CAPTURE(path);
    Result<Fd> made = MakeNamedDirectory(place.top + path, 0700);
    REQUIRE(made.ok());
    CHECK(sys::Exists(place.top + path));
  }
  REQUIRE(sys::MakeDirectories(place.top + "/outside").ok());
  place.Link("../outside", "repository/link");
  place.Link("outside", "mine");  // The machine's own.
  CHECK(MakeNamedDirectory(place.top + "/mine/new", 0700).ok());
  for (const char* path :
       {"/repository/link", "/repository/link/inner", "/repository/link/../link"}) {
    CAPTURE(path);
    Result<Fd> made = MakeNamedDirectory(place.top + path, 0700);
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().code == Code::kInvalid);
  }
  CHECK_FALSE(sys::Exists(place.top + "/outside/inner"));
  CHECK(sys::Exists(place.top + "/outside/new"));
}
