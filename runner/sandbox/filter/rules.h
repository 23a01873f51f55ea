// SPDX-License-Identifier: Apache-2.0
// The rules of a filter of system calls, as libseccomp takes them.
#pragma once

#include <errno.h>
#include <seccomp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sandbox {

// Collects rules; the first failure sticks, so that a list of rules reads as a list.
class Rules {
 public:
  explicit Rules(scmp_filter_ctx context) : context_(context) {}

  void Deny(int call, uint32_t error = EPERM) {
    if (call == __NR_SCMP_ERROR) return;
    Note(::seccomp_rule_add_array(context_, SCMP_ACT_ERRNO(error), call, 0, nullptr));
  }
  template <size_t N>
  void DenyWhere(int call, const std::array<scmp_arg_cmp, N>& arguments, uint32_t error = EPERM) {
    Note(::seccomp_rule_add_array(context_, SCMP_ACT_ERRNO(error), call, N, arguments.data()));
  }
  void Notify(int call) {
    Note(::seccomp_rule_add_array(context_, SCMP_ACT_NOTIFY, call, 0, nullptr));
  }
  void NotifyWhere(int call, const scmp_arg_cmp& argument) {
    if (call == __NR_SCMP_ERROR) return;
    Note(::seccomp_rule_add_array(context_, SCMP_ACT_NOTIFY, call, 1, &argument));
  }
  int status() const { return status_; }

 private:
  void Note(int rc) {
    if (rc < 0 && status_ == 0) status_ = rc;
  }
  scmp_filter_ctx context_;
  int status_ = 0;
};

// A condition on the argument of that number, from 0 on.
scmp_arg_cmp Argument(unsigned index, scmp_compare compare, uint64_t a, uint64_t b = 0);
// The argument, an int, has that value. The kernel takes it from the low half of the register and
// never looks at the high one; a filter sees both. A comparison of all 64 bits would miss
// socket(AF_VSOCK + 2^32).
scmp_arg_cmp IntArgument(unsigned index, int value);
// The argument has all bits of `flag`.
scmp_arg_cmp Flag(unsigned index, uint64_t flag);

// Values of an argument that agree in some bits, and among these the values of `size` numbers, a
// power of 2, from `first` on.
struct Numbers {
  uint64_t bits;
  uint64_t first;
  uint64_t size;
};

// Denies a call with any of them but for `kept`: in as few rules as halves of halves take.
void DenyOthers(Rules& rules, int call, unsigned argument, const Numbers& numbers,
                std::span<const uint64_t> kept, uint32_t error);

// Denies ioctl(2) with the requests of a type but for the numbers of `kept`. A file system that is
// not of that kind answers ENOTTY, which programs expect.
void DenyRequests(Rules& rules, uint64_t type, std::vector<uint64_t> kept);

// Denies changes of that process's limits and priorities. The runner's may have the agent's user
// id, which is all that these calls ask for: limits of its own would end it, and a low priority
// keep it from telling that the agent has ended.
void ProtectProcess(Rules& rules, int process);

}  // namespace sandbox
