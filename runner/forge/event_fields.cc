// SPDX-License-Identifier: Apache-2.0
#include "forge/event_fields.h"

#include <algorithm>
#include <optional>

#include "base/ascii.h"
#include "codec/text/hex.h"
#include "codec/text/neutral.h"
#include "codec/text/ref_name.h"
#include "codec/text/shell_word.h"

namespace forge {
namespace {

constexpr size_t kAddressBytesMax = 2048;

// Returns whether `part` may be one of a repository's or a project's path.
bool IsPathPart(std::string_view part, size_t bytes_max) {
  if (part.empty() || part.size() > bytes_max || part == "." || part == "..") return false;
  return std::all_of(part.begin(), part.end(), [](unsigned char c) {
    return ascii::IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace

std::string FetchBaseCommand(const std::string& remote, const std::string& branch) {
  return "git fetch --depth=1 " + codec::ShellArgument(remote) + " " +
         codec::ShellArgument("+refs/heads/" + branch + ":" + kBaseRef);
}

std::string Variables::Get(const std::string& name, const std::string& fallback) const {
  std::optional<std::string> value = read_(name);
  return value && !value->empty() ? *value : fallback;
}

bool Variables::IsSet(const char* name) const {
  std::string value = ascii::LowerCase(Get(name));
  return !value.empty() && value != "false" && value != "0";
}

bool IsNumber(std::string_view text) { return text.size() <= 20 && ascii::IsNumber(text); }

bool IsZeroSha(std::string_view text) {
  return text.find_first_not_of('0') == std::string_view::npos;
}

bool IsLogin(std::string_view login) {
  constexpr std::string_view kBot = "[bot]";
  // The login that act gives, which runs workflows on a desk.
  if (login == "nektos/act") return true;
  if (login.size() > kBot.size() && login.substr(login.size() - kBot.size()) == kBot) {
    login.remove_suffix(kBot.size());
  }
  constexpr size_t kBytesMax = 255;  // GitLab's bound; GitHub's is lower.
  return !login.empty() && login.size() <= kBytesMax &&
         std::all_of(login.begin(), login.end(), [](unsigned char c) {
           return ascii::IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

bool IsHttpUrl(std::string_view url) {
  size_t scheme = 0;
  if (url.substr(0, 8) == "https://") scheme = 8;
  if (url.substr(0, 7) == "http://") scheme = 7;
  if (scheme == 0 || url.size() == scheme || url.size() > kAddressBytesMax) return false;
  return std::all_of(url.begin(), url.end(), [](unsigned char c) {
    return ascii::IsAlphanumeric(c) ||
           std::string_view("-._~:/[]%").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

std::string WithoutSlash(std::string url) {
  while (!url.empty() && url.back() == '/') url.pop_back();
  return url;
}

std::string Quoted(std::string_view text) { return "'" + codec::NeutralLine(text, 80) + "'"; }

Status CheckSha(const char* field, const std::string& sha) {
  if (sha.empty() || codec::IsObjectId(sha)) return Ok();
  return Error{Code::kInvalid, std::string(field) + " is not a commit hash: " + Quoted(sha)};
}

Status CheckRef(const char* field, const std::string& ref) {
  if (ref.empty() || ValidRef(ref)) return Ok();
  return Error{Code::kRefused,
               std::string(field) + " is not a branch name that git accepts: " + Quoted(ref),
               "git branch -m NAME"};
}

bool ValidRef(std::string_view ref) {
  constexpr size_t kBranchBytesMax = 244;  // 255, less "refs/heads/".
  return ref.size() <= kBranchBytesMax && codec::ValidRefName(ref);
}

bool ValidRepository(std::string_view repository) {
  constexpr size_t kPartBytesMax = 100;
  size_t slash = repository.find('/');
  return slash != std::string_view::npos &&
         IsPathPart(repository.substr(0, slash), kPartBytesMax) &&
         IsPathPart(repository.substr(slash + 1), kPartBytesMax);
}

bool ValidProject(std::string_view path) {
  constexpr size_t kPartBytesMax = 255;
  constexpr size_t kPartsMax = 21;  // A project below twenty groups.
  size_t parts = 0;
  for (;;) {
    size_t slash = path.find('/');
    if (!IsPathPart(path.substr(0, slash), kPartBytesMax) || ++parts > kPartsMax) return false;
    if (slash == std::string_view::npos) return parts > 1;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace forge
