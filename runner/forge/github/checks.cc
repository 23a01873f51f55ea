// SPDX-License-Identifier: Apache-2.0
#include "forge/github/checks.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "codec/text/neutral.h"
#include "codec/text/percent.h"

namespace forge {
namespace {

constexpr size_t kAnnotationsPerRequest = 50;
constexpr size_t kSummaryBytesMax = 65'535;
constexpr size_t kMessageBytesMax = 4000;  // GitHub: 64 KB.
constexpr size_t kTitleBytesMax = 255;
constexpr char kChecksPermission[] = "permissions: { checks: write }";

const char* LevelName(Level level) {
  return level == Level::kError ? "failure" : level == Level::kWarning ? "warning" : "notice";
}

codec::Json RenderCheckAnnotation(const Annotation& annotation) {
  codec::Json json;
  json.Set("path", codec::ValidUtf8(annotation.file))
      .Set("start_line", std::max(1, annotation.line))
      .Set("end_line", std::max({1, annotation.line, annotation.end_line}))
      .Set("annotation_level", LevelName(annotation.level))
      .Set("title", codec::NeutralLine(annotation.title, kTitleBytesMax))
      .Set("message", codec::NeutralLine(annotation.message, kMessageBytesMax));
  return json;
}

// The batch that begins at `from`.
codec::Json RenderOutput(const CheckRun& run, size_t from) {
  codec::Json annotations = codec::Json::EmptyArray();
  size_t end = std::min(run.annotations.size(), from + kAnnotationsPerRequest);
  for (size_t i = from; i < end; ++i) annotations.Push(RenderCheckAnnotation(run.annotations[i]));
  codec::Json output;
  output.Set("title", codec::NeutralLine(run.title, kTitleBytesMax))
      .Set("summary", codec::CutUtf8(codec::ValidUtf8(run.summary), kSummaryBytesMax))
      .Set("annotations", std::move(annotations));
  return output;
}

struct Found {
  int64_t id = 0;  // 0: there is none.
  size_t annotations = 0;
  bool completed = false;
};

Result<Found> Find(Client& client, const ApiPath& base, const CheckRun& run, Deadline deadline) {
  codec::Json json = TRY(client.Get((base / "commits" / run.head_sha / "check-runs")
                                        .Query("per_page", 100)
                                        .Query("filter", "all")
                                        .Query("check_name", run.name),
                                    kChecksPermission, deadline));
  const codec::Json* runs = json.Find("check_runs");
  if (runs == nullptr || runs->array() == nullptr) {
    return Error{Code::kTemporary, "the forge's response has no check runs"};
  }
  for (const codec::Json& entry : *runs->array()) {
    if (entry.StringAt("external_id") != run.external_id) continue;
    Found found;
    found.id = entry.IntegerAt("id");
    found.completed = entry.StringAt("status") == "completed";
    const codec::Json* output = entry.Find("output");
    if (output != nullptr) {
      found.annotations =
          static_cast<size_t>(std::max<int64_t>(0, output->IntegerAt("annotations_count")));
    }
    return found;
  }
  return Found();
}

}  // namespace

Status PostCheckRun(Client& client, const std::string& repository, const CheckRun& run,
                    Deadline deadline) {
  const ApiPath base = ApiPath::Repository(repository);
  Found found = TRY(Find(client, base, run, deadline));
  if (found.completed) return Ok();
  size_t done = found.annotations;
  // Counts the batch at hand; true when it is the last.
  auto advance = [&](codec::Json& body) {
    done = std::min(run.annotations.size(), done + kAnnotationsPerRequest);
    bool last = done == run.annotations.size();
    body.Set("status", last ? "completed" : "in_progress");
    if (last) body.Set("conclusion", run.conclusion);
    return last;
  };
  bool completed = false;
  if (found.id == 0) {
    WriteRequest request{"POST", base / "check-runs", {}, false, kChecksPermission};
    request.body.Set("name", run.name)
        .Set("head_sha", run.head_sha)
        .Set("external_id", run.external_id)
        .Set("output", RenderOutput(run, done));
    if (!run.details_url.empty()) request.body.Set("details_url", run.details_url);
    completed = advance(request.body);
    Result<std::optional<codec::Json>> created = client.Write(request, deadline);
    if (!created.ok() && client.may_have_arrived()) {
      found = TRY(Find(client, base, run, deadline));  // Else the error of the attempt stays.
      if (found.id == 0) return std::move(created).error();
      done = found.annotations;
      completed = found.completed;
    } else {
      std::optional<codec::Json> json = TRY(std::move(created));
      found.id = json ? json->IntegerAt("id") : 0;
    }
  }
  while (!completed) {
    WriteRequest request{"PATCH", base / "check-runs" / found.id, {}, false, kChecksPermission};
    request.body.Set("output", RenderOutput(run, done));
    completed = advance(request.body);
    TRY(client.Write(request, deadline));
  }
  return Ok();
}

}  // namespace forge
