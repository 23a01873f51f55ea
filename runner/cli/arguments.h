// SPDX-License-Identifier: Apache-2.0
// The command line as text: which option was given which values. The command interprets them
// (cli/options.h). The only place that uses CLI11.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/options.h"

namespace cli {

struct Arguments {
  // The values by option name, in the order given; a switch has {"true"}. An option that was not
  // given is absent.
  std::map<std::string, std::vector<std::string>, std::less<>> values;
  std::vector<std::string> operands;
  std::vector<std::string> command;  // Behind `--`.
  bool help = false;                 // `--help` or `-h`: nothing else was checked.

  bool Has(std::string_view name) const { return values.contains(name); }
  // Returns the value given, or `fallback`.
  std::string Get(std::string_view name, std::string_view fallback = {}) const;
  // Returns every value given, in order.
  std::vector<std::string> All(std::string_view name) const;
};

// Reads `words` (everything behind the command's name) against `options`. Fails with kUsage: an
// unknown option (the hint is the nearest one), a value that is missing, an option given twice
// that is not repeatable.
Result<Arguments> ParseArguments(const std::vector<OptionSpec>& options,
                                 const std::vector<std::string>& words);

}  // namespace cli
