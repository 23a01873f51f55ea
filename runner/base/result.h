// SPDX-License-Identifier: Apache-2.0
// The kinds of failure: a refusal is an ordinary value, a failure is an `Error` in a
// `Result`, a bug is a failed `ENSURE`. Keeps the shape of std::expected so C++23 is one change
// here.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

// The meaning of a failure to the caller of the program; `base/exit_code.h` turns it into an exit
// status.
enum class Code {
  kUsage,        // The command line asks for something that does not exist.
  kInvalid,      // A policy, configuration or report that cannot be read as one.
  kNotFound,     // A named input does not exist.
  kUnsupported,  // This host cannot provide what was requested.
  kIo,           // Input or output failed.
  kTemporary,    // A remote service failed; trying again may help.
  kRefused,      // A rule said no: a remote service's permissions, an untrusted input.
  kSetup,        // The set-up is wrong: a missing token, an unknown provider.
  kNothingToDo,  // The input asks for nothing: no task is for this event. Not a failure.
  kBug,          // A bug in agentic-ci.
};

// What failed, where a caller decides by it and the code is not enough. It is set where the error
// is made: no decision hangs on the words of `what`.
enum class ErrorKind {
  kOther,
  kNamespace,      // A step that is a right in a namespace of one's own.
  kReportPlace,    // The report's directory is not this run's, or was not looked at.
  kNotTls,         // The other end does not speak TLS.
  kDirectory,      // It is a directory.
  kAddressTaken,   // Another program listens there.
  kSha256Objects,  // A repository that names its objects by SHA-256.
  kPushLost,       // Another push was first.
  kNameTwice,      // JSON with a name twice in an object.
  kReported,       // The run's report says it.
  kPermission,     // The token lacks a permission, which the hint names.
};

// A place in a file that a person wrote; line and column count from 1, and are 0 if not known.
struct ErrorPlace {
  std::string file;
  int line = 0;
  int column = 0;
};

// One failure. `what` is lower case without a full stop; `hint` is something to type, or empty.
struct [[nodiscard]] Error {
  Code code = Code::kIo;
  std::string what;
  std::string hint = {};
  int os_error = 0;  // The errno of the system call that failed; 0 if none did.
  ErrorKind kind = ErrorKind::kOther;
  ErrorPlace place = {};  // The place that `what` is about; without a file if it has none.
};

// Returns the error for input that is not what it should be.
Error Invalid(std::string_view what);

namespace base_internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
}  // namespace base_internal

// Aborts, in release too, when `condition` is false: a bug is never carried on with. (Not CHECK,
// which is Catch2's.)
#define ENSURE(condition) \
  ((condition) ? void(0) : ::base_internal::CheckFailed(__FILE__, __LINE__, #condition))

// A value of T, or the Error that prevented it.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  const T& value() const& {
    ENSURE(ok());
    return *std::get_if<0>(&state_);
  }
  T& value() & {
    ENSURE(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    ENSURE(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  const Error& error() const& {
    ENSURE(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    ENSURE(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

  // Puts what we were doing before the error: "openat: ..." becomes "reading the policy: openat:
  // ...".
  Result Context(std::string_view doing) && {
    if (!ok()) {
      Error& error = *std::get_if<1>(&state_);
      error.what = std::string(doing) + ": " + error.what;
      if (error.place.line == 0) error.place = {};
    }
    return std::move(*this);
  }
  // Sets the error's kind.
  Result Kind(ErrorKind kind) && {
    if (!ok()) std::get_if<1>(&state_)->kind = kind;
    return std::move(*this);
  }

 private:
  std::variant<T, Error> state_;
};

// Success without a value.
struct Done {};
using Status = Result<Done>;
inline Status Ok() { return Done{}; }

// Evaluates to the value, or returns the Error from the enclosing function. Only ever a whole
// initialiser or a whole statement, never nested.
#define TRY(x)                                      \
  __extension__({                                   \
    auto try_ = (x);                                \
    if (!try_.ok()) return std::move(try_).error(); \
    std::move(try_).value();                        \
  })

// Returns the error of a failed system call: "openat: No such file or directory". ENOENT is
// kNotFound.
Error Errno(std::string_view call, int saved_errno = errno);
