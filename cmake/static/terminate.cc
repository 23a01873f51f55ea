// SPDX-License-Identifier: Apache-2.0
// What libstdc++ calls when an exception is not caught. Its own spells the exception's type as in
// the source, and brings 47 KB of a demangler for it; this one spells it as linkers do (c++filt
// -t).
#include <cxxabi.h>
#include <string.h>
#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <typeinfo>

namespace __gnu_cxx {

void __verbose_terminate_handler();

void __verbose_terminate_handler() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  for (const char* part :
       {"agentic-ci: bug: not caught: ", type == nullptr ? "(no exception)" : type->name(), "\n"}) {
    if (::write(STDERR_FILENO, part, ::strlen(part)) < 0) break;
  }
  std::abort();
}

}  // namespace __gnu_cxx
