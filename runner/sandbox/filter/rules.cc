// SPDX-License-Identifier: Apache-2.0
#include "sandbox/filter/rules.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace sandbox {

scmp_arg_cmp Argument(unsigned index, scmp_compare compare, uint64_t a, uint64_t b) {
  scmp_arg_cmp argument{};
  argument.arg = index;
  argument.op = compare;
  argument.datum_a = a;
  argument.datum_b = b;
  return argument;
}

scmp_arg_cmp IntArgument(unsigned index, int value) {
  return Argument(index, SCMP_CMP_MASKED_EQ, 0xffffffff, static_cast<uint32_t>(value));
}

scmp_arg_cmp Flag(unsigned index, uint64_t flag) {
  return Argument(index, SCMP_CMP_MASKED_EQ, flag, flag);
}

void DenyOthers(Rules& rules, int call, unsigned argument, const Numbers& numbers,
                std::span<const uint64_t> kept, uint32_t error) {
  const uint64_t end = numbers.first + numbers.size;
  bool keeps = std::any_of(kept.begin(), kept.end(), [&](uint64_t number) {
    return number >= numbers.first && number < end;
  });
  if (!keeps) {
    const uint64_t mask = numbers.bits & ~(numbers.size - 1);
    return rules.DenyWhere(
        call, std::array{Argument(argument, SCMP_CMP_MASKED_EQ, mask, numbers.first)}, error);
  }
  if (numbers.size == 1) return;
  const uint64_t half = numbers.size / 2;
  DenyOthers(rules, call, argument, {numbers.bits, numbers.first, half}, kept, error);
  DenyOthers(rules, call, argument, {numbers.bits, numbers.first + half, half}, kept, error);
}

void DenyRequests(Rules& rules, uint64_t type, std::vector<uint64_t> kept) {
  for (uint64_t& number : kept) number |= type << 8;
  DenyOthers(rules, SCMP_SYS(ioctl), 1, {0xffff, type << 8, 256}, kept, ENOTTY);
}

void ProtectProcess(Rules& rules, int process) {
  constexpr int kIoprioWhoUser = 3;
  // A call without new limits only reads, as from /proc.
  rules.DenyWhere(SCMP_SYS(prlimit64),
                  std::array{IntArgument(0, process), Argument(2, SCMP_CMP_NE, 0)});
  for (int call : {SCMP_SYS(sched_setaffinity), SCMP_SYS(sched_setattr), SCMP_SYS(sched_setparam),
                   SCMP_SYS(sched_setscheduler)}) {
    rules.DenyWhere(call, std::array{IntArgument(0, process)});
  }
  for (auto [call, user] : {std::pair(SCMP_SYS(setpriority), static_cast<int>(PRIO_USER)),
                            std::pair(SCMP_SYS(ioprio_set), kIoprioWhoUser)}) {
    rules.DenyWhere(call, std::array{IntArgument(0, user)});
    rules.DenyWhere(call, std::array{IntArgument(1, process)});
  }
}

}  // namespace sandbox
