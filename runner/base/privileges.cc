// SPDX-License-Identifier: Apache-2.0
#include "base/privileges.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"

namespace sys {

Status ForgoNewPrivileges() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Errno("prctl(PR_SET_NO_NEW_PRIVS)");
  return Ok();
}

Status DropCapabilities(uint32_t kept) {
  for (unsigned long capability = 0; capability <= 63; ++capability) {
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EINVAL) {
      return Errno("prctl(PR_CAPBSET_DROP)");
    }
  }
  return KeepCapabilities(kept);
}

Status KeepCapabilities(uint32_t kept) {
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) {
    return Errno("prctl(PR_CAP_AMBIENT)");
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {{kept, kept, 0}, {}};
  if (::syscall(SYS_capset, &header, data) != 0) return Errno("capset");
  return Ok();
}

namespace landlock {
namespace {

constexpr uint64_t kRefer = 1 << 13;           // ABI 2.
constexpr uint64_t kTruncate = 1 << 14;        // ABI 3.
constexpr uint64_t kIoctlDev = 1 << 15;        // ABI 5.
constexpr uint64_t kSignals = 1 << 1;          // ABI 6.
constexpr uint64_t kAllScopes = 1 | kSignals;  // Abstract sockets too.
constexpr uint64_t kOfFiles = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
                              LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate | kIoctlDev;

// Returns the rights to files that this kernel can deny.
uint64_t Deniable(int abi) {
  return kAllFiles &
         ~((abi < 2 ? kRefer : 0) | (abi < 3 ? kTruncate : 0) | (abi < 5 ? kIoctlDev : 0));
}

}  // namespace

int Abi(int* why) {
  long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < 0 && why != nullptr) *why = errno;
  return abi < 0 ? 0 : static_cast<int>(abi);
}

Result<Fd> CreateRuleset(uint64_t network) {
  int abi = Abi();
  if (abi == 0) return Fd();
  const uint64_t denied[] = {Deniable(abi), network, kAllScopes};  // Known from ABI 1, 4 and 6 on.
  size_t size = (abi >= 6 ? 3 : abi >= 4 ? 2 : 1) * sizeof denied[0];
  Fd ruleset(static_cast<int>(::syscall(SYS_landlock_create_ruleset, denied, size, 0)));
  if (!ruleset.valid()) return Errno("landlock_create_ruleset");
  return ruleset;
}

Result<Fd> CreateSignalRuleset() {
  if (Abi() < 6) return Fd();
  const uint64_t denied[] = {kRefer, 0, kSignals};
  Fd ruleset(static_cast<int>(::syscall(SYS_landlock_create_ruleset, denied, sizeof denied, 0)));
  if (!ruleset.valid()) return Errno("landlock_create_ruleset");
  // A ruleset that does not handle this right denies it all the same.
  Fd root = TRY(Open("/", O_PATH));
  TRY(Allow(ruleset, root.get(), kRefer));
  return ruleset;
}

Status Allow(const Fd& ruleset, int place, uint64_t files) {
  struct stat st {};
  if (::fstat(place, &st) != 0) return Errno("fstat");
  landlock_path_beneath_attr beneath{};
  beneath.allowed_access = files & Deniable(Abi()) & (S_ISDIR(st.st_mode) ? kAllFiles : kOfFiles);
  beneath.parent_fd = place;
  if (::syscall(SYS_landlock_add_rule, ruleset.get(), LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) !=
      0) {
    return Errno("landlock_add_rule");
  }
  return Ok();
}

Status Restrict(int ruleset) {
  if (::syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) {
    return Errno("landlock_restrict_self");
  }
  return Ok();
}

}  // namespace landlock
}  // namespace sys
