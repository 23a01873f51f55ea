// SPDX-License-Identifier: Apache-2.0
#include "session/snapshot/part_file.h"

#include <fcntl.h>
#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "base/sys.h"
#include "base/tree.h"

namespace session {
namespace {

TEST_CASE("Parts that an interrupted process left are removed, and no other file") {
  char top[] = "/tmp/part-file-test-XXXXXX";
  REQUIRE(::mkdtemp(top) != nullptr);
  Fd directory = sys::Open(top, O_RDONLY | O_DIRECTORY).value();
  auto names = [&] { return sys::DirectoryNames(directory.get()).value(); };
  REQUIRE(sys::WriteFile(std::string(top) + "/.snapshot-left", "x").ok());
  REQUIRE(sys::WriteFile(std::string(top) + "/kept", "x").ok());
  {
    PartFile part = PartFile::Create(directory.get(), 0600).value();
    CHECK(names().size() == 3);
    RemoveLeftParts(directory.get());
    CHECK(names().size() == 2);  // This one is in use.
    REQUIRE(part.Publish("whole").ok());
    CHECK(names() == std::vector<std::string>{"kept", "whole"});
    PartFile other = PartFile::Create(directory.get(), 0600).value();
  }
  CHECK(names() == std::vector<std::string>{"kept", "whole"});
  std::filesystem::remove_all(top);
}

}  // namespace
}  // namespace session
