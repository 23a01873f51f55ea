// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mounts.h"

// Where the programs lie that this process starts on the host: the absolute places of a PATH, but
// none in the checkout, whose programs a stranger may have written. "In the checkout" is judged by
// real paths, and by mounts: a directory of it that is bound elsewhere is still in it.
class ProgramPlaces {
 public:
  // `checkout`: an absolute path; empty: there is none.
  ProgramPlaces(std::string_view search_path, const std::string& checkout);

  // The program of that name in the first place that has one outside the checkout; a script's
  // interpreter has to be outside as well. Empty: there is none.
  std::string Find(const std::string& name) const;

  // The places, as a PATH for what is started.
  std::string search_path() const;
  // The places in the checkout.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  // A file system and a path in it, which stay the same wherever it is mounted.
  using Location = std::pair<std::string, std::string>;

  Location Locate(const std::string& real) const;
  // Whether `path` leads into the checkout; true also for what cannot be followed.
  bool InCheckout(const std::string& path) const;
  bool InterpreterInCheckout(const std::string& program) const;

  std::vector<sys::Mount> mounts_;
  std::string checkout_;  // Real.
  Location checkout_location_;
  std::vector<std::string> places_;
  std::vector<std::string> left_out_;
};
