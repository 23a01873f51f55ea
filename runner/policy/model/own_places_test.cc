// SPDX-License-Identifier: Apache-2.0
#include "policy/model/own_places.h"

#include <catch2/catch.hpp>
#include <initializer_list>
#include <utility>

namespace policy {
namespace {

TEST_CASE("OwnPlaceFault names the place that hides the host's path") {
  CHECK(OwnPlaceFault("/tmp/x") == "/tmp is the sandbox's own, and never the host's");
  for (const char* path : {"/sys", "/sys/devices/system", "/run/docker.sock", "/dev/mem",
                           "/sandbox/x", "/var/run/x"}) {
    INFO(path);
    CHECK_FALSE(OwnPlaceFault(path).empty());
  }
}

TEST_CASE("OwnPlaceFault finds nothing wrong with what every sandbox has, and with other paths") {
  for (const char* path : {"/tmp", "/sandbox", "/proc", "/proc/self", "/dev/null", "/dev/urandom",
                           "/sys/devices/system/cpu", "/usr", "/tmpx", "/", "/home/x"}) {
    INFO(path);
    CHECK(OwnPlaceFault(path).empty());
  }
}

TEST_CASE("CleanPath gives a path its one spelling") {
  for (const auto& [path, clean] :
       std::initializer_list<std::pair<const char*, const char*>>{{"/", "/"},
                                                                  {"//", "/"},
                                                                  {"/.", "/"},
                                                                  {"/./", "/"},
                                                                  {"/.//.", "/"},
                                                                  {"/opt//", "/opt"},
                                                                  {"/usr/.", "/usr"},
                                                                  {"/a//b/./c", "/a/b/c"},
                                                                  {"/.a/..b", "/.a/..b"}}) {
    CHECK(CleanPath(path) == clean);
  }
}

}  // namespace
}  // namespace policy
