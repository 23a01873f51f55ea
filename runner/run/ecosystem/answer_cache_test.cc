// SPDX-License-Identifier: Apache-2.0
#include "run/ecosystem/answer_cache.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/sys.h"

namespace run {
namespace {

class Place {
 public:
  Place() {
    std::string name = "/tmp/answer-cache-test-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Place() { std::filesystem::remove_all(path); }
  // The one entry.
  std::string entry() const {
    for (const auto& one : std::filesystem::directory_iterator(path + "/c")) return one.path();
    return {};
  }
  std::string path;
};

}  // namespace

TEST_CASE("An answer is found for the same question in the same state") {
  Place place;
  AnswerCache cache = AnswerCache::OpenIn(place.path + "/c");
  CHECK_FALSE(cache.Find("q", "s"));
  cache.Keep("q", "s", "a");
  CHECK(AnswerCache::OpenIn(place.path + "/c").Find("q", "s") == "a");
  CHECK_FALSE(cache.Find("q", "other"));
  CHECK_FALSE(cache.Find("other", "s"));
  cache.Keep("q", "other", "b");
  CHECK(cache.Find("q", "other") == "b");
  CHECK_FALSE(cache.Find("q", "s"));
}

TEST_CASE("An answer is not taken once it is a day old, nor when it is from the future") {
  Place place;
  AnswerCache cache = AnswerCache::OpenIn(place.path + "/c");
  for (const time_t away : {-25 * 3600, 3600}) {
    cache.Keep("q", "s", "a");
    REQUIRE(cache.Find("q", "s") == "a");
    const timespec when[2] = {{::time(nullptr) + away, 0}, {::time(nullptr) + away, 0}};
    REQUIRE(::utimensat(AT_FDCWD, place.entry().c_str(), when, 0) == 0);
    CHECK_FALSE(cache.Find("q", "s"));
  }
  cache.Keep("q", "s", "a");
  const timespec ahead[2] = {{::time(nullptr) + 30, 0}, {::time(nullptr) + 30, 0}};
  REQUIRE(::utimensat(AT_FDCWD, place.entry().c_str(), ahead, 0) == 0);
  CHECK(cache.Find("q", "s") == "a");
}

TEST_CASE("An answer that others could have written is not taken") {
  Place place;
  AnswerCache cache = AnswerCache::OpenIn(place.path + "/c");
  cache.Keep("q", "s", "a");
  REQUIRE(::chmod(place.entry().c_str(), 0666) == 0);
  CHECK_FALSE(cache.Find("q", "s"));
  REQUIRE(::chmod(place.entry().c_str(), 0600) == 0);
  REQUIRE(cache.Find("q", "s") == "a");
  REQUIRE(::chmod((place.path + "/c").c_str(), 0777) == 0);
  CHECK_FALSE(AnswerCache::OpenIn(place.path + "/c").Find("q", "s"));
}

TEST_CASE("An entry that is damaged is no answer") {
  Place place;
  AnswerCache cache = AnswerCache::OpenIn(place.path + "/c");
  cache.Keep("q", "s", "a");
  for (const char* text : {"", "{", "[]", "{\"question\":\"q\",\"state\":\"s\",\"answer\":7}"}) {
    REQUIRE(sys::WriteFile(place.entry(), text, 0600).ok());
    CHECK_FALSE(cache.Find("q", "s"));
  }
}

TEST_CASE("The state of a file changes with the file") {
  Place place;
  const std::string file = place.path + "/f";
  const std::string absent = FileState(file);
  REQUIRE(sys::WriteFile(file, "a").ok());
  const std::string first = FileState(file);
  REQUIRE(sys::WriteFile(file, "ab").ok());
  CHECK(absent != first);
  CHECK(FileState(file) != first);
  CHECK(FileState(file) == FileState(file));
}

}  // namespace run
