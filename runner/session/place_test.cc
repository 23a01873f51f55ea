// SPDX-License-Identifier: Apache-2.0
#include "session/place.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "base/sys.h"

namespace session {
namespace {

namespace fs = std::filesystem;

struct Runtime {
  Runtime() {
    path = fs::temp_directory_path().string() + "/session-place-XXXXXX";
    REQUIRE(::mkdtemp(path.data()) != nullptr);
    REQUIRE(::setenv("XDG_RUNTIME_DIR", path.c_str(), 1) == 0);
  }
  ~Runtime() { fs::remove_all(path); }
  std::string path;
};

Place OpenPlace() {
  Result<Place> place = Place::Open();
  REQUIRE(place.ok());
  return std::move(place).value();
}

TEST_CASE("names of sandboxes are names of files, and nothing else") {
  for (const char* name : {"a", "A-1", "review_2.x", "0"}) CHECK(CheckName(name).ok());
  for (const char* name : {"", ".", "..", ".lock", "-x", "a/b", "a b", "\xc3\xa4"}) {
    CHECK(CheckName(name).error().code == Code::kUsage);
  }
  CHECK(CheckName(std::string(kNameBytesMax, 'a')).ok());
  CHECK_FALSE(CheckName(std::string(kNameBytesMax + 1, 'a')).ok());
}

TEST_CASE("a name is one sandbox's while its processes live") {
  Runtime runtime;
  {
    Place place = OpenPlace();
    CHECK(place.path() == runtime.path + "/agentic-ci");
    Result<Entry> entry = place.Make("one");
    REQUIRE(entry.ok());
    Facts facts;
    facts.name = "one";
    facts.workdir = "/w\xff";
    facts.report_dir = "/r\xff";
    facts.policy_ref = "main";
    facts.providers = {"openai", "anthropic"};
    facts.variables = {{"KEY", ""}, {"ADDRESS", "\xff=\n"}};
    REQUIRE(WriteFacts(entry.value(), facts).ok());
    CHECK(OpenPlace().Make("one").error().code == Code::kUsage);
    REQUIRE(OpenPlace().List().size() == 1);
    CHECK(OpenPlace().Find("one").value().workdir == "/w\xff");
    CHECK(OpenPlace().Find("one").value().report_dir == "/r\xff");
    CHECK(OpenPlace().Find("one").value().policy_ref == "main");
    CHECK(OpenPlace().Find("one").value().providers == facts.providers);
    CHECK(OpenPlace().Find("one").value().variables == facts.variables);
    CHECK(place.Find("two").error().code == Code::kNotFound);
    CHECK(place.Connect("two").error().code == Code::kNotFound);
    CHECK(place.Make("").value().name.starts_with("sandbox-"));
  }
  // The locks are free.
  CHECK(OpenPlace().List().empty());
  CHECK(fs::exists(runtime.path + "/agentic-ci/.lock"));
  CHECK_FALSE(fs::exists(runtime.path + "/agentic-ci/one"));
}

TEST_CASE("only a sandbox that has ended is removed") {
  Runtime runtime;
  const std::string path = OpenPlace().path();
  REQUIRE(sys::WriteFile(path + "/file", "x").ok());
  REQUIRE(::mkdir((path + "/killed").c_str(), 0700) == 0);
  REQUIRE(::mkdir((path + "/asked").c_str(), 0700) == 0);
  fs::create_symlink("/nowhere", path + "/asked/lock");  // It cannot be opened.
  fs::create_symlink("asked", path + "/link");
  (void)OpenPlace();
  for (const char* kept : {"/file", "/asked/lock", "/link"}) {
    CHECK(fs::is_symlink(path + kept) != fs::is_regular_file(path + kept));
  }
  CHECK_FALSE(fs::exists(path + "/killed"));
}

TEST_CASE("what is removed is one's own") {
  Runtime runtime;
  Place place = OpenPlace();
  Entry first = std::move(place.Make("one")).value();
  Remove(first);
  Entry second = std::move(place.Make("one")).value();
  Remove(first);
  CHECK(fs::exists(second.path));
  Remove(second);
  CHECK_FALSE(fs::exists(second.path));
}

TEST_CASE("a sandbox that takes no connection is not waited for without end") {
  Runtime runtime;
  Place place = OpenPlace();
  Entry entry = std::move(place.Make("one")).value();
  Fd listener = std::move(Listen(entry)).value();
  constexpr size_t kMany = 1000;
  std::vector<Fd> connections;
  Result<Fd> connection = place.Connect("one");
  while (connection.ok() && connections.size() < kMany) {
    connections.push_back(std::move(connection).value());
    connection = place.Connect("one");
  }
  REQUIRE_FALSE(connection.ok());
  CHECK(connection.error().code == Code::kTemporary);
  // One is taken: there is room again.
  Fd taken(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  CHECK(place.Connect("one").ok());
}

TEST_CASE("a place that others can enter is refused") {
  Runtime runtime;
  std::string path = runtime.path + "/agentic-ci";
  REQUIRE(::mkdir(path.c_str(), 0700) == 0);
  REQUIRE(::chmod(path.c_str(), 0710) == 0);
  CHECK(Place::Open().error().code == Code::kRefused);
  fs::remove(path);
  fs::create_symlink("/tmp", path);
  CHECK(Place::Open().error().code == Code::kRefused);
  fs::remove(path);
  REQUIRE(sys::WriteFile(path, "").ok());
  CHECK(Place::Open().error().code == Code::kRefused);
}

}  // namespace
}  // namespace session
