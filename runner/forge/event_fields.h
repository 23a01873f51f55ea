// SPDX-License-Identifier: Apache-2.0
// Checks the fields of an event, whichever forge it is from, and reads the variables it comes in.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "forge/event.h"

namespace forge {

// The ref to which a job fetches the branch whose policy holds: the one that a proposal is to be
// merged into, otherwise the default branch. It lies outside of what branches and tags can occupy.
inline constexpr char kBaseRef[] = "refs/agentic-ci/base";

// Returns the command that fetches `branch` of `remote` to that ref, for error messages.
std::string FetchBaseCommand(const std::string& remote, const std::string& branch);

// The environment, read by name; an empty variable is one that is not set. Borrows the reader.
class Variables {
 public:
  explicit Variables(const EnvironmentReader& read) : read_(read) {}
  std::string Get(const std::string& name, const std::string& fallback = "") const;
  // True also if it is empty.
  bool Has(const char* name) const { return read_(name).has_value(); }
  bool True(const std::string& name) const { return Get(name) == "true"; }
  // True if it is set to anything but "false" or "0", in any case.
  bool IsSet(const char* name) const;

 private:
  const EnvironmentReader& read_;
};

// True for decimal digits, at most 20.
bool IsNumber(std::string_view text);

// True for git's hash for "nothing": a branch just made, or just deleted.
bool IsZeroSha(std::string_view text);

// True for a person's or an application's login: "octocat", "dependabot[bot]", "Copilot".
bool IsLogin(std::string_view login);

// True for http or https, without a user and without blanks.
bool IsHttpUrl(std::string_view url);

std::string WithoutSlash(std::string url);

// Returns the text as an error quotes it.
std::string Quoted(std::string_view text);

// CheckSha fails with kInvalid for a malformed hash, CheckRef with kRefused for an unsupported
// branch name. Empty fields pass.
Status CheckSha(const char* field, const std::string& sha);
Status CheckRef(const char* field, const std::string& ref);

}  // namespace forge
