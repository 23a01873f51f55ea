// SPDX-License-Identifier: Apache-2.0
#include "run/shown/credential_names.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "policy/model/credential_places.h"

namespace run {
namespace {

constexpr unsigned kWithheld = policy::kWithhold | policy::kWithholdIfSecret;

constexpr auto kCredentialWords =
    std::to_array<std::string_view>({"auth", "passw", "token", "secret", "credential", "key"});

// Returns whether `path` ends in a place that has one of `uses`.
bool EndsInPlace(std::string_view path, unsigned uses) {
  return std::any_of(policy::kCredentialPlaces.begin(), policy::kCredentialPlaces.end(),
                     [&](const policy::CredentialPlace& place) {
                       return (place.uses & uses) != 0 && path.ends_with(place.path) &&
                              (path.size() == place.path.size() ||
                               path[path.size() - place.path.size() - 1] == '/');
                     });
}

// True for files of google-github-actions/auth, such as "gha-creds-0123456789abcdef.json".
bool IsGoogleCredential(std::string_view name) {
  return name.starts_with("gha-creds-") && name.ends_with(".json");
}

// "https://user:secret@host/".
bool HasUserInfo(std::string_view text) {
  for (size_t at = text.find("://"); at != text.npos; at = text.find("://", at + 3)) {
    const size_t end = text.find_first_of("/@ \t\r\n", at + 3);
    if (end != text.npos && text[end] == '@') return true;
  }
  return false;
}

// A set of a few names, asked for each name of a checkout: most are not in it, and their length and
// first character say so.
class NameSet {
 public:
  explicit NameSet(std::set<std::string_view> names) : names_(std::move(names)) {
    for (const std::string_view name : names_) may_[PlaceOf(name)] = true;
  }
  bool contains(std::string_view name) const {
    return may_[PlaceOf(name)] && names_.contains(name);
  }

 private:
  static constexpr size_t kLengths = 32;
  static size_t PlaceOf(std::string_view name) {
    return static_cast<unsigned char>(name[0]) * kLengths + name.size() % kLengths;
  }

  std::set<std::string_view> names_;
  std::bitset<256 * kLengths> may_;
};

std::set<std::string_view> DirectoryNames() {
  std::set<std::string_view> names;
  for (const policy::CredentialPlace& place : policy::kCredentialPlaces) {
    if ((place.uses & kWithheld) == 0) continue;
    std::string_view path = place.path;
    for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/')) {
      names.insert(path.substr(0, slash));
      path.remove_prefix(slash + 1);
    }
    if ((place.uses & policy::kWithhold) != 0) names.insert(path);
  }
  return names;
}

std::set<std::string_view> LastNames() {
  std::set<std::string_view> names;
  for (const policy::CredentialPlace& place : policy::kCredentialPlaces) {
    if ((place.uses & kWithheld) == 0) continue;
    names.insert(place.path.substr(place.path.rfind('/') + 1));
  }
  return names;
}

}  // namespace

bool MayName(std::string_view name) {
  static const NameSet last(LastNames());
  return last.contains(name) || IsGoogleCredential(name);
}

bool MayNameDirectory(std::string_view name) {
  static const NameSet parts(DirectoryNames());
  return parts.contains(name);
}

bool IsGitConfig(std::string_view name) { return name == "config" || name == "config.worktree"; }

bool MayNameInGit(std::string_view name) {
  return name == "credentials" || (name.starts_with("config") && !IsGitConfig(name));
}

NamedCredential JudgeName(std::string_view path) {
  if (EndsInPlace(path, policy::kWithhold)) return NamedCredential::kYes;
  if (IsGoogleCredential(path.substr(path.rfind('/') + 1))) return NamedCredential::kYes;
  return EndsInPlace(path, policy::kWithholdIfSecret) ? NamedCredential::kIfSecret
                                                      : NamedCredential::kNo;
}

bool IsCredentialDirectory(std::string_view path) { return EndsInPlace(path, policy::kWithhold); }

std::string PartsThatCount(std::string_view path) {
  constexpr ptrdiff_t kPartsMax = 3;  // But for the file's name.
  static_assert(std::all_of(policy::kCredentialPlaces.begin(), policy::kCredentialPlaces.end(),
                            [](const policy::CredentialPlace& place) {
                              return (place.uses & kWithheld) == 0 ||
                                     std::count(place.path.begin(), place.path.end(), '/') <=
                                         kPartsMax;
                            }));
  size_t from = path.size();
  for (ptrdiff_t parts = 0; from > 0 && parts < kPartsMax; ++parts) {
    const size_t slash = from < 2 ? path.npos : path.rfind('/', from - 2);
    const size_t begin = slash == path.npos ? 0 : slash + 1;
    std::string_view part = path.substr(begin, from - begin);
    if (part.ends_with('/')) part.remove_suffix(1);
    if (!MayNameDirectory(part)) break;
    from = begin;
  }
  return std::string(path.substr(from));
}

bool SeemsSecret(std::string_view text) {
  if (HasUserInfo(text)) return true;
  const std::string lower = ascii::LowerCase(text);
  return std::any_of(kCredentialWords.begin(), kCredentialWords.end(),
                     [&](std::string_view word) { return lower.find(word) != lower.npos; });
}

}  // namespace run
