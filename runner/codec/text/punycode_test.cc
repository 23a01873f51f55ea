// SPDX-License-Identifier: Apache-2.0
#include "codec/text/punycode.h"

#include <catch2/catch.hpp>

namespace codec {

TEST_CASE("A host in Unicode has the name that the name service knows") {
  struct Row {
    const char* host;
    const char* name;
  };
  for (const Row& row :
       {Row{"münchen.example", "xn--mnchen-3ya.example"}, Row{"bücher.tld", "xn--bcher-kva.tld"},
        Row{"api.straße.example", "api.xn--strae-oqa.example"},
        Row{"例え.テスト", "xn--r8jz45g.xn--zckzah"},
        Row{"*.пример.испытание", "*.xn--e1afmkfd.xn--80akhbyknj4f"}, Row{"☃.net", "xn--n3h.net"},
        Row{"💩.la", "xn--ls8h.la"}}) {
    CAPTURE(row.host);
    CHECK(PunycodeHost(row.host) == row.name);
  }
}

TEST_CASE("What is ASCII, not UTF-8 or too long has no such name") {
  CHECK_FALSE(PunycodeHost("api.example.com"));
  CHECK_FALSE(PunycodeHost(""));
  CHECK_FALSE(PunycodeHost("m\xfcnchen.example"));
  std::string wide;
  for (int i = 0; i < 64; ++i) wide += "ü";
  CHECK_FALSE(PunycodeHost(wide));
}

}  // namespace codec
