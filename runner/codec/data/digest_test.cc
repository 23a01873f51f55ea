// SPDX-License-Identifier: Apache-2.0
#include "codec/data/digest.h"

#include <catch2/catch.hpp>

TEST_CASE("Sha256Hex gives the digest of FIPS 180-4's example") {
  CHECK(codec::Sha256Hex("abc") ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("Sha256 gives the same however the bytes are split, and begins anew") {
  codec::Sha256 digest;
  digest.Update("a");
  digest.Update("");
  digest.Update("bc");
  CHECK(digest.Hex() == codec::Sha256Hex("abc"));
  CHECK(digest.Hex() == codec::Sha256Hex(""));
}
