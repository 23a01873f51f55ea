// SPDX-License-Identifier: Apache-2.0
#include "codec/text/git_config.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/ascii.h"

namespace codec {
namespace {

// Sections without a place for a credential or for a program to start.
constexpr std::array<std::string_view, 8> kSections = {"remote", "branch",    "user", "extensions",
                                                       "init",   "submodule", "gc",   "index"};
// The keys of core that say how the repository is stored; not sshCommand, askPass, fsmonitor, ...
constexpr std::array<std::string_view, 8> kCoreKeys = {"repositoryformatversion",
                                                       "filemode",
                                                       "bare",
                                                       "logallrefupdates",
                                                       "ignorecase",
                                                       "symlinks",
                                                       "autocrlf",
                                                       "precomposeunicode"};
// The keys of a remote that say where and what; not its proxy, its helper or its uploadpack.
constexpr std::array<std::string_view, 5> kRemoteKeys = {"url", "pushurl", "fetch", "push",
                                                         "tagopt"};

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

// Returns core.hooksPath as a path from the working tree, which is at `top`; empty if it leads
// elsewhere, or has what git reads otherwise (an escape, a comment, `~`).
std::string HooksInTree(std::string_view path, std::string_view top) {
  if (path.size() > 1 && path.front() == '"' && path.back() == '"') {
    path = path.substr(1, path.size() - 2);
  }
  if (!top.empty() && path.starts_with(top) && path.substr(top.size()).starts_with('/')) {
    path.remove_prefix(top.size() + 1);
  }
  const std::string framed = "/" + std::string(path) + "/";
  const bool plain = std::all_of(path.begin(), path.end(), [](char c) {
    return ascii::IsAlphanumeric(c) ||
           std::string_view("/._-+@ ").find(c) != std::string_view::npos;
  });
  const bool leads_out = path.starts_with('/') || framed.find("/../") != std::string::npos;
  return path.empty() || !plain || leads_out ? "" : std::string(path);
}

// One "key = value", or a key alone.
struct Setting {
  std::string section;    // The section in lower case.
  std::string_view head;  // The section's whole line.
  std::string key;        // The key in lower case.
  std::optional<std::string_view> value;
};

// Gives the settings that one line each is enough to understand, for what is kept.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool Next(Setting* setting) {
    while (!text_.empty()) {
      const size_t end = std::min(text_.find('\n'), text_.size());
      const std::string_view line = ascii::Trimmed(text_.substr(0, end));
      text_.remove_prefix(std::min(end + 1, text_.size()));
      const bool part_of_last = continued_;
      continued_ = line.ends_with('\\');
      if (part_of_last || line.empty() || line[0] == '#' || line[0] == ';') continue;
      if (line[0] == '[') {
        Enter(line);
        continue;
      }
      if (continued_) continue;
      const size_t equals = line.find('=');
      setting->section = section_;
      setting->head = head_;
      setting->key = ascii::LowerCase(ascii::Trimmed(line.substr(0, equals)));
      setting->value.reset();
      if (equals != line.npos) setting->value = ascii::Trimmed(line.substr(equals + 1));
      return true;
    }
    return false;
  }

 private:
  void Enter(std::string_view line) {
    const size_t name_end = line.find_first_of(" \t\".]", 1);
    section_ = name_end == line.npos ? "" : ascii::LowerCase(line.substr(1, name_end - 1));
    head_ = line;
    // Something behind the bracket: legal for git, and not worth understanding here.
    if (line.rfind(']') + 1 != line.size()) section_.clear();
  }

  std::string_view text_;
  std::string section_;
  std::string_view head_;
  bool continued_ = false;
};

// A setting as git reads it.
struct WholeSetting {
  std::string section;  // In lower case, without its subsection.
  std::string key;      // In lower case.
  std::optional<std::string> value;
};

// Gives the settings as git reads them: a section's line may go on with a key, and a value has
// quotes, escapes, comments and further lines. Where git would refuse the text, the next line
// follows.
class WholeReader {
 public:
  explicit WholeReader(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  bool Next(WholeSetting* setting) {
    while (!text_.empty()) {
      const char c = Take();
      if (IsSpace(c)) continue;
      if (c == '[') {
        if (!TakeSection()) SkipLine();
      } else if (!ascii::IsAlpha(c)) {
        SkipLine();  // A comment, for one.
      } else {
        setting->section = section_;
        setting->key = ascii::ToLower(c) + TakeName("-");
        if (TakeValue(&setting->value)) return true;
        SkipLine();
      }
    }
    return false;
  }

 private:
  static bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  // The end of the text is the end of a line.
  char Peek() const {
    if (text_.empty() || text_.starts_with("\r\n")) return '\n';
    return text_.front();
  }
  char Take() {
    const char c = Peek();
    text_.remove_prefix(std::min<size_t>(text_.size(), text_.starts_with("\r\n") ? 2 : 1));
    ended_ = c == '\n';
    return c;
  }
  void SkipLine() {
    while (!ended_) Take();
  }
  void SkipBlanks() {
    while (Peek() != '\n' && IsSpace(Peek())) Take();
  }

  std::string TakeName(std::string_view more) {
    std::string name;
    while (ascii::IsAlphanumeric(Peek()) || more.find(Peek()) != more.npos) {
      name += ascii::ToLower(Take());
    }
    return name;
  }

  // Reads the name of a section; its subsection is skipped. Returns false if git would refuse it.
  bool TakeSection() {
    section_ = TakeName("-.");
    section_.resize(std::min(section_.find('.'), section_.size()));
    SkipBlanks();
    if (Peek() == '"') {
      Take();
      for (char c = Take(); c != '"'; c = Take()) {
        if (c == '\\') c = Take();
        if (c == '\n') return false;
      }
    }
    return Take() == ']';
  }

  bool TakeValue(std::optional<std::string>* value) {
    value->reset();
    SkipBlanks();
    char c = Take();
    if (c != '=') return c == '\n';
    std::string& text = value->emplace();
    size_t size = 0;  // Without the blanks at the end.
    bool quoted = false;
    while ((c = Take()) != '\n') {
      if (!quoted && (c == '#' || c == ';')) {
        SkipLine();
        break;
      }
      if (c == '"') {
        quoted = !quoted;
        size = text.size();
      } else if (!quoted && IsSpace(c)) {
        if (!text.empty()) text += c;
      } else {
        if (c == '\\' && !TakeEscaped(&c)) return false;
        if (c != '\n' || !ended_) text += c;
        size = text.size();
      }
    }
    text.resize(size);
    return !quoted;
  }

  // Gives what a backslash means with the next character: a line's end, for one, nothing.
  bool TakeEscaped(char* c) {
    constexpr std::string_view kWritten = "tbn\\\"\n";
    constexpr std::string_view kMeant = "\t\b\n\\\"\n";
    const size_t at = kWritten.find(Take());
    if (at == kWritten.npos) return false;
    *c = kMeant[at];
    return true;
  }

  std::string_view text_;
  std::string section_;
  bool ended_ = true;  // The last character was a line's end.
};

}  // namespace

std::string RedactGitConfig(std::string_view text, std::string_view top) {
  std::string kept;
  Reader reader(text);
  Setting setting;
  const char* written = nullptr;  // The section's line is written once one of its keys is kept.
  while (reader.Next(&setting)) {
    std::string hooks;
    if (setting.section == "core" && setting.key == "hookspath" && setting.value) {
      hooks = HooksInTree(*setting.value, top);
      setting.value = hooks;
    }
    if (hooks.empty() && !Kept(setting.section, setting.key)) continue;
    if (setting.head.data() != written) kept += std::string(setting.head) + "\n";
    written = setting.head.data();
    kept += "\t" + setting.key;
    if (setting.value) kept += " = " + WithoutUserInfo(*setting.value);
    kept += "\n";
  }
  return kept;
}

std::vector<std::string> IncludedGitConfigs(std::string_view text) {
  std::vector<std::string> paths;
  WholeReader reader(text);
  WholeSetting setting;
  while (reader.Next(&setting)) {
    const bool includes = setting.section == "include" || setting.section == "includeif";
    if (!includes || setting.key != "path" || !setting.value) continue;
    if (!setting.value->empty()) paths.push_back(*std::move(setting.value));
  }
  return paths;
}

}  // namespace codec
