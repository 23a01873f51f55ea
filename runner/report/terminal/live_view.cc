// SPDX-License-Identifier: Apache-2.0
#include "report/terminal/live_view.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys.h"
#include "codec/text/neutral.h"
#include "codec/text/percent.h"
#include "record/limits.h"
#include "record/ocsf.h"
#include "report/verdict.h"
#include "report/wording.h"

namespace report {
namespace {

constexpr size_t kReadBytesMax = size_t{256} << 10;
constexpr size_t kSeenMax = 200;
constexpr size_t kFindingsMax = 20;
constexpr size_t kRequestColumns = 44;

constexpr std::string_view kRed = "31";
constexpr std::string_view kGreen = "32";
constexpr std::string_view kYellow = "33";
constexpr std::string_view kDim = "2";

std::string Paint(std::string_view text, std::string_view code, const TerminalStyle& style) {
  if (!style.colour) return std::string(text);
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

std::string Neutral(std::string_view text, size_t bytes_max = 200) {
  return codec::RedactTokens(codec::NeutralLine(text, bytes_max));
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// "file://" and an absolute path; what is not a path's byte is escaped.
std::string FileUrl(const std::string& path) { return "file://" + codec::PercentEncodePath(path); }

// OSC 8: terminals that do not know it show the text alone.
std::string LinkTo(const std::string& path, const TerminalStyle& style) {
  const std::string shown = Neutral(path, 1000);
  if (!style.colour || !path.starts_with('/')) return shown;
  return "\x1b]8;;" + FileUrl(path) + "\x1b\\" + shown + "\x1b]8;;\x1b\\";
}

std::string Join(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) {
    if (!part.empty()) out += (out.empty() ? "" : " · ") + part;
  }
  return out;
}

std::string ControlsOf(const IsolationRecord& isolation, const TerminalStyle& style) {
  if (isolation.controls.empty()) return {};
  const bool all = CountEnforced(isolation) == static_cast<int64_t>(isolation.controls.size());
  return Paint(DescribeControls(isolation) + " enforced", all ? kGreen : kYellow, style);
}

}  // namespace

TerminalStyle FindTerminalStyle() {
  const std::string term = sys::Environment("TERM").value_or("");
  const bool terminal = ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
  const bool live = terminal && !term.empty() && term != "dumb";
  return {live, live && sys::Environment("NO_COLOR").value_or("").empty()};
}

std::string RenderStart(const RunRecord& record, const TerminalStyle& style) {
  std::string sandbox;
  for (const auto& [phase, ms] : record.phases_ms) {
    if (phase == "sandbox") sandbox = "sandbox " + std::to_string(ms) + " ms";
  }
  return Paint("●", kGreen, style) + " " +
         Join({"policy " + Neutral(ShortPolicy(record.policy)), sandbox,
               ControlsOf(record.isolation, style)}) +
         "\n";
}

std::string RenderEnd(const RunRecord& record, const std::string& directory,
                      const TerminalStyle& style) {
  const Tone tone = ToneOf(record);
  const std::string_view colour = tone == Tone::kGood   ? kGreen
                                  : tone == Tone::kWarn ? kYellow
                                                        : kRed;
  const auto neutral = [](std::string_view text) { return Neutral(text, 300); };
  std::string out =
      Paint((tone == Tone::kBad ? "✗ " : "✓ ") + Neutral(Badge(record.outcome)), colour, style) +
      "  " + VerdictPlaces(record, {neutral, neutral}) + "\n";
  size_t refusing = 0;
  for (const Finding& finding : record.findings) {
    if (!finding.refuses || refusing++ >= kFindingsMax) continue;
    out += "  " + Paint("✗", kRed, style) + " " + Neutral(PlaceOf(finding)) + "  " +
           Paint(Neutral(finding.rule) + ": " + Neutral(finding.message, 300), kDim, style) + "\n";
  }
  if (refusing > kFindingsMax) {
    out += "  … and " + std::to_string(refusing - kFindingsMax) + " more\n";
  }
  // Work that no patch carries must not be missed.
  for (const Finding& finding : record.findings) {
    if (finding.rule != kLostRefRule && finding.rule != kConflictRule) continue;
    const std::string place = finding.path.empty() ? "" : Neutral(PlaceOf(finding)) + "  ";
    out += "  " + Paint("!", kYellow, style) + " " + place + Neutral(finding.message, 300) + "\n";
  }
  const int64_t refused = CountAttempts(record);
  const std::string apply = ApplyCommand(record, directory);
  const std::string last =
      apply.empty() ? "" : "  apply it: " + Neutral(apply, 600) + " (or run with --apply)\n";
  return out + "  " +
         Join({DescribeChanges(record.changes),
               refused > 0 ? Plural(refused, "request") + " refused" : "",
               HumanDuration(DurationSeconds(record)), Neutral(DescribeCost(record.usage)),
               LinkTo(directory + "/report.html", style)}) +
         "\n" + last;
}

std::string RenderAgentLine(std::string_view entry, const TerminalStyle& style) {
  return Paint("│", kDim, style) + " " + std::string(entry) + "\n";
}

LiveView::LiveView(const std::string& events, const TerminalStyle& style) : style_(style) {
  if (!style.live) return;
  Result<Fd> opened = sys::Open(events, O_RDONLY | O_NOFOLLOW);
  if (opened.ok()) events_ = std::move(opened).value();
}

std::string LiveView::TakeLines() {
  std::string out;
  std::string chunk(size_t{64} << 10, '\0');
  for (size_t total = 0; events_.valid() && total < kReadBytesMax;) {
    const ssize_t got = ::read(events_.get(), chunk.data(), chunk.size());
    if (got <= 0) break;
    total += static_cast<size_t>(got);
    std::string_view bytes(chunk.data(), static_cast<size_t>(got));
    for (size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
      pending_ += bytes.substr(0, end);
      bytes.remove_prefix(end + 1);
      out += TakeRecord(pending_);
      pending_.clear();
    }
    // A line that is longer than a record can be is not one.
    if (pending_.size() + bytes.size() <= record::kRecordLineBytesMax) pending_ += bytes;
  }
  return out;
}

std::string LiveView::TakeRecord(std::string_view line) {
  using Outcome = record::Event::Outcome;
  const std::optional<record::Record> parsed = record::ParseOcsf(line);
  const auto* event = parsed ? std::get_if<record::Event>(&*parsed) : nullptr;
  if (event == nullptr || event->host.empty() || event->outcome == Outcome::kNone) return {};
  const bool allowed = event->outcome == Outcome::kAllowed || event->outcome == Outcome::kAudited;
  const bool denied = event->outcome == Outcome::kDenied;
  if (allowed) ++allowed_;
  if (denied) ++refused_;
  const std::string at = event->host + ":" + std::to_string(event->port);
  std::string request =
      Neutral(event->method.empty() ? at : event->method + " " + at + event->path);
  const std::string program = Neutral(FileName(event->binary), 60);
  const std::string key =
      std::to_string(static_cast<int>(event->outcome)) + " " + request + " " + program;
  if (seen_.size() >= kSeenMax || !seen_.insert(key).second) return {};
  if (seen_.size() == kSeenMax) return "  … further requests are in events.log\n";
  // "…" and other characters of several bytes make a column or two too few: it is only an indent.
  if (request.size() < kRequestColumns) request.resize(kRequestColumns, ' ');
  const std::string sign = allowed  ? Paint("✓", kGreen, style_)
                           : denied ? Paint("✗", kRed, style_)
                                    : Paint("!", kYellow, style_);
  const std::string why = allowed ? "" : Neutral(event->reason);
  return sign + " " + request + "  " + program + (why.empty() ? "" : "  ") +
         Paint(why, kDim, style_) + "\n";
}

std::string LiveView::RenderStatus(int64_t seconds, size_t columns) const {
  // ASCII: a byte is a column.
  const std::string text = HumanCount(allowed_) + " allowed, " + HumanCount(refused_) +
                           " refused | " + HumanDuration(static_cast<double>(seconds));
  return Paint(text.substr(0, columns > 1 ? columns - 1 : 0), kDim, style_);
}

}  // namespace report
