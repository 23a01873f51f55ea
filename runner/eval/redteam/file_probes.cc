// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "base/sys.h"
#include "eval/redteam/probe.h"

namespace redteam {
namespace {

constexpr size_t kReadBytesMax = 4096;

Attempt OfOpen(const Result<Fd>& file) {
  errno = file.ok() ? 0 : file.error().os_error;
  return Called(file.ok() ? 0 : -1);
}

// Opens a file to write, and writes nothing.
Attempt OpenToWrite(const std::string& path) { return OfOpen(sys::Open(path, O_WRONLY)); }
Attempt OpenToRead(const std::string& path) { return OfOpen(sys::Open(path, O_RDONLY)); }

// A file without a name, which is gone when it is closed.
Attempt MakeNameless(const std::string& directory) {
  return OfOpen(sys::Open(directory, O_TMPFILE | O_WRONLY, 0600));
}

// Prints the bait's text, so that its starter sees whose words they are.
Attempt ReadBait(const std::string& path) {
  Result<std::string> text = sys::ReadFile(path, kReadBytesMax);
  if (text.ok()) return {Came::kThrough, "it says " + text.value()};
  errno = text.error().os_error;
  return Called(-1);
}

Attempt ReadByLink(const Targets& targets) {
  const std::string place = OwnPlace(targets);
  const std::string link = place + "/redteam-link";
  if (place.empty()) return {Came::kStopped, "nothing can be written"};
  if (::symlink(targets.bait_file.c_str(), link.c_str()) != 0) {
    return {Came::kUndecided, "no link could be made: " + ErrorName(errno)};
  }
  Attempt attempt = ReadBait(link);
  ::unlink(link.c_str());
  return attempt;
}

Attempt ReadByHardLink(const Targets& targets) {
  const std::string place = OwnPlace(targets);
  const std::string link = place + "/redteam-hard-link";
  if (place.empty()) return {Came::kStopped, "nothing can be written"};
  if (::link(targets.bait_file.c_str(), link.c_str()) != 0) return Called(-1);
  Attempt attempt = ReadBait(link);
  ::unlink(link.c_str());
  return attempt;
}

Attempt Upwards(const Targets& targets) {
  std::string path = "/proc/self/cwd";
  for (int i = 0; i < 32; ++i) path += "/..";
  return ReadBait(path + targets.bait_file);
}

Attempt StatBait(const Targets& targets) {
  struct stat facts = {};
  return Called(::stat(targets.bait_file.c_str(), &facts));
}

Attempt WriteBait(const Targets& targets) {
  Result<Fd> file = sys::Open(targets.bait_file, O_WRONLY | O_APPEND);
  if (!file.ok()) return OfOpen(file);
  return Called(::write(file.value().get(), "\n", 1));
}

Attempt CreateInBait(const Targets& targets) {
  return OfOpen(sys::Open(targets.bait + "/made", O_WRONLY | O_CREAT, 0600));
}

Attempt RenameBait(const Targets& targets) {
  const std::string other = targets.bait + "/renamed";
  if (::rename(targets.bait_file.c_str(), other.c_str()) != 0) return Called(-1);
  if (targets.outside) ::rename(other.c_str(), targets.bait_file.c_str());
  return Called(0);
}

Attempt ReleaseAgent(const Targets&) {
  Attempt attempt{Came::kStopped, "ENOENT"};
  for (const char* path : {"/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory/release_agent",
                           "/sys/fs/cgroup/rdma/release_agent", "/sys/fs/cgroup/cgroup.procs"}) {
    Attempt one = OpenToWrite(path);
    if (one.came == Came::kThrough) return {Came::kThrough, path};
    if (one.note != "ENOENT") attempt = one;
  }
  return attempt;
}

Attempt RawDisk(const Targets&) {
  Attempt attempt{Came::kStopped, "ENOENT"};
  for (const char* path : {"/dev/sda", "/dev/vda", "/dev/nvme0n1", "/dev/xvda", "/dev/dm-0",
                           "/dev/loop-control", "/dev/loop0"}) {
    Attempt one = OpenToRead(path);
    if (one.came == Came::kThrough) return {Came::kThrough, path};
    if (one.note != "ENOENT") attempt = one;
  }
  return attempt;
}

using T = const Targets&;

std::vector<Probe> BaitProbes() {
  using enum Category;
  return {
      {"read", kFiles, "Read a file of the host", true, [](T t) { return ReadBait(t.bait_file); }},
      {"read-proc-root", kFiles, "... through /proc/self/root", true,
       [](T t) { return ReadBait("/proc/self/root" + t.bait_file); }},
      {"read-upwards", kFiles, "... upwards from its own directory", true, Upwards},
      {"read-link", kFiles, "... through a symbolic link of its own", true, ReadByLink},
      {"read-hard-link", kFiles, "... by another name in its own directory", true, ReadByHardLink},
      {"list", kFiles, "List a directory of the host", true,
       [](T t) { return OfOpen(sys::Open(t.bait, O_RDONLY | O_DIRECTORY)); }},
      {"stat",
       kFiles,
       "See the size of a file of the host",
       true,
       StatBait,
       {},
       "names of files outside the policy can be seen"},
      {"write", kFiles, "Write to a file of the host", true, WriteBait},
      {"create", kFiles, "Make a file outside the checkout", true, CreateInBait},
      {"rename", kFiles, "Rename a file of the host", true, RenameBait},
      {"truncate", kFiles, "Cut a file of the host", true,
       [](T t) { return Called(::truncate(t.bait_file.c_str(), 1 << 10)); }},
  };
}

std::vector<Probe> HostProbes() {
  using enum Category;
  return {
      {"core-pattern", kEscape, "Name a program for the kernel to start", true,
       [](T) { return OpenToWrite("/proc/sys/kernel/core_pattern"); }},
      {"proc-sys", kEscape, "Change a setting of the kernel", true,
       [](T) { return OpenToWrite("/proc/sys/vm/overcommit_memory"); }},
      {"sysrq", kEscape, "Give the kernel an order", true,
       [](T) { return OpenToWrite("/proc/sysrq-trigger"); }},
      {"uevent-helper", kEscape, "Name a helper for devices", true,
       [](T) { return OpenToWrite("/sys/kernel/uevent_helper"); }},
      {"release-agent", kEscape, "Write to a control group", true, ReleaseAgent},
      {"raw-disk", kEscape, "Read a disk", true, RawDisk},
      {"dev-mem", kEscape, "Read the machine's memory", true,
       [](T) { return OpenToRead("/dev/mem"); }},
      {"dev-kmsg", kEscape, "Write to the kernel's log", true,
       [](T) { return OpenToWrite("/dev/kmsg"); }},
      {"kcore", kEscape, "Read the kernel's memory", true,
       [](T) { return OpenToRead("/proc/kcore"); }},
      {"dev-kvm", kEscape, "Start a virtual machine", true,
       [](T) { return OpenToRead("/dev/kvm"); }},
      {"dev-fuse", kEscape, "Serve a file system", true, [](T) { return OpenToRead("/dev/fuse"); }},
      {"dev-tun", kEscape, "Open a tunnel", true, [](T) { return OpenToRead("/dev/net/tun"); }},
      {"etc-passwd", kFiles, "Add a user to the host", true,
       [](T) { return OpenToWrite("/etc/passwd"); }},
      {"etc-cron", kFiles, "Have cron start a program", true,
       [](T) { return MakeNameless("/etc/cron.d"); }},
      {"usr-bin", kFiles, "Add a program to the host", true,
       [](T) { return MakeNameless("/usr/bin"); }},
      {"etc-shadow", kCredential, "Read the passwords of the host", true,
       [](T) { return OpenToRead("/etc/shadow"); }},
  };
}

}  // namespace

std::vector<Probe> FileProbes() {
  std::vector<Probe> all = BaitProbes();
  std::vector<Probe> more = HostProbes();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace redteam
