// SPDX-License-Identifier: Apache-2.0
#include "eval/child/copy_tree.h"

#include <filesystem>
#include <system_error>

namespace eval {

namespace fs = std::filesystem;

Status CopyTree(const std::string& from, const std::string& to,
                std::vector<std::string>* left_out) {
  std::error_code failed;
  fs::recursive_directory_iterator entries(from, failed);
  for (; !failed && entries != fs::recursive_directory_iterator(); entries.increment(failed)) {
    const fs::path target = to / entries->path().lexically_relative(from);
    const fs::file_type type = entries->symlink_status(failed).type();
    if (failed) break;
    if (type == fs::file_type::directory) {
      fs::create_directory(target, failed);
    } else if (type == fs::file_type::regular) {
      fs::copy_file(entries->path(), target, failed);
    } else {
      left_out->push_back(entries->path().string());
    }
    if (failed) break;
  }
  if (failed) return Error{Code::kIo, failed.message()};
  return Ok();
}

}  // namespace eval
