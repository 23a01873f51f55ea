// SPDX-License-Identifier: Apache-2.0
#include "codec/text/git_config.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"

namespace codec {
namespace {

// Sections without a place for a credential or for a program to start.
constexpr std::array<std::string_view, 8> kSections = {"remote", "branch",    "user", "extensions",
                                                       "init",   "submodule", "gc",   "index"};
// Of core, only how the repository is stored; not sshCommand, askPass, fsmonitor, hooksPath, ...
constexpr std::array<std::string_view, 8> kCoreKeys = {"repositoryformatversion",
                                                       "filemode",
                                                       "bare",
                                                       "logallrefupdates",
                                                       "ignorecase",
                                                       "symlinks",
                                                       "autocrlf",
                                                       "precomposeunicode"};
// Of a remote, what tells where and what; not its proxy, its helper or its uploadpack.
constexpr std::array<std::string_view, 5> kRemoteKeys = {"url", "pushurl", "fetch", "push",
                                                         "tagopt"};

std::string_view Trim(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), ascii::ToLower);
  return lower;
}

template <size_t N>
bool Contains(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool Kept(std::string_view section, std::string_view key) {
  if (section == "core") return Contains(kCoreKeys, key);
  if (section == "remote") return Contains(kRemoteKeys, key);
  return Contains(kSections, section);
}

// "https://user:token@host/x" -> "https://host/x".
std::string WithoutUserInfo(std::string_view url) {
  size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::string(url);
  size_t host = scheme + 3;
  size_t slash = std::min(url.find('/', host), url.size());
  size_t at = url.substr(0, slash).rfind('@');
  if (at == std::string_view::npos || at < host) return std::string(url);
  return std::string(url.substr(0, host)) + std::string(url.substr(at + 1));
}

}  // namespace

std::string RedactGitConfig(std::string_view text) {
  std::string kept;
  std::string section;
  std::string header;  // Written once one of its keys is kept.
  bool continued = false;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    bool part_of_last = continued;
    continued = line.ends_with('\\');
    if (part_of_last || line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      size_t close = line.rfind(']');
      size_t name_end = line.find_first_of(" \t\".]", 1);
      section = name_end == std::string_view::npos ? "" : Lower(line.substr(1, name_end - 1));
      header = std::string(line) + "\n";
      // Something behind the bracket: legal for git, and not worth understanding here.
      if (close + 1 != line.size()) section.clear();
      continue;
    }
    size_t equals = line.find('=');
    std::string key = Lower(Trim(line.substr(0, std::min(equals, line.size()))));
    // A value that goes on in the next line is dropped: its other half was not looked at.
    if (continued || !Kept(section, key)) continue;
    kept += std::exchange(header, "");
    std::string value = equals == std::string_view::npos
                            ? ""
                            : " = " + WithoutUserInfo(Trim(line.substr(equals + 1)));
    kept += "\t" + key + value + "\n";
  }
  return kept;
}

}  // namespace codec
