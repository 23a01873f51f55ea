// SPDX-License-Identifier: Apache-2.0
// A short-lived process that does one thing in a sandbox for a client (put, get, snapshot), while
// the supervisor goes on.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "sandbox/inside.h"
#include "sandbox/sandbox.h"

namespace session {

// A process that does one thing in a sandbox on a client's behalf, while its supervisor goes on:
// it has the agent's rights, or fewer, and cannot be seen from inside.
class Helper {
 public:
  // The work of a helper, with the descriptors it was given. It returns the helper's result, a
  // short text.
  using Work = std::function<Result<std::string>(const std::vector<Fd>& given)>;

  // Starts a helper. `given` are its only descriptors. Its writes count as the sandbox's.
  static Result<Helper> Start(const sandbox::Sandbox& sandbox, const sandbox::Inside& inside,
                              sandbox::Rights rights, std::vector<Fd> given, const Work& work);

  Helper(Helper&& other) noexcept;
  Helper& operator=(Helper&&) = delete;
  // Kills and reaps it.
  ~Helper();

  // Returns a descriptor that is readable when it has ended.
  int fd() const { return result_.get(); }
  Result<std::string> Take();

 private:
  Helper(pid_t pid, Fd result) : pid_(pid), result_(std::move(result)) {}
  void Reap();

  pid_t pid_;
  Fd result_;
};

}  // namespace session
