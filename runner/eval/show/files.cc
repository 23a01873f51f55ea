// SPDX-License-Identifier: Apache-2.0
#include "eval/show/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <map>

#include "base/sys.h"
#include "base/version.h"
#include "codec/text/neutral.h"
#include "eval/show/page.h"
#include "eval/show/text.h"
#include "report/findings.h"
#include "report/write.h"

namespace eval {
namespace {

using codec::Json;

Json GradedJson(const Graded& graded) {
  Json json;
  json.Set("criterion", graded.criterion)
      .Set("value", Render(graded.value))
      .Set("reason", codec::ValidUtf8(graded.reason))
      .Set("only_blocked", graded.only_blocked);
  if (graded.parts.empty()) return json;
  Json parts = Json::EmptyArray();
  for (const Graded& part : graded.parts) parts.Push(GradedJson(part));
  return json.Set("parts", std::move(parts));
}

Json RateJson(const Rate& rate) {
  Json json;
  json.Set("count", rate.count).Set("all", rate.all);
  return json.Set("low", rate.low).Set("high", rate.high);
}

Json NamesJson(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json json = Json::EmptyObject();
  for (const auto& [name, value] : pairs) json.Set(name, value);
  return json;
}

std::string_view EndingName(Ending ending) {
  switch (ending) {
    case Ending::kEnded:
      return "ended";
    case Ending::kFailed:
      return "failed";
    case Ending::kLost:
      return "lost";
    case Ending::kNeverRan:
      return "never-ran";
  }
  return "";
}

Json CellJson(const CellResult& cell) {
  const Verdict& verdict = cell.verdict;
  Json json;
  json.Set("cell", cell.Name())
      .Set("user_task", cell.user)
      .Set("injection_task", cell.injection)
      .Set("trial", cell.trial)
      .Set("ending", EndingName(cell.ending))
      .Set("ending_reason", codec::ValidUtf8(cell.ending_reason))
      .Set("utility", GradedJson(verdict.utility));
  if (verdict.security) {
    json.Set("security", GradedJson(*verdict.security))
        .Set("outcome", Render(verdict.outcome))
        .Set("delivery", Render(verdict.delivery))
        .Set("delivery_reason", verdict.delivery_reason)
        .Set("delivery_unobserved", verdict.delivery_unobserved)
        .Set("vectors", Json::FromStrings(cell.vectors));
  } else {
    json.Set("unspecific", Json::FromStrings(verdict.unspecific));
  }
  json.Set("channels", NamesJson(cell.channels))
      .Set("evidence", NamesJson(cell.hashes))
      .Set("answer", cell.answer)
      .Set("report", "cells/" + cell.Name() + "/report")
      .Set("ms", cell.ms)
      .Set("agent_ms", cell.agent_ms)
      .Set("attempts", cell.attempts)
      .Set("setup_sha256", cell.setup);
  return json;
}

bool IsCompromise(const CellResult& cell) {
  return !cell.injection.empty() && (cell.verdict.outcome == Outcome::kSucceeded ||
                                     cell.verdict.outcome == Outcome::kAttempted);
}

}  // namespace

Json ToJson(const Results& results) {
  const Metrics metrics = MetricsOf(results);
  Json outcomes = Json::EmptyObject();
  for (size_t i = 0; i < kOutcomes; ++i) {
    outcomes.Set(std::string(Render(static_cast<Outcome>(i))), metrics.outcomes[i]);
  }
  Json rates = Json::EmptyObject();
  rates.Set("benign_utility", RateJson(metrics.benign_utility))
      .Set("utility_under_attack", RateJson(metrics.utility_under_attack))
      .Set("secure_utility", RateJson(metrics.secure_utility))
      .Set("attack_success", RateJson(metrics.attack_success))
      .Set("attack_success_reached", RateJson(metrics.attack_success_reached))
      .Set("agent_compromise", RateJson(metrics.agent_compromise))
      .Set("coverage", RateJson(metrics.coverage))
      .Set("inconclusive", RateJson(metrics.inconclusive))
      .Set("errors", RateJson(metrics.errors));
  Json cells = Json::EmptyArray();
  for (const CellResult& cell : results.cells) cells.Push(CellJson(cell));
  Json json;
  json.Set("version", 1)
      .Set("tool_version", kVersion)
      .Set("suite", results.suite)
      .Set("suite_file", results.suite_file)
      .Set("suite_sha256", results.suite_sha256)
      .Set("outcomes", std::move(outcomes))
      .Set("rates", std::move(rates))
      .Set("cells", std::move(cells))
      .Set("missing", Json::FromStrings(results.missing))
      .Set("notes", Json::FromStrings(results.notes));
  return json;
}

Json ToMidojoJson(const Results& results) {
  struct Entry {
    Truth utility = Truth::kTrue;
    Truth security = Truth::kFalse;
    std::string reason;
    bool injected = false;
  };
  std::vector<std::string> order;
  std::map<std::string, Entry> entries;
  auto worse = [](Truth a, Truth b, Truth worst) {
    if (a == worst || b == worst) return worst;
    return a == Truth::kUnknown || b == Truth::kUnknown ? Truth::kUnknown : a;
  };
  for (const CellResult& cell : results.cells) {
    const std::string key = cell.user + "," + cell.injection;
    if (!entries.contains(key)) order.push_back(key);
    Entry& entry = entries[key];
    entry.utility = worse(entry.utility, cell.verdict.utility.value, Truth::kFalse);
    if (cell.injection.empty()) continue;
    entry.injected = true;
    Truth security = Truth::kUnknown;
    if (IsCompromise(cell)) security = Truth::kTrue;
    if (cell.verdict.outcome == Outcome::kResisted) security = Truth::kFalse;
    entry.security = worse(entry.security, security, Truth::kTrue);
    if (security == Truth::kTrue) entry.reason = ReasonOf(cell);
  }
  auto value = [](Truth truth) {
    return truth == Truth::kUnknown ? Json() : Json(truth == Truth::kTrue);
  };
  Json utility = Json::EmptyObject();
  Json security = Json::EmptyObject();
  Json reasons = Json::EmptyObject();
  for (const std::string& key : order) {
    const Entry& entry = entries.at(key);
    utility.Set(key, value(entry.utility));
    security.Set(key, entry.injected ? value(entry.security) : Json());
    reasons.Set(key, entry.reason.empty() ? Json() : Json(codec::ValidUtf8(entry.reason)));
  }
  Json json;
  json.Set("utility", std::move(utility)).Set("security", std::move(security));
  return json.Set("security_reason", std::move(reasons));
}

std::string RenderJunit(const Results& results) {
  std::string cases;
  size_t failures = 0;
  size_t errors = 0;
  size_t skipped = 0;
  for (const CellResult& cell : results.cells) {
    std::string inside;
    std::string message =
        "message=\"" +
        codec::HtmlText(codec::NeutralLine(RenderOutcome(cell) + ": " + ReasonOf(cell))) + "\"/>";
    bool injected = !cell.injection.empty();
    bool failed = injected ? cell.verdict.outcome == Outcome::kSucceeded
                           : cell.verdict.utility.value == Truth::kFalse;
    bool error = injected ? cell.verdict.outcome == Outcome::kError : !IsJudged(cell.ending);
    bool open = injected && (cell.verdict.outcome == Outcome::kInconclusive ||
                             cell.verdict.outcome == Outcome::kNotApplicable);
    if (failed) inside = "<failure " + message;
    if (error) inside = "<error " + message;
    if (open) inside = "<skipped " + message;
    failures += failed && !error ? 1 : 0;
    errors += error ? 1 : 0;
    skipped += open ? 1 : 0;
    cases += "  <testcase classname=\"" + codec::HtmlText(results.suite) + "\" name=\"" +
             codec::HtmlText(cell.Name()) + "\" time=\"" + std::to_string(cell.ms / 1000) + "." +
             std::to_string(1000 + cell.ms % 1000).substr(1) + "\">" + inside + "</testcase>\n";
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"" +
         codec::HtmlText(results.suite) + "\" tests=\"" + std::to_string(results.cells.size()) +
         "\" failures=\"" + std::to_string(failures) + "\" errors=\"" + std::to_string(errors) +
         "\" skipped=\"" + std::to_string(skipped) + "\">\n" + cases + "</testsuite>\n";
}

Json ToSarif(const Results& results) {
  Json list = Json::EmptyArray();
  for (const CellResult& cell : results.cells) {
    if (!IsCompromise(cell)) continue;
    bool succeeded = cell.verdict.outcome == Outcome::kSucceeded;
    std::string text = "The injection '" + cell.injection + "' " + RenderOutcome(cell) +
                       " in the task '" + cell.user + "': " + codec::NeutralLine(ReasonOf(cell));
    for (const std::string& vector : cell.vectors) text += "\nIt was in: " + vector;
    Json place;
    place.Set("artifactLocation", Json().Set("uri", results.suite_file));
    Json locations = Json::EmptyArray();
    locations.Push(Json().Set("physicalLocation", std::move(place)));
    Json result;
    result.Set("ruleId", "injection/" + cell.injection)
        .Set("level", succeeded ? "error" : "warning")
        .Set("message", Json().Set("text", report::SarifText(text)))
        .Set("locations", std::move(locations));
    list.Push(std::move(result));
  }
  Json driver;
  driver.Set("name", "agentic-ci eval").Set("version", kVersion);
  Json run;
  run.Set("tool", Json().Set("driver", std::move(driver))).Set("results", std::move(list));
  Json runs = Json::EmptyArray();
  runs.Push(std::move(run));
  Json sarif;
  sarif.Set("$schema", "https://json.schemastore.org/sarif-2.1.0.json").Set("version", "2.1.0");
  return sarif.Set("runs", std::move(runs));
}

Status WriteResults(const std::string& directory, const Results& results) {
  std::string lines;
  for (const CellResult& cell : results.cells) {
    lines += codec::RenderJsonLine(CellJson(cell)) + "\n";
  }
  const std::pair<std::string, std::string> files[] = {
      {"cells.jsonl", lines},
      {"results.json", codec::RenderJson(ToMidojoJson(results))},
      {"junit.xml", RenderJunit(results)},
      {"eval.sarif", codec::RenderJson(ToSarif(results))},
      {"summary.md", RenderMarkdown(results)},
      {"eval.html", RenderPage(results)},
      {"eval.json", codec::RenderJson(ToJson(results))},
  };
  const Fd into = TRY(sys::Open(directory, O_RDONLY | O_DIRECTORY).Context("writing the results"));
  // Two evaluations of the same shard may end at once; a file system without locks goes without.
  while (::flock(into.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  // An earlier one would pass for that of these results if another file could not be written.
  if (::unlinkat(into.get(), "eval.json", 0) != 0 && errno != ENOENT) {
    return Errno("removing " + directory + "/eval.json");
  }
  for (const auto& [name, text] : files) {
    TRY(report::WriteWhole(into.get(), name, text).Context("writing " + name));
  }
  return Ok();
}

}  // namespace eval
