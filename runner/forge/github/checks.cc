// SPDX-License-Identifier: Apache-2.0
#include "forge/github/checks.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "codec/text/neutral.h"

namespace forge {
namespace {

constexpr size_t kAnnotationsPerRequest = 50;
constexpr size_t kSummaryBytesMax = 65'535;
constexpr size_t kMessageBytesMax = 4000;  // GitHub: 64 KB.
constexpr size_t kTitleBytesMax = 255;
constexpr int kLooks = 4;  // Without any progress of another post.
constexpr auto kBetweenLooks = std::chrono::milliseconds(500);
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
  int64_t id = 0;  // 0 if there is none.
  size_t annotations = 0;
  bool completed = false;
};

// One check run with all its annotations, as it is on the forge by now.
class Checker {
 public:
  Checker(Client& client, const std::string& repository, const CheckRun& run, Deadline deadline)
      : client_(client), base_(ApiPath::Repository(repository)), run_(run), deadline_(deadline) {}

  Status Post() {
    Found found = TRY(Find());
    if (found.id == 0) {
      const int64_t own = TRY(Create());
      if (own == 0) return Complete(0, 0);  // A dry run.
      // Another post may have done the same at this moment. Of several the oldest has the
      // annotations, which cannot be taken back; the others have its conclusion.
      found = TRY(Find());
      if (found.id != 0 && found.id != own) return Update(own, run_.annotations.size());
      return Complete(own, found.annotations);
    }
    if (found.completed) return Ok();
    // Either a post that did not come to its end, or one that is at it.
    for (int look = 0; look < kLooks; ++look) {
      std::this_thread::sleep_until(std::min(deadline_, Deadline::After(kBetweenLooks)).at());
      const Found now = TRY(Find());
      if (now.completed) return Ok();
      if (now.annotations != found.annotations) look = -1;
      found = now;
    }
    return Complete(found.id, found.annotations);
  }

 private:
  // The oldest of this report.
  Result<Found> Find() {
    codec::Json json = TRY(client_.Get((base_ / "commits" / run_.head_sha / "check-runs")
                                           .Query("per_page", 100)
                                           .Query("filter", "all")
                                           .Query("check_name", run_.name),
                                       kChecksPermission, deadline_));
    const codec::Json* runs = json.Find("check_runs");
    if (runs == nullptr || runs->array() == nullptr) {
      return Error{Code::kTemporary, "the forge's response has no check runs"};
    }
    Found found;
    for (const codec::Json& entry : *runs->array()) {
      const int64_t id = entry.IntegerAt("id");
      if (entry.StringAt("external_id") != run_.external_id) continue;
      if (found.id != 0 && found.id < id) continue;
      found = {id, 0, entry.StringAt("status") == "completed"};
      const codec::Json* output = entry.Find("output");
      if (output == nullptr) continue;
      found.annotations =
          static_cast<size_t>(std::max<int64_t>(0, output->IntegerAt("annotations_count")));
    }
    return found;
  }

  // Without annotations. 0 in a dry run.
  Result<int64_t> Create() {
    WriteRequest request{"POST", base_ / "check-runs", {}, false, kChecksPermission};
    request.body.Set("name", run_.name)
        .Set("head_sha", run_.head_sha)
        .Set("external_id", run_.external_id)
        .Set("status", "in_progress");
    if (!run_.details_url.empty()) request.body.Set("details_url", run_.details_url);
    Result<std::optional<codec::Json>> created = client_.Write(request, deadline_);
    if (!created.ok() && client_.may_have_arrived()) {
      const Found found = TRY(Find());  // Else the error of the attempt stays.
      if (found.id == 0) return std::move(created).error();
      return found.id;
    }
    std::optional<codec::Json> json = TRY(std::move(created));
    return json ? json->IntegerAt("id") : 0;
  }

  // Sends the annotations from `done` on, in batches.
  Status Complete(int64_t id, size_t done) {
    for (;;) {
      TRY(Update(id, done));
      done += kAnnotationsPerRequest;
      if (done >= run_.annotations.size()) return Ok();
    }
  }

  // One batch; with the last of them the check run is complete.
  Status Update(int64_t id, size_t done) {
    WriteRequest request{"PATCH", base_ / "check-runs" / id, {}, false, kChecksPermission};
    const bool last = done + kAnnotationsPerRequest >= run_.annotations.size();
    request.body.Set("output", RenderOutput(run_, done))
        .Set("status", last ? "completed" : "in_progress");
    if (last) request.body.Set("conclusion", run_.conclusion);
    TRY(client_.Write(request, deadline_));
    return Ok();
  }

  Client& client_;
  ApiPath base_;
  const CheckRun& run_;
  Deadline deadline_;
};

}  // namespace

Status PostCheckRun(Client& client, const std::string& repository, const CheckRun& run,
                    Deadline deadline) {
  return Checker(client, repository, run, deadline).Post();
}

}  // namespace forge
