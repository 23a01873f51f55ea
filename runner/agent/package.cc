// SPDX-License-Identifier: Apache-2.0
#include "agent/package.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/ascii.h"
#include "codec/data/json.h"
#include "codec/text/base64.h"

namespace agent {
namespace {

using codec::Json;

constexpr codec::JsonBounds kLockBounds = {.bytes_max = size_t{8} << 20};
constexpr size_t kNameBytesMax = 214;  // npm's own bound.

bool IsNamePart(std::string_view part) {
  auto fits = [](char c) {
    return ascii::IsLower(c) || ascii::IsDigit(c) || c == '-' || c == '.' || c == '_';
  };
  return !part.empty() && part.front() != '.' && part.front() != '-' &&
         std::all_of(part.begin(), part.end(), fits);
}

bool IsPackageName(std::string_view name) {
  if (name.size() > kNameBytesMax) return false;
  if (!name.starts_with('@')) return IsNamePart(name);
  const size_t slash = name.find('/');
  return slash != std::string_view::npos && IsNamePart(name.substr(1, slash - 1)) &&
         IsNamePart(name.substr(slash + 1));
}

// Three numbers, and what may stand behind them: "1.2.3-beta.1".
bool IsExactVersion(std::string_view version) {
  for (int dots = 0; dots < 3; ++dots) {
    size_t digits = 0;
    while (digits < version.size() && ascii::IsDigit(version[digits])) ++digits;
    if (digits == 0) return false;
    version.remove_prefix(digits);
    if (dots == 2) break;
    if (!version.starts_with('.')) return false;
    version.remove_prefix(1);
  }
  auto fits = [](char c) {
    return ascii::IsAlpha(c) || ascii::IsDigit(c) || c == '.' || c == '-' || c == '+';
  };
  return version.empty() || ((version.front() == '-' || version.front() == '+') &&
                             std::all_of(version.begin(), version.end(), fits));
}

Error NotPinned(const std::string& entry, const char* why) {
  return {Code::kInvalid, "the lock file does not pin '" + entry + "': " + why};
}

// Returns whether one of the words of `integrity` is a whole SHA-512 digest: npm passes over one
// that is not, and verifies by the strongest of the others.
bool HasSha512(std::string_view integrity) {
  constexpr std::string_view kName = "sha512-";
  constexpr size_t kDigestBytes = 64;
  while (!integrity.empty()) {
    const std::string_view word = integrity.substr(0, integrity.find(' '));
    integrity.remove_prefix(std::min(word.size() + 1, integrity.size()));
    if (!word.starts_with(kName)) continue;
    const std::optional<std::string> digest = codec::DecodeBase64(word.substr(kName.size()));
    if (digest.has_value() && digest->size() == kDigestBytes) return true;
  }
  return false;
}

// Anything but `true` and `false` is true to npm, too.
bool IsSet(const Json& entry, std::string_view key) {
  const Json* value = entry.Find(key);
  return value != nullptr && (entry.BooleanAt(key) || !value->boolean());
}

// One entry of `packages`.
Status CheckEntry(const std::string& path, const Json& entry) {
  if (!path.starts_with("node_modules/") || IsSet(entry, "link")) {
    return NotPinned(path, "it is a directory of the repository");
  }
  if (entry.BooleanAt("inBundle")) return Ok();  // Part of another one's archive.
  const std::string resolved = entry.StringAt("resolved");
  if (!resolved.empty() && !resolved.starts_with("https://")) {
    return NotPinned(path, "it comes from no registry");
  }
  if (!HasSha512(entry.StringAt("integrity"))) {
    return NotPinned(path, "it has no SHA-512 digest");
  }
  return Ok();
}

Result<Json> ParseLock(const Package& package) {
  Result<Json> lock = codec::ParseJson(package.lock, kLockBounds);
  if (!lock.ok()) return Error{Code::kInvalid, "not a lock file: " + lock.error().what};
  const int64_t version = lock.value().IntegerAt("lockfileVersion");
  const Json* packages = lock.value().Find("packages");
  if ((version != 2 && version != 3) || packages == nullptr || packages->object() == nullptr) {
    return Error{Code::kInvalid, "not a lock file of npm 7 or later",
                 "npm install --package-lock-only " + package.name + "@" + package.version};
  }
  return lock;
}

}  // namespace

Result<Package> ParsePackage(std::string_view text) {
  const size_t at = text.rfind('@');
  if (at == std::string_view::npos || at == 0 || !IsPackageName(text.substr(0, at)) ||
      !IsExactVersion(text.substr(at + 1))) {
    return Error{Code::kInvalid, "'" + std::string(text) + "' is not a package with its version",
                 "npm: \"@openai/codex@1.2.3\""};
  }
  Package package;
  package.name = text.substr(0, at);
  package.version = text.substr(at + 1);
  return package;
}

Status CheckLock(const Package& package) {
  Json lock = TRY(ParseLock(package));
  const Json& packages = *lock.Find("packages");
  const Json* wanted = packages.Find("node_modules/" + package.name);
  if (wanted == nullptr || wanted->StringAt("version") != package.version) {
    return Error{Code::kInvalid, "the lock file is not for " + package.name + "@" + package.version,
                 "npm install --package-lock-only " + package.name + "@" + package.version};
  }
  for (const Json::Member& entry : *packages.object()) {
    if (!entry.first.empty()) TRY(CheckEntry(entry.first, entry.second));
  }
  return Ok();
}

Result<std::string> ManifestOf(const Package& package) {
  Json lock = TRY(ParseLock(package));
  Json manifest = Json::EmptyObject();
  const Json* root = lock.Find("packages")->Find("");
  for (const char* key :
       {"name", "version", "dependencies", "devDependencies", "optionalDependencies"}) {
    const Json* value = root == nullptr ? nullptr : root->Find(key);
    if (value != nullptr) manifest.Set(key, *value);
  }
  return codec::RenderJson(manifest);
}

}  // namespace agent
