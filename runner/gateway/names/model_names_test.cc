// SPDX-License-Identifier: Apache-2.0
#include "gateway/names/model_names.h"

#include <catch2/catch.hpp>

namespace gateway {
namespace {

TEST_CASE("A model's name without an address is told at once, and once") {
  std::vector<std::string> told;
  ModelNames names({"api.example.com"}, [&](const std::string& why) { told.push_back(why); });
  const Error none{Code::kNotFound, "resolving api.example.com: no address"};
  names.Take("other.example.com", &none);
  CHECK(told.empty());
  names.Take("api.example.com", &none);
  names.Take("api.example.com", &none);
  CHECK(told == std::vector<std::string>{none.what});
}

TEST_CASE("A look-up that fails otherwise is told the third time in a row") {
  int told = 0;
  ModelNames names({"*.example.com"}, [&](const std::string&) { ++told; });
  const Error failed{Code::kTemporary, "resolving api.example.com: Timeout"};
  for (int i = 0; i < 2; ++i) names.Take("api.example.com", &failed);
  names.Take("api.example.com", nullptr);
  for (int i = 0; i < 2; ++i) names.Take("api.example.com", &failed);
  CHECK(told == 0);
  names.Take("api.example.com", &failed);
  CHECK(told == 1);
}

}  // namespace
}  // namespace gateway
