// SPDX-License-Identifier: Apache-2.0
// The place where the sandboxes of one user are known by name: a directory that only this user can
// enter, with a directory for each sandbox. Its lock is held by the sandbox's processes, so that
// what a killed one left is found by its free lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace session {

inline constexpr char kSocketName[] = "socket";
inline constexpr char kLogName[] = "log";
inline constexpr char kPolicyName[] = "policy.yml";  // The text that replaced its policy.
inline constexpr size_t kPolicyTextBytesMax = size_t{1} << 20;  // More than a policy may have.
inline constexpr size_t kNameBytesMax = 63;

// The facts about a sandbox that are known without asking it.
struct Facts {
  std::string name;
  int64_t pid = 0;      // The process that keeps it.
  int64_t created = 0;  // Seconds since 1970.
  int64_t expires = 0;
  std::string workdir;
  std::string image;  // The image as asked for; if empty, the host's own programs.
  std::string agent;
  std::string isolation;
  std::string report_dir;
  std::string backend = "native";
  std::string state = {};  // "openshell": the directory of its gateway's state, once it is ready.
  std::string pool = {};   // It waits in this one to be taken, and ends with it.
  std::string policy_ref = {};  // `--policy-ref`, as it was given.
  // How its agents reach their models: run::ProviderNames() and run::ForeseenVariables().
  std::vector<std::string> providers = {};
  std::vector<std::pair<std::string, std::string>> variables = {};
};

// Fails with kUsage unless `name` has letters, digits, '.', '_' and '-' only, the first a letter or
// digit, and at most kNameBytesMax.
Status CheckName(const std::string& name);

// A sandbox's directory while it is made, and of its processes while they live.
struct Entry {
  std::string name;
  std::string path;
  Fd directory;
  Fd lock;
};

inline constexpr std::chrono::milliseconds kConnectTime{1000};

class Place {
 public:
  // Opens `agentic-ci` in XDG_RUNTIME_DIR or /run/user/UID, or else `agentic-ci-UID` in TMPDIR or
  // /tmp; made if it is not there. Fails with kRefused if it is not this user's alone. Removes what
  // killed sandboxes left.
  static Result<Place> Open();

  // Makes a new sandbox's directory, locked. Makes up a name if it is empty. Fails with kUsage if
  // the name is taken.
  Result<Entry> Make(std::string name);
  // Waits for `wait` at most while as many clients wait for the sandbox as may. Fails with
  // kNotFound if no sandbox has that name, and with kTemporary if it did not answer.
  Result<Fd> Connect(const std::string& name, std::chrono::milliseconds wait = kConnectTime) const;
  // Returns the facts of all sandboxes, by name. Ends those that waited in a pool that was killed.
  std::vector<Facts> List() const;
  Result<Facts> Find(const std::string& name) const;
  // Returns the text that replaced the policy of the sandbox; empty if none did.
  Result<std::string> ReplacedPolicy(const std::string& name) const;
  // Replaces what is known of the sandbox `facts.name`.
  Status Update(const Facts& facts) const;
  // Waits until nothing of it is left.
  Status AwaitEnd(const std::string& name) const;

  const std::string& path() const { return path_; }

 private:
  void Sweep() const;
  void EndIfOrphan(const Facts& facts) const;
  Result<Fd> Lock() const;

  std::string path_;
  Fd directory_;
};

// Returns whether the process at the other end of a Unix socket runs as this user.
bool SamePeer(int socket);
// Opens the sandbox's own socket, in its directory, and listens.
Result<Fd> Listen(const Entry& entry);
Status WriteFacts(const Entry& entry, const Facts& facts);
// Keeps the text that replaces the policy of the entry's sandbox, whole or not at all.
Status WritePolicy(const Entry& entry, std::string_view text);
// Removes the directory, unless that was done and another sandbox has the name by now. The lock is
// held until the process ends.
void Remove(const Entry& entry);

}  // namespace session
