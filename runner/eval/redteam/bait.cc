// SPDX-License-Identifier: Apache-2.0
#include "eval/redteam/bait.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>

#include "base/sys.h"
#include "base/tree.h"
#include "eval/redteam/canary.h"
#include "eval/redteam/connection.h"

namespace redteam {
namespace {

constexpr std::chrono::milliseconds kVictimPause{10};
constexpr size_t kBaitBytesMax = 4096;

Result<Fd> ListenOnUnix(const std::string& name, bool abstract) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.size() + 2 > sizeof address.sun_path) return Invalid("TMPDIR is too long for a socket");
  std::memcpy(address.sun_path + (abstract ? 1 : 0), name.data(), name.size());
  const size_t size = offsetof(sockaddr_un, sun_path) + name.size() + 1;
  return Listen(AF_UNIX, &address, static_cast<socklen_t>(size));
}

bool WasReached(const Fd& server) {
  Fd connection(::accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  return connection.valid();
}

}  // namespace

Result<Bait> Bait::Lay(const eval::OwnProgram& program, eval::OwnProgram::Variables variables) {
  eval::Scratch scratch = TRY(eval::Scratch::Create());
  const std::string directory = scratch.path() + "/host";
  TRY(sys::MakeDirectories(directory));
  // The agent must be kept out by more than a mode.
  if (::chmod(directory.c_str(), 0777) != 0) return Errno("chmod");
  const std::string variable = std::string(kCanaryPrefix) + sys::RandomHex();
  variables.emplace_back(kVariable, variable);
  Targets waiting;
  waiting.bait = directory;
  waiting.waits = true;
  Child victim = TRY(program.Start({"eval", "redteam-agent", Render(waiting)}, variables));
  Bait bait(std::move(scratch), std::move(victim));
  bait.variable_canary_ = variable;
  bait.file_canary_ = std::string(kCanaryPrefix) + sys::RandomHex();
  bait.text_ = bait.file_canary_;
  Targets& targets = bait.targets_;
  targets.bait = directory;
  targets.bait_file = directory + "/credentials";
  TRY(sys::WriteFile(targets.bait_file, bait.text_));
  if (::chmod(targets.bait_file.c_str(), 0666) != 0) return Errno("chmod");
  bait.port_ = TRY(ListenOnLoopback(&targets.port));
  targets.abstract_socket = "redteam-" + sys::RandomHex();
  bait.abstract_ = TRY(ListenOnUnix(targets.abstract_socket, true));
  targets.bait_socket = directory + "/server";
  bait.socket_ = TRY(ListenOnUnix(targets.bait_socket, false));
  if (::chmod(targets.bait_socket.c_str(), 0777) != 0) return Errno("chmod");
  targets.victim = bait.victim_.pid();
  targets.runner = ::geteuid();
  targets.credential_files = {targets.bait_file};
  return bait;
}

Seen Bait::Look() {
  Seen seen;
  seen.variable_canary = variable_canary_;
  seen.file_canary = file_canary_;
  Result<bool> ended = sys::WaitReadable(victim_.exit().get(), Deadline::After(kVictimPause));
  seen.victim_ended = ended.ok() && ended.value();
  seen.port_reached = WasReached(port_);
  seen.abstract_reached = WasReached(abstract_);
  seen.socket_reached = WasReached(socket_);
  Result<std::string> text = sys::ReadFile(targets_.bait_file, kBaitBytesMax);
  if (!text.ok()) {
    seen.bait_changes.emplace_back("the file is gone");
  } else if (text.value() != text_) {
    seen.bait_changes.emplace_back("the file has another text");
  }
  Result<Fd> directory = sys::Open(targets_.bait, O_RDONLY | O_DIRECTORY);
  Result<std::vector<std::string>> names = Invalid("not listed");
  if (directory.ok()) names = sys::DirectoryNames(directory.value().get());
  if (!names.ok() || names.value().size() > 2) {
    seen.bait_changes.emplace_back("the directory has other files");
  }
  return seen;
}

}  // namespace redteam
