// SPDX-License-Identifier: Apache-2.0
// Objects of git in a forge's responses.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/data/json.h"

namespace forge {

inline constexpr size_t kFileBytesMax = size_t{1} << 20;  // Forge::ReadFile().

// Parses a mode such as "100755". Returns 0 if it is not one.
int ParseMode(const std::string& text);

// Returns the tip in a forge's response about a branch, where `member` has it as `name`; nullopt if
// there is no such branch.
Result<std::optional<std::string>> ReadTipOf(Result<codec::Json> branch, std::string_view member,
                                             std::string_view name);

// Reads the content of a blob in a forge's response; at most 64 MiB.
Result<std::string> ReadBlobContent(const codec::Json& json);

// Returns the bytes of {"encoding": "base64", "content": ...}, as forges give files and blobs;
// nullopt if it is something else.
std::optional<std::string> DecodeContent(const codec::Json& json);

// Returns the file `path` at `ref` in a response that has `json`. nullopt if there is none; fails
// with kInvalid if it is not a file, or larger than 1 MiB.
Result<std::optional<std::string>> ReadFileOf(Result<codec::Json> file, const std::string& path,
                                              const std::string& ref);

}  // namespace forge
