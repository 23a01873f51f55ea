// SPDX-License-Identifier: Apache-2.0
#include "sandbox/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <sstream>
#include <unordered_map>

#include "base/mounts.h"
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

// Without an owner and permissions when there is nothing.
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

// Returns whether the name 0 in this process's user namespace means 0 outside: "inner outer count"
// per line.
bool RootOutside() {
  constexpr size_t kMapBytesMax = 65536;  // At most 340 lines.
  Result<std::string> text = sys::ReadFile("/proc/self/uid_map", kMapBytesMax);
  if (!text.ok()) return false;
  std::istringstream fields(text.value());
  unsigned inner = 1;
  unsigned outer = 1;
  return fields >> inner >> outer && inner == 0 && outer == 0;
}

bool MayChangeIds() {
  constexpr uint32_t kNeeded = 1U << CAP_CHOWN | 1U << CAP_DAC_OVERRIDE | 1U << CAP_FOWNER |
                               1U << CAP_SETGID | 1U << CAP_SETUID | 1U << CAP_SETPCAP;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::geteuid() != 0 || ::syscall(SYS_capget, &header, data) != 0) return false;
  return (data[0].effective & kNeeded) == kNeeded;
}

// Returns whether one line of a map of ids, "inner outer count", covers `count` ids from `first`
// on.
bool Maps(const char* path, uint64_t first, uint64_t count) {
  constexpr size_t kMapBytesMax = 65536;  // At most 340 lines.
  Result<std::string> text = sys::ReadFile(path, kMapBytesMax);
  std::istringstream fields(text.ok() ? text.value() : std::string());
  uint64_t inner = 0;
  uint64_t outer = 0;
  uint64_t size = 0;
  while (fields >> inner >> outer >> size) {
    if (inner <= first && inner + size >= first + count) return true;
  }
  return false;
}

struct IdRange {
  uint32_t first;
  uint32_t count;
};
constexpr IdRange kFreeIds[] = {{1'879'048'192, 1 << 24}, {60'000, 5'000}};

std::optional<uid_t> DrawFreeId() {
  if (!MayChangeIds()) return std::nullopt;
  uint32_t drawn = 0;
  if (::getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) return std::nullopt;
  for (const IdRange& range : kFreeIds) {
    if (!Maps("/proc/self/uid_map", range.first, range.count)) continue;
    if (!Maps("/proc/self/gid_map", range.first, range.count)) continue;
    return range.first + drawn % range.count;
  }
  return std::nullopt;
}

// Finds out by trying, because distributions carry features back to older kernels. The file of
// memfd_create(2) lies on the kernel's own tmpfs.
bool HoldsLayersInMemory() {
  Fd file(::memfd_create("trial", MFD_CLOEXEC));
  return file.valid() && ::fsetxattr(file.get(), "user.overlay.trial", "y", 1, 0) == 0;
}

// The directory beside the checkout comes last: a CI's volume is often the one disk of a container.
std::vector<std::string> ScratchPlaces(const std::string& checkout) {
  std::vector<std::string> places;
  for (const char* variable : {"TMPDIR", "RUNNER_TEMP"}) {
    std::string place = sys::Environment(variable).value_or("");
    if (place.starts_with('/')) places.push_back(std::move(place));
  }
  for (std::string place : {std::string("/var/tmp"), std::string("/tmp"),
                            checkout.substr(0, checkout.rfind('/') + 1)}) {
    if (std::find(places.begin(), places.end(), place) == places.end()) {
      places.push_back(std::move(place));
    }
  }
  return places;
}

std::string HostName() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "";
}

// The C library's own look-up loads shared libraries, which a static program cannot.
std::string AccountOf(uid_t uid) {
  constexpr size_t kAccountsBytesMax = 1 << 20;
  Result<std::string> text = sys::ReadFile("/etc/passwd", kAccountsBytesMax);
  std::istringstream lines(text.ok() ? text.value() : std::string());
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name;
    std::string password;
    std::string id;
    std::getline(std::getline(std::getline(fields, name, ':'), password, ':'), id, ':');
    if (id == std::to_string(uid)) return name;
  }
  return {};
}

std::string Link(const std::string& path) { return sys::ReadLink(path).value_or(""); }

std::string Real(const std::string& path) {
  Result<std::string> real = sys::RealPath(path);
  return real.ok() ? std::move(real).value() : std::string();
}

// Remembers each answer: a plan asks for the same paths many times, and then sees one state of the
// host.
template <typename Answer>
std::function<Answer(const std::string&)> Once(Answer (*ask)(const std::string&)) {
  auto known = std::make_shared<std::unordered_map<std::string, Answer>>();
  return [ask, known](const std::string& path) {
    auto found = known->find(path);
    if (found == known->end()) found = known->emplace(path, ask(path)).first;
    return found->second;
  };
}

}  // namespace

bool IsFreeId(uid_t id) {
  return std::any_of(std::begin(kFreeIds), std::end(kFreeIds), [&](const IdRange& range) {
    return id >= range.first && id - range.first < range.count;
  });
}

HostView ReadHost(const std::string& checkout) {
  HostView host;
  host.uid = ::geteuid();
  host.gid = ::getegid();
  host.root = host.uid == 0 && RootOutside();
  host.free_id = DrawFreeId();
  struct stat st {};
  if (::stat(checkout.c_str(), &st) == 0) {
    host.checkout_uid = st.st_uid;
    host.checkout_gid = st.st_gid;
  }
  host.kind = Once(KindOf);
  host.link = Once(Link);
  host.list = List;
  host.real = Once(Real);
  host.head = Head;
  host.owner = [](const std::string& path) { return Facts(path).st_uid; };
  host.mode = [](const std::string& path) { return Facts(path).st_mode & 07777; };
  for (sys::Mount& mount : sys::ReadMounts()) host.mounts.push_back(std::move(mount.point));
  host.home = host.real(sys::Environment("HOME").value_or(""));
  host.name = HostName();
  host.user = AccountOf(host.uid);
  host.layers_in_memory = HoldsLayersInMemory();
  host.scratch_places = ScratchPlaces(checkout);
  return host;
}

}  // namespace sandbox
