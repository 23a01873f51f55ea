// SPDX-License-Identifier: Apache-2.0
#include "change/rules/ignore_rules.h"

#include <utility>

namespace change {
namespace {

constexpr size_t kFilesMax = 100'000;

}  // namespace

IgnoreRules::IgnoreRules(std::string_view exclude, ReadIgnores read)
    : exclude_(exclude), read_(std::move(read)) {}

const IgnoreFile& IgnoreRules::In(const std::string& directory) {
  auto known = files_.find(directory);
  if (known != files_.end()) return known->second;
  if (files_.size() >= kFilesMax) files_.clear();
  return files_.emplace(directory, IgnoreFile(read_(directory).value_or(""))).first->second;
}

// The files nearest to the path come first.
bool IgnoreRules::Decide(const std::string& path, bool directory) {
  for (size_t slash = path.rfind('/');; slash = path.rfind('/', slash - 1)) {
    const size_t begin = slash == std::string::npos ? 0 : slash + 1;
    const IgnoreFile& file = In(path.substr(0, begin));
    if (std::optional<bool> said = file.Decide(std::string_view(path).substr(begin), directory)) {
      return *said;
    }
    if (begin == 0) break;
    if (slash == 0) return false;  // No path of a working tree begins with a slash.
  }
  return exclude_.Decide(path, directory).value_or(false);
}

// In an ignored directory, everything is.
bool IgnoreRules::Ignores(std::string_view path) {
  if (spent_ > kIgnoreSpentMax) return false;
  const auto began = std::chrono::steady_clock::now();
  const bool is_directory = path.ends_with('/');
  const std::string plain(path.substr(0, path.find_last_not_of('/') + 1));
  const std::string directory = plain.substr(0, plain.rfind('/') + 1);
  if (directory != last_directory_) {
    last_ignored_ = false;
    for (size_t slash = directory.find('/'); slash != std::string::npos && !last_ignored_;
         slash = directory.find('/', slash + 1)) {
      last_ignored_ = Decide(directory.substr(0, slash), true);
    }
    last_directory_ = directory;
  }
  const bool ignored = last_ignored_ || Decide(plain, is_directory);
  spent_ += std::chrono::steady_clock::now() - began;
  return ignored;
}

}  // namespace change
