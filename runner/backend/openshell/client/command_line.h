// SPDX-License-Identifier: Apache-2.0
// Runs the `openshell` program and returns its answer. Everything else in this folder talks to
// OpenShell through it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/child.h"
#include "base/deadline.h"
#include "base/program_places.h"
#include "base/result.h"
#include "codec/data/json.h"

namespace openshell {

// The releases that tests/openshell ran against; others are refused.
inline constexpr char kTestedReleases[] = "0.0.111 to 0.0.112";

// The releases whose gateways are asked by gRPC (rpc_access.h).
inline constexpr char kRpcReleases[] = "0.1";

using Variables = std::vector<std::pair<std::string, std::string>>;

// The answer of a command of OpenShell. Everything in it may come from a sandbox or a remote
// machine.
struct Answer {
  int status = 0;
  std::string output;  // At most kAnswerBytesMax; more is an error.
  std::string error;   // Its last bytes.
};
inline constexpr size_t kAnswerBytesMax = size_t{16} << 20;

// `openshell`, always with the configuration directory of one gateway, never the user's own.
class CommandLine {
 public:
  // `variables` are XDG_CONFIG_HOME and what else its programs need. `cancel` (borrowed, or -1)
  // becomes readable when no command is to be waited for any more.
  CommandLine(ProgramPlaces places, Variables variables, int cancel = -1)
      : places_(std::move(places)), variables_(std::move(variables)), cancel_(cancel) {}

  // Returns a copy without `cancel`, for clean-up after a run was interrupted.
  CommandLine Uncancelled() const { return {places_, variables_}; }

  // Runs `program` (`openshell` unless said otherwise) to its end. `input` (borrowed, or -1 for
  // none) is its standard input. Fails with kTemporary if it does not end in time.
  Result<Answer> Ask(std::vector<std::string> arguments, Deadline deadline,
                     const Variables& more = {}, const char* program = "openshell",
                     int input = -1) const;
  // Does the same; a status other than 0 is an Error (ErrorOf).
  Result<std::string> Do(std::vector<std::string> arguments, Deadline deadline,
                         const Variables& more = {}, const char* program = "openshell") const;
  // Returns the JSON that a command prints, without the warnings before it.
  Result<codec::Json> AskJson(std::vector<std::string> arguments, Deadline deadline) const;
  // Starts a command that goes on. `input`, `log` and `error_log` are as in Child.
  Result<Child> Start(std::vector<std::string> arguments, int input, int log = -1,
                      const char* program = "openshell", int error_log = -1) const;

  // Returns the release that the program is of: "0.0.112". Fails with kNotFound and where to get
  // it, with kUnsupported outside the releases this was tested with.
  Result<std::string> CheckVersion() const;

  const ProgramPlaces& places() const { return places_; }
  int cancel() const { return cancel_; }

 private:
  ProgramPlaces places_;
  Variables variables_;
  int cancel_;
};

// Reads both outputs of `child` until its end. Fails with kTemporary if it does not end in time, or
// `cancel` (borrowed, or -1) becomes readable.
Result<Answer> AwaitAnswer(Child child, Deadline deadline, int cancel = -1);

// Parses "openshell 0.0.112-dev.7+g2f7fb6559" -> "0.0.112". Fails with kUnsupported and the remedy.
Result<std::string> ParseVersion(std::string_view text);

// Returns the error for a failure: OpenShell's text on one line without its frame. Its code is
// kTemporary if the gateway cannot be reached, kSetup if it refuses the credentials or its
// certificate is not the expected one, kNotFound if what was named is not there.
Error ErrorOf(const std::string& what, std::string_view said);

}  // namespace openshell
