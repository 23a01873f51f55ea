// SPDX-License-Identifier: Apache-2.0
#include "watch/lines.h"

#include <algorithm>

#include "codec/text/neutral.h"
#include "codec/text/quantity.h"
#include "report/terminal/request_lines.h"

namespace watch {
namespace {

constexpr int64_t kHundred = 100;
constexpr int64_t kSteps[] = {90, 75, 50};  // Percent of a limit.

std::string Amount(int64_t value, const std::string& unit) {
  if (value < 0) return "not counted";
  if (unit == "bytes") return codec::RenderSize(value);
  return std::to_string(value) + (unit.empty() ? "" : " " + unit);
}

}  // namespace

std::string RenderLimit(const session::LimitUse& use) {
  std::string most = use.most > 0 ? " of " + Amount(use.most, use.unit) : ", no limit";
  return codec::NeutralLine(use.name) + ": " + Amount(use.used, use.unit) + most;
}

std::string RenderChange(const session::FileChange& change) {
  std::string paths = change.old_path.empty() ? "" : change.old_path + " to ";
  return codec::NeutralLine(change.kind + " " + paths + change.path +
                            (change.directory ? "/" : ""));
}

std::string Lines::Render(const Look& look) {
  std::string lines;
  if (look.requests) {
    for (const report::RequestEntry& entry : report::RenderRequests(*look.requests, false)) {
      if (told_.insert(entry.text).second) lines += entry.text;
    }
  }
  for (const session::FileChange& change : look.files.changes) {
    lines += "file     " + RenderChange(change) + "\n";
  }
  if (!look.files.complete) lines += "file     more changed than could be looked at\n";
  if (look.state) lines += RenderLimits(*look.state);
  return lines;
}

std::string Lines::RenderLimits(const session::SandboxState& state) {
  std::string lines;
  for (const session::LimitUse& use : state.limits) {
    if (use.most <= 0 || use.used < 0) continue;
    double percent = static_cast<double>(use.used) * kHundred / static_cast<double>(use.most);
    const auto* step = std::find_if(std::begin(kSteps), std::end(kSteps), [&](int64_t one) {
      return percent >= static_cast<double>(one);
    });
    if (step == std::end(kSteps) || percent_[use.name] >= *step) continue;
    percent_[use.name] = *step;
    lines += "limit    " + RenderLimit(use) + "\n";
  }
  return lines;
}

}  // namespace watch
