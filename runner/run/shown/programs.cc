// SPDX-License-Identifier: Apache-2.0
#include "run/shown/programs.h"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <string_view>

#include "sandbox/mask.h"

namespace run {
namespace {

using sandbox::Beneath;
using sandbox::PathKind;

constexpr size_t kLinksMax = 40;        // The links that the kernel follows.
constexpr size_t kNamesMax = 4096;      // The names in one directory on PATH that are looked at.
constexpr size_t kShownMax = 256;       // Each is a mount.
constexpr size_t kInterpretersMax = 4;  // A script's interpreter may be a script.

// Shown by every plan.
constexpr std::array<std::string_view, 6> kSystem = {"/usr", "/bin", "/sbin",
                                                     "/lib", "/app", "/etc"};

// The parts of a prefix that programs in its bin/ load. Its other directories may be anybody's.
constexpr std::array<std::string_view, 5> kPrefixParts = {"lib", "lib64", "libexec", "include",
                                                          "share"};

// The entries by which a prefix is one installation, shown as a whole: a virtual environment,
// conda, pyenv and similar tools, Go, Java, Maven.
constexpr std::array<std::string_view, 6> kWholeMarks = {"pyvenv.cfg", "conda-meta", "shims",
                                                         "pkg/tool",   "jmods",      "boot"};

std::string Above(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

std::string_view LeafOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool HoldsPrograms(const std::string& directory) {
  std::string_view name = LeafOf(directory);
  return name == "bin" || name == "sbin" || name == "shims" || name == "libexec";
}

// "/a//b/" -> "/a/b".
std::string WithoutEmptyParts(const std::string& path) {
  std::string clean;
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '/');) {
    if (!part.empty() && part != ".") clean += "/" + part;
  }
  return clean;
}

class ProgramFinder {
 public:
  ProgramFinder(const ProgramSearch& search, const sandbox::HostView& host)
      : search_(search), host_(host) {}

  Programs Find();

 private:
  // The origin of a wish to show something: a person who starts it, or a PATH that may be long and
  // old.
  enum class By { kCommand, kPath };

  void AddPlace(const std::string& place);
  void AddLinkedPrograms(const std::string& directory);
  void AddStarted();
  void AddProgram(const std::string& path, By by);
  void AddLinks(const std::string& path);
  void AddPrefix(const std::string& directory, By by);
  void AddInterpreter(const std::string& script, By by);
  void AddRustup(const std::string& directory);
  bool AddDirectory(const std::string& path, By by);
  void Add(const std::string& path);

  std::string Real(const std::string& path) const;
  bool IsPackaged(const std::string& path) const;
  bool IsVisible(const std::string& path) const;
  std::string WhyNot(const std::string& directory, By by) const;
  std::string Lookup(const std::string& name) const;

  const ProgramSearch& search_;
  const sandbox::HostView& host_;
  std::vector<std::string> places_;  // The absolute places of the caller's PATH.
  std::set<std::string> seen_;       // Programs that were followed.
  size_t interpreters_ = 0;
  Programs programs_;
};

// Returns whether a canonical path lies in the agent's package.
bool ProgramFinder::IsPackaged(const std::string& path) const {
  return !search_.package.empty() && Beneath(path, search_.package);
}

// The path without links; empty if nothing is there, or if a link of the checkout leads there: its
// author must not decide what of the host is shown.
std::string ProgramFinder::Real(const std::string& path) const {
  std::string at;
  std::string left = path;
  size_t links = 0;
  bool packaged = false;  // True once a link of the package was followed.
  while (!left.empty()) {
    size_t slash = left.find('/');
    std::string part = left.substr(0, slash);
    left = slash == std::string::npos ? "" : left.substr(slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      at = at.empty() || Above(at) == "/" ? "" : Above(at);
      continue;
    }
    std::string next = at + "/" + part;
    PathKind kind = host_.kind(next);
    if (kind == PathKind::kMissing) return {};
    if (kind != PathKind::kSymlink) {
      at = next;
      continue;
    }
    if (++links > kLinksMax || Beneath(next, search_.checkout)) return {};
    packaged = packaged || IsPackaged(next);
    std::string text = host_.link(next);
    if (text.starts_with('/')) at.clear();
    left = text + "/" + left;
  }
  if (packaged && !IsPackaged(at)) return {};
  return at.empty() ? "/" : at;
}

bool ProgramFinder::IsVisible(const std::string& path) const {
  // The sandbox never has the host's files in its own places, also where a policy names them.
  bool by_policy = sandbox::IsBeneathAny(path, search_.shown) && !sandbox::IsPrivate(path);
  return by_policy || Beneath(path, search_.checkout) ||
         sandbox::IsBeneathAny(path, programs_.shown) ||
         std::any_of(kSystem.begin(), kSystem.end(),
                     [&](std::string_view top) { return Beneath(path, std::string(top)); });
}

// Why a canonical directory cannot be shown; empty if it can.
std::string ProgramFinder::WhyNot(const std::string& directory, By by) const {
  if (directory == "/" || Above(directory) == "/") return "a top-level directory";
  std::string above = Above(directory);
  if (above == "/home" || above == "/Users" ||
      (!host_.home.empty() && Beneath(host_.home, directory))) {
    return "a home directory, or an ancestor of one";
  }
  if (Beneath(search_.checkout, directory)) return "it contains the checkout";
  if (by == By::kCommand) return {};
  if (sandbox::IsPrivate(directory)) return "the sandbox has its own directory there";
  if (sandbox::IsSecret(directory, host_, search_.secrets)) return "a location of credentials";
  bool open = (host_.mode(directory) & 02) != 0;
  if (open && !sandbox::IsBeneathAny(directory, search_.tool_caches)) return "world-writable";
  return {};
}

void ProgramFinder::Add(const std::string& path) {
  if (!IsVisible(path) && programs_.shown.size() < kShownMax) programs_.shown.push_back(path);
}

bool ProgramFinder::AddDirectory(const std::string& path, By by) {
  std::string real = Real(path);
  if (host_.kind(real) != PathKind::kDirectory || !WhyNot(real, by).empty()) return false;
  Add(real);
  if (path != real) Add(path);
  return true;
}

// Adds what the programs of `directory`, a bin/ of some prefix, have beside them.
void ProgramFinder::AddPrefix(const std::string& directory, By by) {
  if (!HoldsPrograms(directory)) return;
  std::string prefix = Above(directory);
  if (IsVisible(prefix) || !WhyNot(prefix, by).empty()) return;
  bool whole = std::any_of(kWholeMarks.begin(), kWholeMarks.end(), [&](std::string_view mark) {
    return host_.kind(prefix + "/" + std::string(mark)) != PathKind::kMissing;
  });
  if (whole) {
    AddDirectory(prefix, by);
    // The interpreter that a virtual environment was made of.
    if (host_.kind(prefix + "/pyvenv.cfg") == PathKind::kFile) {
      AddProgram(prefix + "/bin/python", by);
    }
    return;
  }
  for (std::string_view part : kPrefixParts) {
    // ~/.local/share has what desktops and agents keep: key rings, sessions.
    if (part == "share" && LeafOf(prefix) == ".local") continue;
    AddDirectory(prefix + "/" + std::string(part), by);
  }
}

// Each link on the way from `path` to the file that it means.
void ProgramFinder::AddLinks(const std::string& path) {
  std::string at = path;
  for (size_t i = 0; i < kLinksMax && host_.kind(at) == PathKind::kSymlink; ++i) {
    Add(at);
    std::string text = host_.link(at);
    if (text.empty()) return;
    std::string next = text[0] == '/' ? text : Above(at) + "/" + text;
    std::string directory = Real(Above(next));
    if (directory.empty() || Beneath(directory, search_.checkout)) return;
    at = (directory == "/" ? "" : directory) + "/" + std::string(LeafOf(next));
  }
  Add(at);
}

// A file somewhere on the host, with the installation that it belongs to.
void ProgramFinder::AddProgram(const std::string& path, By by) {
  std::string real = Real(path);
  if (host_.kind(real) != PathKind::kFile || !seen_.insert(path).second) return;
  if (Beneath(real, search_.checkout)) return;
  if (by == By::kPath && !IsVisible(real) && !WhyNot(Above(real), by).empty()) return;
  constexpr std::string_view kModules = "/node_modules/";
  size_t modules = real.find(kModules);
  std::string directory = Above(real);
  if (modules != std::string::npos) {
    AddDirectory(real.substr(0, modules + kModules.size() - 1), by);
  } else if (HoldsPrograms(directory)) {
    AddDirectory(directory, by);
    AddPrefix(directory, by);
  }
  // A virtual environment's or a version's programs are links to elsewhere: its own prefix counts
  // too.
  if (Above(path) != directory) AddPrefix(Above(path), by);
  AddLinks(path);
  AddInterpreter(real, by);
}

// "#!/path argument", or "#!/usr/bin/env name".
void ProgramFinder::AddInterpreter(const std::string& script, By by) {
  std::string head = host_.head(script);
  if (!head.starts_with("#!") || interpreters_ == kInterpretersMax) return;
  ++interpreters_;
  std::istringstream words(head.substr(2, head.find('\n') - 2));
  std::string program;
  words >> program;
  if (LeafOf(program) == "env") {
    std::string word;
    while (words >> word && (word[0] == '-' || word.find('=') != std::string::npos)) {
    }
    program = Lookup(word);
  } else if (IsPackaged(script)) {
    program.clear();
  }
  if (program.starts_with('/')) AddProgram(program, IsPackaged(script) ? By::kPath : by);
  --interpreters_;
}

// The first place of PATH, in the sandbox's order, that has a program of this name.
std::string ProgramFinder::Lookup(const std::string& name) const {
  if (name.empty() || name.find('/') != std::string::npos) return name;
  for (const std::string& place : places_) {
    std::string real = Real(place + "/" + name);
    if (!real.empty() && host_.kind(real) == PathKind::kFile) return place + "/" + name;
  }
  return {};
}

void ProgramFinder::AddLinkedPrograms(const std::string& directory) {
  size_t looked_at = 0;
  for (const std::string& name : host_.list(directory)) {
    if (++looked_at > kNamesMax) return;
    std::string path = directory + "/" + name;
    if (host_.kind(path) != PathKind::kSymlink) continue;
    if (!IsVisible(Real(path))) AddProgram(path, By::kPath);
  }
}

// rustup's programs ask where its toolchains are, and HOME is another inside.
void ProgramFinder::AddRustup(const std::string& directory) {
  bool absent = host_.kind(directory + "/rustup") == PathKind::kMissing;
  if (absent || IsPackaged(directory) || !programs_.variables.empty()) return;
  std::string home = search_.rustup_home;
  if (home.empty()) home = Above(Above(directory)) + "/.rustup";
  if (IsVisible(home) || AddDirectory(home, By::kPath)) {
    programs_.variables.emplace_back("RUSTUP_HOME", home);
  }
}

void ProgramFinder::AddPlace(const std::string& place) {
  std::string real = Real(place);
  if (real.empty() && !host_.real(place).empty()) {
    programs_.notes.push_back("PATH without " + place +
                              ": it is reached through a link in the checkout");
  }
  if (host_.kind(real) != PathKind::kDirectory) return;
  auto keep = [&](const std::string& path) {
    programs_.search_path += (programs_.search_path.empty() ? "" : ":") + path;
  };
  // The checkout must not decide what of the host is shown.
  if (Beneath(real, search_.checkout)) return keep(real);
  if (!IsVisible(real)) {
    std::string why = WhyNot(real, By::kPath);
    if (!why.empty()) {
      programs_.notes.push_back("PATH without " + place + ": " + why);
      return;
    }
    Add(real);
    AddPrefix(real, By::kPath);
    AddLinkedPrograms(real);
  }
  AddRustup(real);
  // Under the name that PATH has for it, too: scripts may have it written into them.
  if (sandbox::IsPrivate(place)) return keep(real);
  if (place != real) Add(place);
  keep(place);
}

void ProgramFinder::AddStarted() {
  if (search_.started.empty()) return;
  AddProgram(search_.started, By::kCommand);
  std::string real = Real(search_.started);
  if (search_.known_agent && host_.kind(real) == PathKind::kFile) {
    AddDirectory(Above(real), By::kCommand);
  }
}

Programs ProgramFinder::Find() {
  std::istringstream parts(search_.search_path);
  for (std::string part; std::getline(parts, part, ':');) {
    std::string clean = part.starts_with('/') ? WithoutEmptyParts(part) : "";
    if (part == "/") clean = "/";
    if (clean.empty()) {
      programs_.notes.push_back("PATH without '" + part + "': not absolute");
    } else if (std::find(places_.begin(), places_.end(), clean) == places_.end()) {
      places_.push_back(std::move(clean));
    }
  }
  for (const std::string& place : places_) AddPlace(place);
  AddStarted();
  return std::move(programs_);
}

}  // namespace

Programs FindPrograms(const ProgramSearch& search, const sandbox::HostView& host) {
  return ProgramFinder(search, host).Find();
}

}  // namespace run
