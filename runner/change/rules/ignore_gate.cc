// SPDX-License-Identifier: Apache-2.0
#include "change/rules/ignore_gate.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/sys.h"

namespace change {
namespace {

constexpr int64_t kTooMuch = kIgnoreCostMax + 1;
constexpr size_t kDirectoriesMax = 100000;
// The `**` of one line; more are refused, since a third `**` multiplies once more with the depth of
// the path.
constexpr int64_t kDoubleStarsMax = 2;
constexpr int64_t kStarsMax = 12;

int64_t CostOfLine(std::string_view line) {
  int64_t doubles = 0;
  int64_t stars = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '*') continue;
    bool twice = i + 1 < line.size() && line[i + 1] == '*';
    ++(twice ? doubles : stars);
    if (twice) ++i;
  }
  if (doubles > kDoubleStarsMax || stars > kStarsMax) return kTooMuch;
  return 1 + 64 * doubles * doubles + 4 * stars;
}

}  // namespace

int64_t CostOfRules(std::string_view rules) {
  int64_t cost = 0;
  while (!rules.empty() && cost <= kIgnoreCostMax) {
    size_t end = std::min(rules.find('\n'), rules.size());
    std::string_view line = rules.substr(0, end);
    rules.remove_prefix(std::min(end + 1, rules.size()));
    if (!line.empty() && line.front() != '#') cost += CostOfLine(line);
  }
  return std::min(cost, kTooMuch);
}

int64_t IgnoreGate::CostOf(const std::string& directory) {
  auto known = costs_.find(directory);
  if (known != costs_.end()) return known->second;
  if (costs_.size() >= kDirectoriesMax) return kTooMuch;
  int64_t cost = kTooMuch;
  Result<Fd> file =
      sys::OpenBeneath(checkout_.get(), directory + ".gitignore", O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat facts {};
  if (!file.ok()) {
    // A directory of the agent's own has no rules in the checkout.
    if (file.error().code == Code::kNotFound) cost = 0;
  } else if (::fstat(file.value().get(), &facts) == 0 && S_ISREG(facts.st_mode)) {
    Result<std::string> rules = sys::ReadAll(file.value().get(), kIgnoreBytesMax);
    if (rules.ok()) cost = CostOfRules(rules.value());
  }
  costs_.emplace(directory, cost);
  return cost;
}

bool IgnoreGate::Open(std::string_view path) {
  if (spent_ > kIgnoreSpentMax) return false;
  while (path.ends_with('/')) path.remove_suffix(1);
  std::string_view directory = path.substr(0, path.rfind('/') + 1);
  if (any_asked_ && directory == last_directory_) return last_open_;
  int64_t cost = CostOf("");
  for (size_t slash = directory.find('/');
       slash != std::string_view::npos && cost <= kIgnoreCostMax;
       slash = directory.find('/', slash + 1)) {
    cost += CostOf(std::string(directory.substr(0, slash + 1)));
  }
  any_asked_ = true;
  last_directory_ = directory;
  last_open_ = cost <= kIgnoreCostMax;
  return last_open_;
}

}  // namespace change
