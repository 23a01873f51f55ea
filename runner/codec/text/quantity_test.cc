// SPDX-License-Identifier: Apache-2.0
#include "codec/text/quantity.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

TEST_CASE("ParseDuration reads hours, minutes and seconds in this order") {
  CHECK(ParseDuration("90s").value() == 90);
  CHECK(ParseDuration("20m").value() == 1200);
  CHECK(ParseDuration("1h30m").value() == 5400);
  CHECK(ParseDuration("2h5s").value() == 7205);
  CHECK(ParseDuration("off").value() == 0);
  CHECK(ParseDuration("0s").value() == 0);
}

TEST_CASE("ParseDuration refuses what is not a duration") {
  for (const char* text : {"", "20", "m", "5m1h", "1h1h", "1.5h", "-1s", "1 h", "20mx", "1d", "OFF",
                           "99999999999999999999s", "9999999999h"}) {
    INFO(text);
    CHECK_FALSE(ParseDuration(text).ok());
  }
}

TEST_CASE("ParseDuration shows what a duration looks like") {
  Error error = ParseDuration("20 minutes").error();

  CHECK(error.code == Code::kInvalid);
  CHECK(error.what == "'20 minutes' is not a duration, such as 90s, 20m or 1h30m");
}

TEST_CASE("ParseDuration refuses a sum beyond its bound") {
  CHECK(ParseDuration("8784h").value() == kDurationSecondsMax);
  CHECK_FALSE(ParseDuration("8784h1s").ok());
}

TEST_CASE("ParseSize reads binary units and plain bytes") {
  CHECK(ParseSize("4GiB").value() == int64_t{4} << 30);
  CHECK(ParseSize("64MiB").value() == int64_t{64} << 20);
  CHECK(ParseSize("512KiB").value() == int64_t{512} << 10);
  CHECK(ParseSize("4096").value() == 4096);
}

TEST_CASE("ParseSize refuses decimal units, zero, signs and what overflows") {
  for (const char* text : {"", "4GB", "4G", "4gib", "0", "0MiB", "-1", "1.5GiB", "4 GiB", "GiB",
                           "9223372036854775807GiB", "1048577GiB"}) {
    INFO(text);
    CHECK_FALSE(ParseSize(text).ok());
  }
}

TEST_CASE("RenderSize gives what ParseSize reads back") {
  for (int64_t bytes :
       {int64_t{1}, int64_t{1000}, int64_t{1024}, int64_t{3} << 20, int64_t{8} << 30}) {
    CHECK(ParseSize(RenderSize(bytes)).value() == bytes);
  }
  CHECK(RenderSize(int64_t{8} << 30) == "8GiB");
}

TEST_CASE("ParseCount refuses zero and anything that is not a whole number") {
  CHECK(ParseCount("1024").value() == 1024);
  for (const char* text : {"", "0", "010", "-3", "1.0", "1e3", "many", "1000000001"}) {
    INFO(text);
    CHECK_FALSE(ParseCount(text).ok());
  }
}

TEST_CASE("ParseCpus reads a share of processors") {
  CHECK(ParseCpus("all").value() == 0);
  CHECK(ParseCpus("2").value() == 2);
  CHECK(ParseCpus("1.5").value() == 1.5);
  for (const char* text : {"", "0", "-1", "0.001", "nan", "inf", "1e2", "two", "5000"}) {
    INFO(text);
    CHECK_FALSE(ParseCpus(text).ok());
  }
}

}  // namespace
}  // namespace codec
