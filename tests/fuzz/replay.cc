// SPDX-License-Identifier: Apache-2.0
// usage: fuzz_replay CORPUS
//
// Gives every file of CORPUS/TARGET, and its beginnings, to that fuzz target. A target that finds
// something aborts. Needs no fuzzer.
#include "replay.h"

#include <cstdio>
#include <filesystem>

#include "base/sys.h"

namespace {

constexpr size_t kBytesMax = size_t{1} << 20;
constexpr size_t kBeginnings = 16;

// Runs one file; false: it could not be read.
bool Replay(const FuzzTarget& target, const std::string& path) {
  Result<std::string> input = sys::ReadFile(path, kBytesMax);
  if (!input.ok()) return false;
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(input.value().data());
  for (size_t i = 0; i <= kBeginnings; ++i) {
    target.run(bytes, input.value().size() * i / kBeginnings);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  ENSURE(argc == 2);
  int passed = 0;
  int failed = 0;
  for (const FuzzTarget& target : FuzzTargets()) {
    std::error_code error;
    int files = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(argv[1]) / target.name, error)) {
      std::fprintf(stderr, "%s\n", entry.path().c_str());
      ++(Replay(target, entry.path()) ? passed : failed);
      ++files;
    }
    if (files > 0 && !error) continue;
    std::fprintf(stderr, "%s has no corpus\n", target.name);
    ++failed;
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}
