// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace codec {

// Returns whether git and the forges accept `ref` as the name of a branch, a tag or a commit: the
// rules of git-check-ref-format(1), at most 250 bytes of UTF-8, no leading `-` and no characters
// that cannot be seen. A name may have characters that a shell or Markdown interprets: code that
// shows it quotes it.
bool ValidRefName(std::string_view ref);

}  // namespace codec
