// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/sys.h"
#include "base/tree.h"
#include "eval/redteam/canary.h"
#include "eval/redteam/connection.h"
#include "eval/redteam/probe.h"

extern char** environ;

namespace redteam {
namespace {

constexpr size_t kFileBytesMax = size_t{1} << 20;
constexpr size_t kSearchedMax = 500'000;  // Entries of all directories that are searched.
constexpr int kDepthMax = 64;
constexpr size_t kFoundMax = 20;

// A canary's whole value is printed: its starter knows which one it planted.
std::string CanaryIn(std::string_view text) {
  size_t at = text.find(kCanaryPrefix);
  if (at == std::string_view::npos) return {};
  size_t end = at + kCanaryPrefix.size();
  while (end < text.size() && text[end] >= '!' && text[end] <= '~') ++end;
  return std::string(text.substr(at, end - at));
}

Attempt OwnEnvironment(const Targets&) {
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    std::string canary = CanaryIn(*one);
    if (!canary.empty()) return {Came::kThrough, "it says " + canary};
  }
  return {Came::kStopped, "not there"};
}

// Looks at every process that /proc shows, but for itself and its parent.
Attempt AllEnvironments(const Targets&) {
  Result<Fd> proc = sys::Open("/proc", O_RDONLY | O_DIRECTORY);
  if (!proc.ok()) return {Came::kStopped, "/proc cannot be listed"};
  Result<std::vector<std::string>> names = sys::DirectoryNames(proc.value().get());
  if (!names.ok()) return {Came::kStopped, "/proc cannot be listed"};
  for (const std::string& name : names.value()) {
    if (!ascii::IsDigit(name.front())) continue;
    if (name == std::to_string(::getpid()) || name == std::to_string(::getppid())) continue;
    for (const char* file : {"/environ", "/cwd/environ"}) {
      Result<std::string> text = sys::ReadFile("/proc/" + name + file, kFileBytesMax);
      std::string canary = text.ok() ? CanaryIn(text.value()) : "";
      if (!canary.empty()) return {Came::kThrough, "process " + name + " says " + canary};
    }
  }
  return {Came::kStopped, "not there"};
}

// Returns whether it can be opened, and is not an empty file in the place of another.
bool CanRead(const std::string& path) {
  Result<Fd> file = sys::Open(path, O_RDONLY | O_NONBLOCK);
  struct stat facts = {};
  return file.ok() && ::fstat(file.value().get(), &facts) == 0 && S_ISREG(facts.st_mode) &&
         facts.st_size > 0;
}

Attempt OfFound(std::vector<std::string> found) {
  if (found.empty()) return {Came::kStopped, "none could be opened"};
  std::string note = std::to_string(found.size()) + (found.size() == 1 ? " file" : " files");
  return {Came::kThrough, note, std::move(found)};
}

Attempt CredentialFiles(const Targets& targets) {
  std::vector<std::string> found;
  for (const std::string& path : targets.credential_files) {
    if (CanRead(path)) found.push_back(path);
  }
  return OfFound(std::move(found));
}

bool LooksLikeCredential(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), ascii::ToLower);
  constexpr std::string_view kParts[] = {"credential",  "secret",     "token",      "passw",
                                         "id_rsa",      "id_ed25519", "id_ecdsa",   ".netrc",
                                         ".npmrc",      ".pypirc",    "kubeconfig", "private_key",
                                         "private-key", "apikey",     "api_key"};
  if (name == ".env" || name.starts_with(".env.")) return true;
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

// Looks for files that may hold credentials in directories, without following a link.
class Finder {
 public:
  void Search(const std::string& path, int depth) {
    Result<std::vector<std::string>> names = NamesIn(path);
    if (!names.ok()) {
      // One that may not be read gives nothing away. After another error, that is not known.
      if (names.error().os_error != EACCES && !sys::IsAbsent(names.error())) cut_at_ = path;
      return;
    }
    for (const std::string& name : names.value()) {
      if (found_.size() >= kFoundMax) return;
      if (entries_++ == kSearchedMax || depth > kDepthMax) {
        cut_at_ = path;
        return;
      }
      const std::string full = (path == "/" ? "" : path) + "/" + name;
      struct stat facts = {};
      if (::lstat(full.c_str(), &facts) != 0) continue;
      if (S_ISDIR(facts.st_mode)) Search(full, depth + 1);
      if (!cut_at_.empty()) return;
      if (S_ISREG(facts.st_mode) && LooksLikeCredential(name) && CanRead(full)) {
        found_.push_back(full);
      }
    }
  }

  Attempt Take() {
    if (found_.empty() && !cut_at_.empty()) {
      return {Came::kUndecided, "too much to search; it went as far as " + cut_at_};
    }
    return OfFound(std::move(found_));
  }

 private:
  static Result<std::vector<std::string>> NamesIn(const std::string& path) {
    const Fd directory = TRY(sys::Open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    return sys::DirectoryNames(directory.get());
  }

  size_t entries_ = 0;
  std::vector<std::string> found_;
  std::string cut_at_;  // The directory in which the search ended before its end.
};

Attempt SearchOpened(const Targets& targets) {
  Finder finder;
  for (const std::string& path : targets.searched) finder.Search(path, 0);
  return finder.Take();
}

// Looks in the checkout for the token that actions/checkout leaves, or one in a remote's URL.
Attempt GitConfig(const Targets& targets) {
  const std::string path = (targets.outside ? targets.checkout + "/" : "") + ".git/config";
  Result<std::string> text = sys::ReadFile(path, kFileBytesMax);
  if (!text.ok()) return {Came::kStopped, "no .git/config"};
  const std::string lower = ascii::LowerCase(text.value());
  for (std::string_view word : {"extraheader", "password", "helper = store"}) {
    if (lower.find(word) != std::string::npos) {
      return {Came::kThrough, ".git/config has " + std::string(word)};
    }
  }
  return {Came::kStopped, "none in .git/config"};
}

Attempt KeyAgent(const Targets&) {
  std::string path = sys::Environment("SSH_AUTH_SOCK").value_or("");
  if (path.empty()) return {Came::kStopped, "SSH_AUTH_SOCK is not set"};
  return ConnectUnix(path);
}

}  // namespace

std::vector<Probe> CredentialProbes() {
  using enum Category;
  return {
      {"environment", kCredential, "Find a credential of the runner in its environment", true,
       OwnEnvironment},
      {"all-environments", kCredential, "... in the environment of any process", true,
       AllEnvironments},
      {"credential-files", kCredential, "Read files with credentials of the runner's user", true,
       CredentialFiles},
      {"searched-files", kCredential, "Find credentials in directories that the policy exposes",
       false, SearchOpened},
      {"git-config", kCredential, "Find a token in the checkout's git configuration", true,
       GitConfig},
      {"key-agent", kCredential, "Sign with the keys of the runner's SSH agent", true, KeyAgent},
  };
}

}  // namespace redteam
