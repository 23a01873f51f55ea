// SPDX-License-Identifier: Apache-2.0
#include "forge/repository/repository_file.h"

#include <algorithm>

#include "codec/text/base64.h"
#include "codec/text/percent.h"

namespace forge {
namespace {

constexpr char kReadPermission[] = "permissions: { contents: read }";
constexpr size_t kFileBytesMax = size_t{1} << 20;

std::string EncodePath(const std::string& path) {
  std::string encoded = codec::PercentEncode(path);
  for (size_t at = encoded.find("%2F"); at != std::string::npos; at = encoded.find("%2F")) {
    encoded.replace(at, 3, "/");
  }
  return encoded;
}

Error NotSuchFile(const std::string& path, const std::string& ref) {
  return Error{Code::kInvalid, path + " at " + ref + " is not a file of at most 1 MiB"};
}

}  // namespace

Result<std::optional<std::string>> ReadRepositoryFile(Client& client, const std::string& repository,
                                                      const std::string& path,
                                                      const std::string& ref, Deadline deadline) {
  Result<codec::Json> found = client.Get("/repos/" + repository + "/contents/" + EncodePath(path) +
                                             "?ref=" + codec::PercentEncode(ref),
                                         kReadPermission, deadline);
  if (!found.ok() && found.error().code == Code::kNotFound) return std::optional<std::string>();
  codec::Json json = TRY(std::move(found));
  std::optional<std::string> bytes = DecodeContent(json);
  if (json.StringAt("type") != "file" || !bytes || bytes->size() > kFileBytesMax) {
    return NotSuchFile(path, ref);
  }
  return bytes;
}

Result<std::optional<std::string>> ReadGitLabFile(Client& client, const GitLabProject& project,
                                                  const std::string& path, const std::string& ref,
                                                  Deadline deadline) {
  Result<codec::Json> found =
      client.Get(project.ApiPath() + "/repository/files/" + codec::PercentEncode(path) +
                     "?ref=" + codec::PercentEncode(ref),
                 kGitLabPermission, deadline);
  if (!found.ok() && found.error().code == Code::kNotFound) return std::optional<std::string>();
  codec::Json json = TRY(std::move(found));
  std::optional<std::string> bytes = DecodeContent(json);
  if (!bytes || bytes->size() > kFileBytesMax) return NotSuchFile(path, ref);
  return bytes;
}

std::optional<std::string> DecodeContent(const codec::Json& json) {
  if (json.StringAt("encoding") != "base64") return std::nullopt;
  std::string text = json.StringAt("content");
  text.erase(std::remove(text.begin(), text.end(), '\n'), text.end());
  return codec::DecodeBase64(text);
}

}  // namespace forge
