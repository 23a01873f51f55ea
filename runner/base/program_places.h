// SPDX-License-Identifier: Apache-2.0
// Where programs of the host are looked for: a PATH without the directories of the checkout. For
// everything that is started outside a sandbox.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mounts.h"

// The places where this process looks for programs that it starts on the host: the absolute
// directories of a PATH, except those in the checkout, whose programs an outsider may have written.
// Symbolic links are followed, and a directory of the checkout that is bind-mounted elsewhere is
// still in it.
class ProgramPlaces {
 public:
  // `checkout` is an absolute path, or empty for a run without a checkout.
  ProgramPlaces(std::string_view search_path, const std::string& checkout);

  // Returns the path of the first program of that name outside the checkout; the interpreter of a
  // script must be outside as well. Empty if nothing is found.
  std::string Find(const std::string& name) const;

  // Returns the places, as a PATH for what is started.
  std::string search_path() const;
  // Returns the places in the checkout.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  // A file system and a path in it, which stay the same wherever it is mounted.
  using Location = std::pair<std::string, std::string>;

  Location Locate(const std::string& real) const;
  // Returns whether `path` leads into the checkout; true also for what cannot be followed.
  bool InCheckout(const std::string& path) const;
  bool InterpreterInCheckout(const std::string& program) const;

  std::vector<sys::Mount> mounts_;
  std::string checkout_;  // Real.
  Location checkout_location_;
  std::vector<std::string> places_;
  std::vector<std::string> left_out_;
};
