// SPDX-License-Identifier: Apache-2.0
#include "sandbox/user_namespace.h"

#include <catch2/catch.hpp>

namespace sandbox {
namespace {

TEST_CASE("A step that a namespace gave no right to means that this host cannot isolate") {
  for (int refused : {EPERM, EACCES}) {
    Status step = NamespaceErrno("making every address local", refused);
    const Error error = ExplainFault(std::move(step).Context("the routes").error());
    CHECK(error.code == Code::kUnsupported);
    CHECK(error.hint == sys::NamespaceRemedy());
    CHECK(error.what.starts_with("the routes: making every address local: "));
  }
  CHECK(ExplainFault(NamespaceErrno("mount x", ENOSPC)).code == Code::kIo);
  CHECK(ExplainFault(Errno("mkdir x", EACCES)).code == Code::kIo);
}

}  // namespace
}  // namespace sandbox
