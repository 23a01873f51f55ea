// SPDX-License-Identifier: Apache-2.0
#include "sandbox/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "base/sys.h"

namespace sandbox {
namespace {

PathKind KindOf(const std::string& path) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0) return PathKind::kMissing;
  if (S_ISREG(st.st_mode)) return PathKind::kFile;
  if (S_ISDIR(st.st_mode)) return PathKind::kDirectory;
  if (S_ISLNK(st.st_mode)) return PathKind::kSymlink;
  return PathKind::kOther;
}

// Of nobody and without permissions when there is nothing.
struct stat Facts(const std::string& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) {
    facts = {};
    facts.st_uid = static_cast<uid_t>(-1);
  }
  return facts;
}

std::vector<std::string> List(const std::string& path) {
  std::vector<std::string> names;
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr) return names;
  while (const dirent* entry = ::readdir(directory)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

std::string Head(const std::string& path) {
  constexpr size_t kHeadBytes = 256;  // BINPRM_BUF_SIZE.
  Result<Fd> file = sys::Open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file.ok() || KindOf(path) != PathKind::kFile) return {};
  std::string head(kHeadBytes, '\0');
  head.resize(static_cast<size_t>(
      std::max<ssize_t>(::pread(file.value().get(), head.data(), head.size(), 0), 0)));
  return head;
}

// A container binds its own /etc/hosts; a host has a few dozen mounts, a busy one a few thousand.
constexpr size_t kMountInfoBytesMax = 8 << 20;

// The octal escapes of proc(5), mountinfo: space, tab, newline and backslash.
std::string Unescape(const std::string& text) {
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 3 < text.size()) {
      plain += static_cast<char>(((text[at + 1] - '0') << 6) + ((text[at + 2] - '0') << 3) +
                                 (text[at + 3] - '0'));
      at += 3;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

std::vector<std::string> Mounts() {
  std::vector<std::string> points;
  Result<std::string> text = sys::ReadFile("/proc/self/mountinfo", kMountInfoBytesMax);
  if (!text.ok()) return points;
  std::istringstream lines(text.value());
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string field;
    for (int i = 0; i < 5; ++i) fields >> field;
    points.push_back(Unescape(field));
  }
  return points;
}

// Whether the name 0 in this process's user namespace means 0 outside: "inner outer count" per
// line.
bool RootOutside() {
  constexpr size_t kMapBytesMax = 65536;  // At most 340 lines.
  Result<std::string> text = sys::ReadFile("/proc/self/uid_map", kMapBytesMax);
  if (!text.ok()) return false;
  std::istringstream fields(text.value());
  unsigned inner = 1;
  unsigned outer = 1;
  return fields >> inner >> outer && inner == 0 && outer == 0;
}

}  // namespace

HostView ReadHost(const std::string& checkout) {
  HostView host;
  host.uid = ::geteuid();
  host.gid = ::getegid();
  host.root = host.uid == 0 && RootOutside();
  struct stat st {};
  if (::stat(checkout.c_str(), &st) == 0) {
    host.checkout_uid = st.st_uid;
    host.checkout_gid = st.st_gid;
  }
  host.kind = KindOf;
  host.link = [](const std::string& path) { return sys::ReadLink(path).value_or(""); };
  host.list = List;
  host.real = [](const std::string& path) {
    Result<std::string> real = sys::RealPath(path);
    return real.ok() ? std::move(real).value() : std::string();
  };
  host.head = Head;
  host.owner = [](const std::string& path) { return Facts(path).st_uid; };
  host.mode = [](const std::string& path) { return Facts(path).st_mode & 07777; };
  host.mounts = Mounts();
  host.home = host.real(sys::Environment("HOME").value_or(""));
  return host;
}

}  // namespace sandbox
