// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/version.h"

namespace base_internal {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "agentic-ci: bug: %s:%d: %s\nplease report this line: %s/issues\n", file,
               line, condition, kHomepage.data());
  std::abort();
}

}  // namespace base_internal

Error Invalid(std::string_view what) { return {Code::kInvalid, std::string(what)}; }

Error Errno(std::string_view call, int saved_errno) {
  Code code = saved_errno == ENOENT ? Code::kNotFound : Code::kIo;
  return Error{code, std::string(call) + ": " + ::strerror(saved_errno), "", saved_errno};
}
