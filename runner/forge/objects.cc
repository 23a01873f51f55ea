// SPDX-License-Identifier: Apache-2.0
#include "forge/objects.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "codec/text/base64.h"

namespace forge {
namespace {

constexpr size_t kBlobBytesMax = size_t{64} << 20;

}  // namespace

int ParseMode(const std::string& text) {
  int mode = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  return error == std::errc() && end == text.data() + text.size() ? mode : 0;
}

Result<std::optional<std::string>> ReadTipOf(Result<codec::Json> branch, std::string_view member,
                                             std::string_view name) {
  if (!branch.ok() && branch.error().code == Code::kNotFound) return std::optional<std::string>();
  codec::Json json = TRY(std::move(branch));
  const codec::Json* commit = json.Find(member);
  std::string sha = commit == nullptr ? "" : commit->StringAt(name);
  if (sha.empty()) return Error{Code::kTemporary, "the forge's response is not a branch"};
  return std::optional(sha);
}

Result<std::string> ReadBlobContent(const codec::Json& json) {
  std::optional<std::string> bytes = DecodeContent(json);
  if (!bytes) return Error{Code::kTemporary, "the forge's response is not a blob"};
  if (bytes->size() > kBlobBytesMax) return Error{Code::kInvalid, "a file of more than 64 MiB"};
  return *std::move(bytes);
}

std::optional<std::string> DecodeContent(const codec::Json& json) {
  if (json.StringAt("encoding") != "base64") return std::nullopt;
  std::string text = json.StringAt("content");
  text.erase(std::remove(text.begin(), text.end(), '\n'), text.end());
  return codec::DecodeBase64(text);
}

Result<std::optional<std::string>> ReadFileOf(Result<codec::Json> file, const std::string& path,
                                              const std::string& ref) {
  if (!file.ok() && file.error().code == Code::kNotFound) return std::optional<std::string>();
  codec::Json json = TRY(std::move(file));
  std::optional<std::string> bytes = DecodeContent(json);
  // GitHub and Gitea say what it is; GitLab gives files alone.
  const std::string type = json.StringAt("type");
  if ((!type.empty() && type != "file") || !bytes || bytes->size() > kFileBytesMax) {
    return Error{Code::kInvalid, path + " at " + ref + " is not a file of at most 1 MiB"};
  }
  return bytes;
}

}  // namespace forge
