// SPDX-License-Identifier: Apache-2.0
#include "sandbox/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"

namespace sandbox {
namespace {

// Newer than the headers of Debian 12. Source: include/uapi/linux/landlock.h of Linux 6.12.
struct RulesetAttributes {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;
  uint64_t scoped;
};
constexpr uint64_t kTruncate = 1ULL << 14;          // ABI 3.
constexpr uint64_t kIoctlDevice = 1ULL << 15;       // ABI 5.
constexpr uint64_t kScopeAbstractUnix = 1ULL << 0;  // ABI 6.
constexpr uint64_t kScopeSignal = 1ULL << 1;        // ABI 6.

constexpr uint64_t kReadFile = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE;
constexpr uint64_t kRead = kReadFile | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWriteFile = LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate | kIoctlDevice;
constexpr uint64_t kWrite =
    kWriteFile | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
    LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
    LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER;

// What this kernel can handle of all the above.
uint64_t Handled(int abi) {
  uint64_t handled = kRead | kWrite;
  if (abi < 2) handled &= ~static_cast<uint64_t>(LANDLOCK_ACCESS_FS_REFER);
  if (abi < 3) handled &= ~kTruncate;
  if (abi < 5) handled &= ~kIoctlDevice;
  return handled;
}

Status AddRule(int ruleset, const LandlockRule& rule, uint64_t handled) {
  Fd path = TRY(sys::Open(rule.path, O_PATH));
  struct stat st {};
  if (::fstat(path.get(), &st) != 0) return Errno("fstat " + rule.path);
  uint64_t access = rule.writable ? kRead | kWrite : kRead;
  if (!S_ISDIR(st.st_mode)) access &= kReadFile | kWriteFile;
  landlock_path_beneath_attr beneath{};
  beneath.allowed_access = access & handled;
  beneath.parent_fd = path.get();
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) != 0) {
    return Errno("landlock_add_rule " + rule.path);
  }
  return Ok();
}

}  // namespace

int LandlockAbi() {
  long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

Result<Fd> BuildLandlock(const std::vector<LandlockRule>& rules, bool required) {
  int abi = LandlockAbi();
  if (abi == 0) {
    if (!required) return Fd();
    return Error{Code::kUnsupported,
                 "the policy requires Landlock, which this kernel does not support",
                 "boot with lsm=landlock,... or set landlock.compatibility: best_effort"};
  }
  RulesetAttributes attributes{};
  attributes.handled_access_fs = Handled(abi);
  if (abi >= 6) attributes.scoped = kScopeAbstractUnix | kScopeSignal;
  size_t size = abi >= 6   ? sizeof attributes
                : abi >= 4 ? offsetof(RulesetAttributes, scoped)
                           : offsetof(RulesetAttributes, handled_access_net);
  Fd ruleset(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, size, 0)));
  if (!ruleset.valid()) return Errno("landlock_create_ruleset");
  for (const LandlockRule& rule : rules) {
    Status added = AddRule(ruleset.get(), rule, attributes.handled_access_fs);
    if (added.ok() || (added.error().code == Code::kNotFound && !required)) continue;
    return std::move(added).error();
  }
  return ruleset;
}

Status ApplyLandlock(int ruleset) {
  if (::syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) {
    return Errno("landlock_restrict_self");
  }
  return Ok();
}

}  // namespace sandbox
