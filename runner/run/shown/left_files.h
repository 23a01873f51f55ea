// SPDX-License-Identifier: Apache-2.0
// Finds what earlier steps may have left in the checkout: further repositories, with credentials
// in their configuration, and files by names under which programs keep them: the agent gets
// neither. And what belongs to others, as after `docker run -v $PWD:/work`.
#pragma once

#include <time.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "change/repository.h"
#include "sandbox/plan.h"

namespace run {

inline constexpr char kWithheldRule[] = "withheld-file";  // Of a report's findings about them.
// The notes that a report has about them.
inline constexpr size_t kWithheldNotesMax = 20;

struct LeftFiles {
  std::vector<std::string> repositories;  // Git directories, absolute; without the checkout's own.
  // Relative to the checkout, sorted. Links by such names are followed once, within the checkout.
  std::vector<std::string> credentials;
  // The first entry found that has another owner or group than the checkout, and whose it is:
  // "node_modules belongs to 0:0". Looked at are all directories (but git's of loose objects), the
  // files at the top, and two in each directory: programs leave whole directories.
  std::string foreign;
};

// What a look has seen, by which it is told whether another one could find more: directories, and
// files by such names. Paths are relative to the checkout, or absolute.
struct Seen {
  std::string path;
  timespec changed;  // Its ctime; zero if it changed too lately to be told from what comes next.
};
// Returns when it was changed last, links followed; nothing but zero if it is not there.
timespec ChangeOf(int checkout, const std::string& path);

// Walks `checkout` (canonical), following no link but those by names of directories of credentials.
// The directory `report`, absolute, is left out: it is this run's own. `seen` gets what was seen.
// With `is_git`, `checkout` is a git directory. Fails with kRefused if the agent could read what
// was not looked through: a directory that is too deep, or that its owner, who is this user, may
// not read now (and may change), or one of more entries than are looked at; and with kTemporary if
// directories are moved all the time. What belongs to others and is closed to this user is closed
// to the agent, and left out.
Result<LeftFiles> FindLeftFiles(const std::string& checkout, const std::string& report = "",
                                std::vector<Seen>* seen = nullptr, bool is_git = false);

// Returns those of `paths` (relative to `checkout`) that are not as in HEAD, with the text that
// they have there, or as gone: what is in no commit came from a step. Without a repository all of
// them are gone.
std::vector<sandbox::WorkspaceFile> WithholdFiles(const change::Repository* repository,
                                                  const std::string& checkout,
                                                  const std::vector<std::string>& paths);

}  // namespace run
