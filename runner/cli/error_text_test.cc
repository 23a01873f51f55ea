// SPDX-License-Identifier: Apache-2.0
#include "cli/error_text.h"

#include <catch2/catch.hpp>

namespace cli {
namespace {

TEST_CASE("RenderError prefixes an error, and its hint on a line of its own") {
  CHECK(RenderError({Code::kIo, "openat x: No such file or directory", "touch x"}) ==
        "agentic-ci: error: openat x: No such file or directory\nagentic-ci: hint: touch x\n");
}

TEST_CASE("RenderError leaves an error that names its place as it is") {
  CHECK(RenderError({Code::kInvalid, "p.yml:3:5: error: unknown key 'hots'", "host"}) ==
        "p.yml:3:5: error: unknown key 'hots'\nagentic-ci: hint: host\n");
  CHECK(RenderError({Code::kInvalid, "run.json: error: not JSON"}) ==
        "run.json: error: not JSON\n");
}

TEST_CASE("RenderError does not take prose for a place") {
  CHECK(RenderError({Code::kIo, "reading the policy: p.yml: error: x"}) ==
        "agentic-ci: error: reading the policy: p.yml: error: x\n");
  CHECK(RenderError({Code::kIo, ":1:2: error: x"}) == "agentic-ci: error: :1:2: error: x\n");
}

TEST_CASE("RenderError shows nothing that a terminal or a CI log obeys") {
  CHECK(RenderError({Code::kIo, "a\x1b[31m\n::add-mask::b\r\n ##vso[c]\x01"}) ==
        "agentic-ci: error: a\n  : :add-mask::b\n   # #vso[c]\\u{1}\n");
  CHECK(RenderError({Code::kIo, "a", "b\n ::c::"}) ==
        "agentic-ci: error: a\nagentic-ci: hint: b\n   : :c::\n");
}

}  // namespace
}  // namespace cli
