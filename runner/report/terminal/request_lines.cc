// SPDX-License-Identifier: Apache-2.0
#include "report/terminal/request_lines.h"

#include "codec/text/neutral.h"

namespace report {
namespace {

constexpr size_t kLineBytesMax = 600;

std::string Line(std::string_view text) {
  return codec::RedactTokens(codec::NeutralLine(text, kLineBytesMax)) + "\n";
}

std::string Request(const std::string& method, const std::string& host, int64_t port,
                    const std::string& path, const std::string& program) {
  std::string at = host + ":" + std::to_string(port) + path;
  return (method.empty() ? at : method + " " + at) + (program.empty() ? "" : " by " + program);
}

}  // namespace

std::vector<RequestEntry> RenderRequests(const DenialList& list, bool counted) {
  auto times = [&](int64_t count) {
    return counted && count > 1 ? ", " + std::to_string(count) + " times" : std::string();
  };
  auto more = [&](std::string_view begin, int64_t dropped) {
    return Line(std::string(begin) + (counted ? std::to_string(dropped) + " more" : "more") +
                " than can be listed: see events.ocsf.jsonl");
  };
  using Outcome = record::Event::Outcome;
  std::vector<RequestEntry> entries;
  for (const AllowedRequest& one : list.allowed) {
    entries.push_back(
        {Outcome::kAllowed,
         Line("allowed  " + Request(one.method, one.host, one.port, one.path, one.binary) +
              times(one.count))});
  }
  if (list.allowed_dropped > 0) {
    entries.push_back({Outcome::kAllowed, more("allowed  ", list.allowed_dropped)});
  }
  for (const DeniedRequest& one : list.denials) {
    const advise::Denial& denial = one.denial;
    std::string entry = Line(
        "refused  " + Request(denial.method, denial.host, denial.port, denial.path, denial.binary) +
        times(one.count) + ": " + one.reason);
    if (!one.allow_line.empty()) entry += Line("         would be allowed by  " + one.allow_line);
    entries.push_back({Outcome::kDenied, std::move(entry)});
  }
  if (list.dropped > 0) entries.push_back({Outcome::kDenied, more("refused  ", list.dropped)});
  for (const FailedConnection& one : list.failures) {
    entries.push_back(
        {Outcome::kFailed, Line("failed   " + Request({}, one.host, one.port, {}, {}) +
                                times(one.count) + ": " + one.reason)});
  }
  return entries;
}

}  // namespace report
