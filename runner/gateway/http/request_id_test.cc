// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/request_id.h"

#include <catch2/catch.hpp>

namespace gateway {
namespace {

std::string Kept(codec::HttpFields fields) {
  KeepRequestId(&fields, "fresh");
  std::string ids;
  for (const codec::HttpField& field : fields) {
    if (codec::EqualIgnoringCase(field.name, "x-request-id")) ids += "[" + field.value + "]";
  }
  return ids;
}

TEST_CASE("A request id that is one stays, anything else is replaced, and none is added") {
  CHECK(Kept({{"x-request-id", "7f3c-A_b.c:d"}}) == "[7f3c-A_b.c:d]");
  CHECK(Kept({{"X-Request-ID", std::string(128, 'a')}}) == "[" + std::string(128, 'a') + "]");
  CHECK(Kept({{"X-Request-ID", std::string(129, 'a')}}) == "[fresh]");
  CHECK(Kept({{"X-Request-ID", "a b"}}) == "[fresh]");
  CHECK(Kept({{"X-Request-ID", "<script>"}}) == "[fresh]");
  CHECK(Kept({{"X-Request-ID", ""}}) == "[fresh]");
  CHECK(Kept({{"X-Request-ID", "a"}, {"x-request-id", "b"}}) == "[fresh]");
  CHECK(Kept({{"Accept", "a"}}).empty());
}

}  // namespace
}  // namespace gateway
