// SPDX-License-Identifier: Apache-2.0
#include "cli/error_text.h"

#include <catch2/catch.hpp>

#include "codec/data/yaml.h"

namespace cli {
namespace {

TEST_CASE("RenderError prefixes an error, and its hint on a line of its own") {
  CHECK(RenderError({Code::kIo, "openat x: No such file or directory", "touch x"}) ==
        "agentic-ci: error: openat x: No such file or directory\nagentic-ci: hint: touch x\n");
}

TEST_CASE("RenderError leaves an error that names its place as it is") {
  const Error unknown = codec::InvalidAt("p.yml", {3, 5}, "unknown key 'hots'", "host");
  CHECK(RenderError(unknown) == "p.yml:3:5: error: unknown key 'hots'\nagentic-ci: hint: host\n");
  CHECK(
      RenderErrorIn(unknown, "\n\n    hots: x\n") ==
      "p.yml:3:5: error: unknown key 'hots'\n3 |     hots: x\n  |     ^\nagentic-ci: hint: host\n");
  CHECK(RenderError(codec::InvalidAt("run.json", {}, "not JSON")) == "run.json: error: not JSON\n");
}

TEST_CASE("RenderError does not take prose for a place") {
  const Status read = Status(codec::InvalidAt("p.yml", {}, "x")).Context("reading the policy");
  CHECK(RenderError(read.error()) == "agentic-ci: error: reading the policy: p.yml: error: x\n");
  CHECK(RenderError({Code::kIo, "p.yml:1:2: error: x"}) ==
        "agentic-ci: error: p.yml:1:2: error: x\n");
}

TEST_CASE("RenderError shows nothing that a terminal or a CI log obeys") {
  CHECK(RenderError({Code::kIo, "a\x1b[31m\n::add-mask::b\r\n ##vso[c]\x01"}) ==
        "agentic-ci: error: a\n  : :add-mask::b\n   # #vso[c]\\u{1}\n");
  CHECK(RenderError({Code::kIo, "a", "b\n ::c::"}) ==
        "agentic-ci: error: a\nagentic-ci: hint: b\n   : :c::\n");
}

}  // namespace
}  // namespace cli
