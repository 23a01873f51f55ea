// SPDX-License-Identifier: Apache-2.0
#include "starter/placeholders.h"

#include <dirent.h>

#include <algorithm>
#include <memory>

#include "base/sys.h"
#include "starter/forge.h"

namespace starter {
namespace {

constexpr size_t kFilesMax = 1000;
constexpr std::string_view kProject = "/agentic-ci";

// Returns the part of a line before a comment, which begins at a "#" behind a blank.
std::string_view WithoutComment(std::string_view line) {
  for (size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1)) {
    if (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t') return line.substr(0, at);
  }
  return line;
}

bool IsWordByte(char c) { return c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

// Returns where `word` stands as a whole, at `from` or behind it; npos if nowhere.
size_t FindWord(std::string_view line, std::string_view word, size_t from = 0) {
  for (size_t at = line.find(word, from); at != std::string_view::npos;
       at = line.find(word, at + 1)) {
    const bool begins = at == 0 || !IsWordByte(line[at - 1]);
    const size_t end = at + word.size();
    if (begins && (end == line.size() || !IsWordByte(line[end]))) return at;
  }
  return std::string_view::npos;
}

// `begin` is where the line begins in its text.
void FindIn(std::string_view line, int number, size_t begin, std::vector<Placeholder>* found) {
  auto add = [&](std::string_view word, size_t at) {
    if (at == std::string_view::npos) return;
    found->push_back({std::string(word), number, static_cast<int>(at) + 1, begin + at});
  };
  const size_t project = line.find(kProject);
  if (project != std::string_view::npos) {
    for (std::string_view word : {"OWNER", "GROUP"}) {
      const size_t at = FindWord(line.substr(0, project), word);
      if (at != std::string_view::npos && at + word.size() == project) add(word, at);
    }
    const size_t commit = FindWord(line, "COMMIT", project);
    if (commit != std::string_view::npos && line[commit - 1] == '@') add("COMMIT", commit);
  }
  if (line.find("image:") != std::string_view::npos) add("IMAGE", FindWord(line, "IMAGE"));
}

}  // namespace

std::vector<Placeholder> FindPlaceholders(std::string_view text) {
  std::vector<Placeholder> found;
  size_t begin = 0;
  for (int number = 1; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    FindIn(WithoutComment(text.substr(begin, end - begin)), number, begin, &found);
    begin = end + 1;
  }
  return found;
}

std::string FillRelease(std::string text, std::string_view path, std::string_view commit) {
  if (path.ends_with(kProject)) path.remove_suffix(kProject.size());
  std::vector<Placeholder> found = FindPlaceholders(text);
  for (size_t i = found.size(); i-- > 0;) {  // From the end, so that places before stay true.
    const Placeholder& one = found[i];
    if (one.word == "IMAGE") continue;
    text.replace(one.at, one.word.size(), one.word == "COMMIT" ? commit : path);
  }
  return text;
}

std::vector<std::string> WorkflowFiles(const std::string& top) {
  std::vector<std::string> files;
  for (const Forge& forge : Forges()) {
    if (!forge.second_file.empty()) {
      for (std::string_view file : {forge.file, forge.second_file}) {
        if (sys::Exists(top + "/" + std::string(file))) files.emplace_back(file);
      }
      continue;
    }
    const std::string inside(forge.file.substr(0, forge.file.rfind('/')));
    std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir((top + "/" + inside).c_str()), ::closedir);
    while (stream != nullptr && files.size() < kFilesMax) {
      const dirent* entry = ::readdir(stream.get());
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      const bool yaml = name.ends_with(".yml") || name.ends_with(".yaml");
      if (yaml) files.push_back(inside + "/" + std::string(name));
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace starter
