// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace codec {

// A data file of the repository that the binary carries (cmake/embed.cmake).
struct EmbeddedFile {
  std::string_view path;  // In the repository: for messages.
  std::string_view text;
};

}  // namespace codec
