// SPDX-License-Identifier: Apache-2.0
// The names under which programs keep credentials, as policy/model/credential_places.h lists them.
// Quick: asked about each name in a checkout. Pure.
#pragma once

#include <string>
#include <string_view>

namespace run {

// Returns whether a file called `name` may hold a credential, by its name alone.
bool MayName(std::string_view name);

// Returns whether a directory called `name` may be a part of the path of such a file.
bool MayNameDirectory(std::string_view name);

bool IsGitConfig(std::string_view name);

// Returns whether a file called `name` may hold one in a git directory: what `git credential-store
// --file` keeps there, and copies of its configuration.
bool MayNameInGit(std::string_view name);

enum class NamedCredential {
  kNo,
  kIfSecret,  // A file of settings: only if it seems to hold one.
  kYes,
};
// `path` is that of a file in a checkout: what it ends in counts.
NamedCredential JudgeName(std::string_view path);

// Returns whether all files in the directory `path` hold credentials, by its name.
bool IsCredentialDirectory(std::string_view path);

// Returns the last parts of the directory `path` that count for a name in it.
std::string PartsThatCount(std::string_view path);

// Returns whether `text`, of a file of settings, seems to hold a credential.
bool SeemsSecret(std::string_view text);

}  // namespace run
