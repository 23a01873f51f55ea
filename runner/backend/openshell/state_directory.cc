// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/state_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "backend/openshell/client/command_line.h"
#include "backend/openshell/client/host_variables.h"
#include "backend/openshell/client/open_client.h"
#include "backend/openshell/sandbox.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/tree.h"
#include "session/place.h"
#include "session/shell.h"

namespace openshell {
namespace {

constexpr char kLockName[] = "lock";
constexpr char kLaterName[] = "/later";
constexpr char kPrefix[] = "aci-";
constexpr std::chrono::seconds kRemainsTime{30};
constexpr std::chrono::seconds kLockTime{5};
// A gateway that is busy for longer is not asked by every command.
constexpr std::chrono::hours kKeptTime{1};
// Together with the prefix, within the 19 that OpenShell allows.
constexpr size_t kNameDigits = 12;

Result<std::string> Root() {
  session::Place place = TRY(session::Place::Open());
  // No sandbox can have such a name.
  std::string root = place.path() + "/.openshell";
  TRY(sys::MakeDirectories(root, 0700));
  return root;
}

// Removes the sandbox of a run that used a gateway of others. One that cannot be removed is found
// there by its label. Returns false if another try may remove it.
bool RemoveRemote(const ProgramPlaces& places, const std::string& path, const std::string& name,
                  std::chrono::seconds each) {
  const Sandbox sandbox(ClientIn(path, places), name, path);
  const Status deleted = sandbox.Delete(each);
  if (deleted.ok()) return true;
  logging::Warn("what a run left on its gateway could not be deleted",
                {{"sandbox", name}, {"why", deleted.error().what}, {"later", LaterCommand(path)}});
  return !MayPass(deleted.error().code);
}

// Returns whether the lock, and with it a state that was kept, is older than that time.
bool IsOld(const Fd& lock) {
  struct stat facts = {};
  if (::fstat(lock.get(), &facts) != 0) return true;
  return std::chrono::system_clock::from_time_t(facts.st_mtime) + kKeptTime <
         std::chrono::system_clock::now();
}

bool Lock(const Fd& file) { return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0; }

// Returns whether the process that held the lock is gone. A child that it had just forked may have
// the lock for a moment longer.
bool IsFree(const Fd& lock) {
  if (Lock(lock)) return true;
  char digits[32] = {};
  if (::pread(lock.get(), digits, sizeof digits - 1, 0) <= 0) return false;
  const std::string owner = std::string("/proc/") + digits;
  const Deadline deadline = Deadline::After(kLockTime);
  while (!sys::Exists(owner) && !deadline.passed()) {
    if (Lock(lock)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// One at a time makes a directory and its lock, or looks which lock is free.
Result<Fd> LockAll(const std::string& root) {
  Fd all = TRY(sys::Open(root + "/.lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  while (::flock(all.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return Errno("flock");
  }
  return all;
}

void Sweep(const ProgramPlaces& places, const std::string& root, std::chrono::seconds each) {
  Result<Fd> directory = sys::Open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory.ok()) return;
  Result<std::vector<std::string>> names = sys::DirectoryNames(directory.value().get());
  if (!names.ok()) return;
  for (const std::string& name : names.value()) {
    if (!name.starts_with(kPrefix)) continue;
    Result<Fd> lock = sys::OpenAt(directory.value().get(), name + "/" + kLockName, O_RDWR);
    if (!lock.ok() && sys::IsAbsent(lock.error())) {
      // The last process of a container that was removed had a part of it made anew.
      (void)sys::RemoveTree(directory.value().get(), name);
    }
    if (!lock.ok() || !IsFree(lock.value())) continue;
    const bool done = RemoveRemains(places, root + "/" + name, name, each);
    if (!done && !IsOld(lock.value())) continue;
    (void)sys::RemoveTree(directory.value().get(), name);
  }
}

}  // namespace

Result<StateDirectory> StateDirectory::Make(const ProgramPlaces& places) {
  std::string root = TRY(Root());
  Fd all = TRY(LockAll(root));
  Sweep(places, root, kRemoteRemovalTime);
  std::string name = kPrefix + sys::RandomHex().substr(0, kNameDigits);
  std::string path = root + "/" + name;
  if (::mkdir(path.c_str(), 0700) != 0) return Errno("mkdir " + path);
  Fd lock = TRY(sys::Open(path + "/" + kLockName, O_RDWR | O_CREAT | O_EXCL, 0600));
  if (!Lock(lock)) return Errno("flock");
  TRY(sys::WriteAll(lock.get(), std::to_string(::getpid())));
  return StateDirectory(std::move(path), std::move(name), std::move(lock));
}

bool IsRunName(std::string_view name) {
  constexpr std::string_view kStart = kPrefix;
  return name.size() == kStart.size() + kNameDigits && name.starts_with(kStart) &&
         name.find_first_not_of("0123456789abcdef", kStart.size()) == std::string_view::npos;
}

void SweepRemains(const ProgramPlaces& places, std::chrono::seconds each) {
  Result<session::Place> place = session::Place::Open();
  if (!place.ok() || !sys::Exists(place.value().path() + "/.openshell")) return;
  Result<Fd> all = LockAll(place.value().path() + "/.openshell");
  if (all.ok()) Sweep(places, place.value().path() + "/.openshell", each);
}

Status WriteLaterCommand(const StateDirectory& state, const std::string& where,
                         const std::string& tls) {
  std::string later =
      "agentic-ci sandbox delete " + state.name() + " --backend openshell --gateway " + where;
  std::error_code fault;  // Another command may be called elsewhere.
  if (!tls.empty()) later += " --gateway-tls " + std::filesystem::absolute(tls, fault).string();
  return sys::WriteFile(state.path() + kLaterName, later, 0600);
}

std::string LaterCommand(const std::string& state) {
  constexpr size_t kBytesMax = 65536;
  Result<std::string> later = sys::ReadFile(state + kLaterName, kBytesMax);
  return later.ok() ? std::move(later).value() : "";
}

void StateDirectory::Keep() {
  kept_ = true;
  (void)::futimens(lock_.get(), nullptr);
}

StateDirectory::~StateDirectory() {
  if (!lock_.valid() || kept_) return;
  const size_t slash = path_.rfind('/');
  Result<Fd> root = sys::Open(path_.substr(0, slash), O_RDONLY | O_DIRECTORY);
  if (root.ok()) (void)sys::RemoveTree(root.value().get(), name_);
}

std::vector<std::string> PodmanArguments(const std::string& state,
                                         const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"--network-config-dir", state + "/networks"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

bool RemoveRemains(const ProgramPlaces& places, const std::string& path, const std::string& name,
                   std::chrono::seconds each) {
  CommandLine programs(places, HostVariables());
  Deadline deadline = Deadline::After(kRemainsTime);
  auto podman = [&](const std::vector<std::string>& arguments) {
    Result<Answer> answer = programs.Ask(PodmanArguments(path, arguments), deadline, {}, "podman");
    return answer.ok() ? answer.value().output : std::string();
  };
  if (!sys::Exists(path + "/networks")) {
    const bool was_remote = sys::Exists(path + "/config/openshell/active_gateway");
    return !was_remote || RemoveRemote(places, path, name, each);
  }
  std::string ids =
      podman({"ps", "-aq", "--filter", "label=openshell.ai/sandbox-namespace=" + name});
  for (size_t from = 0; from < ids.size();) {
    size_t end = std::min(ids.find('\n', from), ids.size());
    if (end > from) podman({"rm", "-f", "-v", "-t", "1", ids.substr(from, end - from)});
    from = end + 1;
  }
  podman({"network", "rm", "-f", name});
  (void)programs.Ask({"link", "del", BridgeOf(name)}, deadline, {}, "ip");
  return true;
}

// Fifteen characters, which is all that Linux takes.
std::string BridgeOf(const std::string& name) {
  return "aci" + name.substr(name.size() - kNameDigits);
}

}  // namespace openshell
