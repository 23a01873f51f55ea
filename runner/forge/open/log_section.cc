// SPDX-License-Identifier: Apache-2.0
#include "forge/open/log_section.h"

#include "forge/open/open.h"

namespace forge {
namespace {

constexpr std::string_view kErase = "\x1b[0K";

}  // namespace

// https://docs.gitlab.com/ci/jobs/job_logs/#custom-collapsible-sections
LogSection MakeLogSection(const EnvironmentReader& environment, std::string_view name,
                          std::string_view title, int64_t now_s) {
  if (!FactsOf(ForgeOf(environment)).folds_log) return {};
  const std::string mark = ":" + std::to_string(now_s) + ":" + std::string(name);
  const std::string erase(kErase);
  return {erase + "section_start" + mark + "[collapsed=true]\r" + erase + std::string(title) + "\n",
          erase + "section_end" + mark + "\r" + erase + "\n"};
}

}  // namespace forge
