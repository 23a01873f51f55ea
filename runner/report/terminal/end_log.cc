// SPDX-License-Identifier: Apache-2.0
#include "report/terminal/end_log.h"

#include <unistd.h>

#include <algorithm>

#include "advise/suggest.h"
#include "base/log.h"
#include "base/sys.h"
#include "codec/text/neutral.h"
#include "policy/model/host_pattern.h"
#include "report/findings.h"
#include "report/wording.h"

namespace report {
namespace {

// The lines of each kind; the rest is counted.
constexpr size_t kLinesMax = 20;
constexpr size_t kTextBytesMax = 300;
constexpr size_t kWhyBytesMax = 4000;  // Why there was nothing to do: all of it.

std::string Shown(const std::string& text) { return codec::NeutralLine(text, kTextBytesMax); }

// "CONNECT", "POST /v1/x".
std::string Attempt(const advise::Denial& denial) {
  if (denial.method.empty()) return "CONNECT";
  return denial.path.empty() ? denial.method : denial.method + " " + Shown(denial.path);
}

void LogMore(std::string_view what, size_t all, const std::string& file) {
  if (all <= kLinesMax) return;
  logging::Warn(what, {{"count", std::to_string(all - kLinesMax)}, {"see", file}});
}

void LogFindings(const RunRecord& record, const std::string& directory) {
  // The refusal of the run is shown even if the agent has a lot to say.
  const std::vector<const Finding*> told = InOrder(record.findings);
  for (size_t i = 0; i < std::min(told.size(), kLinesMax); ++i) {
    const Finding& finding = *told[i];
    std::string where = finding.path.empty() ? "(all changes)" : finding.path;
    if (!finding.path.empty() && finding.line > 0) where += ":" + std::to_string(finding.line);
    const bool note = finding.severity == Severity::kNote;
    const bool agent = finding.source == FindingSource::kAgent;
    (note ? logging::Info : logging::Warn)(
        finding.refuses && finding.rule == "check" ? "a check failed"
        : finding.refuses                          ? "a gate refused"
        : agent                                    ? "the agent found"
                                                   : "a gate found",
        {{"where", Shown(where)}, {"rule", finding.rule}, {"what", Shown(finding.message)}});
  }
  LogMore("more findings", told.size(), directory + "/findings.sarif");
}

void LogLimits(const RunRecord& record) {
  for (const LimitRecord& limit : record.limits) {
    if (!limit.fired) continue;
    logging::Warn("limit reached", {{"limit", limit.name}, {"used", DescribeLimit(limit)}});
  }
}

void LogFailures(const RunRecord& record, const std::string& directory) {
  for (size_t i = 0; i < std::min(record.failures.size(), kLinesMax); ++i) {
    const FailedConnection& failed = record.failures[i];
    logging::Warn("connection failed", {{"host", Shown(policy::BracketedHost(failed.host))},
                                        {"port", std::to_string(failed.port)},
                                        {"times", std::to_string(failed.count)},
                                        {"reason", Shown(failed.reason)}});
  }
  LogMore("more connections failed", record.failures.size(), directory + "/events.log");
}

// Returns how many there were: the list is bounded.
size_t CountOf(const std::vector<DeniedRequest>& denials, int64_t dropped) {
  return denials.size() + static_cast<size_t>(std::max<int64_t>(dropped, 0));
}

}  // namespace

void LogEnd(const RunRecord& record, const std::string& directory, const TerminalStyle& style) {
  if (style.live) {
    (void)sys::WriteAll(STDERR_FILENO, RenderEnd(record, directory, style));
    return;
  }
  LogRefusals(record.denials, record.denials_dropped, directory);
  LogFailures(record, directory);
  LogLimits(record);
  LogFindings(record, directory);
  const OutcomeRecord& outcome = record.outcome;
  if (outcome.kind == OutcomeKind::kSkipped) {
    logging::Info("nothing to do", {{"why", codec::NeutralLine(outcome.reason, kWhyBytesMax)}});
  } else if (!outcome.reason.empty()) {
    logging::Warn("run did not succeed", {{"why", Shown(outcome.reason)}});
  }
  logging::Info("run ended",
                {{"outcome", Render(outcome.kind)},
                 {"exit", std::to_string(outcome.exit_code)},
                 {"changed", std::to_string(record.changes.files)},
                 {"refused", std::to_string(CountOf(record.denials, record.denials_dropped))},
                 {"report", directory + "/report.html"}});
  const std::string apply = ApplyCommand(record, directory);
  if (!apply.empty()) logging::Info("nothing was applied", {{"to apply it", apply}});
}

void LogRefusals(const std::vector<DeniedRequest>& denials, int64_t dropped,
                 const std::string& directory) {
  for (size_t i = 0; i < std::min(denials.size(), kLinesMax); ++i) {
    const DeniedRequest& denied = denials[i];
    logging::Warn("refused",
                  {{"host", Shown(policy::BracketedHost(denied.denial.host))},
                   {"port", std::to_string(denied.denial.port)},
                   {"method", Attempt(denied.denial)},
                   {"times", std::to_string(denied.count)},
                   {"reason", Shown(DescribeRefusal(denied))},
                   {"to_allow", denied.allow_line.empty() ? "impossible" : denied.allow_line}});
  }
  bool advised = std::any_of(denials.begin(), denials.end(),
                             [](const auto& denied) { return !denied.allow_line.empty(); });
  if (advised)
    logging::Info("to_allow is a policy entry that would allow the request: review it before use",
                  {{"why", advise::kSuggestionWarning}});
  const size_t hidden = CountOf(denials, dropped) - std::min(denials.size(), kLinesMax);
  LogMore("more requests refused", kLinesMax + hidden, directory + "/events.log");
}

}  // namespace report
