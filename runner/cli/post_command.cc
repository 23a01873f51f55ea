// SPDX-License-Identifier: Apache-2.0
#include "cli/post_command.h"

#include <chrono>
#include <optional>

#include "base/sys.h"
#include "cli/github.h"
#include "cli/output.h"
#include "codec/data/json.h"
#include "codec/text/quantity.h"
#include "forge/event.h"
#include "forge/post.h"
#include "report/read.h"

namespace cli {
namespace {

// Longer than all retries against a forge that recovers, shorter than anybody waits for a comment.
constexpr std::chrono::minutes kPostingLimit{3};

Result<int64_t> ProposalNumber(const Arguments& arguments, const forge::Event& event) {
  if (!arguments.Has("number")) {
    if (event.proposal_number > 0) return event.proposal_number;
    return Error{Code::kSetup, "the event does not name a pull request", "--number NUMBER"};
  }
  Result<int64_t> number = codec::ParseCount(arguments.Get("number"));
  if (number.ok()) return number;
  return Error{Code::kUsage, "--number: " + number.error().what};
}

Result<forge::PostOptions> ReadOptions(const Arguments& arguments, const forge::Event& event) {
  forge::PostOptions options;
  options.repository = arguments.Get("repository", event.repository);
  if (options.repository.empty()) {
    return Error{Code::kSetup, "the event does not name a repository", "--repository OWNER/NAME"};
  }
  if (!forge::ValidRepository(options.repository)) {
    return Error{Code::kUsage, "--repository: '" + options.repository + "' is not OWNER/NAME"};
  }
  options.proposal_number = TRY(ProposalNumber(arguments, event));
  std::string api_url = arguments.Get("api-url", event.api_url);
  if (!api_url.empty()) options.api_url = api_url;
  options.marker_key = arguments.Get("marker", event.workflow + "/" + event.job);
  options.ca_file = arguments.Get("ca-file");
  options.proxy = sys::Environment("HTTPS_PROXY").value_or("");
  if (!event.run_url.empty()) options.full_text_at = "the artifacts of " + event.run_url;
  std::optional<std::string> token = sys::Environment("GITHUB_TOKEN");
  if (!token || token->empty()) {
    return Error{Code::kSetup, "GITHUB_TOKEN is not set", "GITHUB_TOKEN: ${{ github.token }}"};
  }
  options.token = Secret(*token);
  return options;
}

std::string RenderOutcome(const forge::PostOutcome& outcome, bool json) {
  if (!json) return (outcome.created ? "created " : "updated ") + outcome.comment_url + "\n";
  codec::Json object;
  object.Set("comment_url", outcome.comment_url);
  object.Set("comment_id", outcome.comment_id);
  object.Set("created", outcome.created);
  object.Set("cut", outcome.cut);
  return codec::RenderJson(object);
}

}  // namespace

Result<int> PostCommand(const Arguments& arguments) {
  if (arguments.operands.size() != 1) {
    return Error{Code::kUsage, "post needs exactly one report directory",
                 "agentic-ci post REPORT-DIR"};
  }
  forge::Event event = TRY(forge::ReadEvent(sys::Environment));
  forge::PostOptions options = TRY(ReadOptions(arguments, event));
  report::PostedReport posted = TRY(report::ReadReport(arguments.operands.front()));
  options.body = posted.summary_markdown;
  forge::PostOutcome outcome = TRY(
      forge::PostSticky(options, Deadline::After(kPostingLimit)).Context("posting the comment"));
  TRY(WriteOutputs(event, {{"comment-url", outcome.comment_url}}));
  TRY(WriteStepSummary(event, posted.summary_markdown));
  TRY(Print(RenderOutcome(outcome, arguments.Has("json"))));
  return 0;
}

}  // namespace cli
