// SPDX-License-Identifier: Apache-2.0
#include "policy/model/own_places.h"

#include <catch2/catch.hpp>

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
  for (const char* path :
       {"/tmp", "/tmp/", "/sandbox", "/proc", "/proc/self", "/dev/null", "/dev/urandom",
        "/sys/devices/system/cpu", "/usr", "/tmpx", "/", "/home/x"}) {
    INFO(path);
    CHECK(OwnPlaceFault(path).empty());
  }
}

}  // namespace
}  // namespace policy
