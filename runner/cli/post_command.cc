// SPDX-License-Identifier: Apache-2.0
#include "cli/post_command.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/sys.h"
#include "cli/github.h"
#include "cli/output.h"
#include "codec/data/json.h"
#include "codec/text/nearest.h"
#include "codec/text/quantity.h"
#include "forge/actions.h"
#include "forge/event.h"
#include "post/pull_request.h"
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

Result<post::Target> ReadTarget(const Arguments& arguments, const forge::Event& event) {
  post::Target target;
  target.repository = arguments.Get("repository", event.repository);
  if (target.repository.empty()) {
    return Error{Code::kSetup, "the event does not name a repository", "--repository OWNER/NAME"};
  }
  if (!forge::ValidRepository(target.repository)) {
    return Error{Code::kUsage, "--repository: '" + target.repository + "' is not OWNER/NAME"};
  }
  target.number = TRY(ProposalNumber(arguments, event));
  target.marker_key = arguments.Get("marker", event.workflow + "/" + event.job);
  target.run_url = event.run_url;
  target.gitea = event.forge == forge::ForgeKind::kGitea;
  if (!event.run_url.empty()) target.full_text_at = "the artifacts of " + event.run_url;
  return target;
}

Result<forge::Client> Connect(const Arguments& arguments, const forge::Event& event,
                              const post::Target& target) {
  forge::ClientOptions options = forge::GitHubClient(target.repository, target.number);
  std::string api_url = arguments.Get("api-url", event.api_url);
  if (!api_url.empty()) options.api_url = api_url;
  options.ca_file = arguments.Get("ca-file");
  options.proxy = sys::Environment("HTTPS_PROXY").value_or("");
  options.dry_run = arguments.Has("dry-run");
  std::optional<std::string> token = sys::Environment("GITHUB_TOKEN");
  if (!token || token->empty()) {
    return Error{Code::kSetup, "GITHUB_TOKEN is not set", "GITHUB_TOKEN: ${{ github.token }}"};
  }
  options.token = Secret(*token);
  return forge::Client::Create(std::move(options));
}

// "comment,review": unknown words are refused, and so is what this forge's API does not have.
Result<post::Parts> ReadParts(const Arguments& arguments, const forge::Event& event) {
  const std::string asked = arguments.Get("what", "comment,review");
  post::Parts parts{false, false, false};
  std::string_view list = asked;
  while (!list.empty()) {
    std::string_view word = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), word.size() + 1));
    if (word == "comment") {
      parts.comment = true;
    } else if (word == "review") {
      parts.review = true;
    } else if (word == "check") {
      parts.check = true;
    } else {
      return Error{Code::kUsage, "--what: unknown part '" + std::string(word) + "'",
                   "--what " + codec::NearestName(word, {"comment", "review", "check"})};
    }
  }
  if (event.forge == forge::ForgeKind::kGitea && parts.check) {
    return Error{Code::kUsage, "--what: Gitea and Forgejo have no check runs",
                 "--what comment,review"};
  }
  return parts;
}

std::string RenderOutcome(const post::Outcome& outcome, bool json) {
  const post::Delivered& delivered = outcome.delivered;
  if (json) {
    codec::Json object;
    object.Set("comment_url", outcome.comment.comment_url)
        .Set("comment_id", outcome.comment.comment_id)
        .Set("created", outcome.comment.created)
        .Set("cut", outcome.comment.cut)
        .Set("on_lines", delivered.on_lines)
        .Set("on_files", delivered.on_files)
        .Set("in_summary", delivered.in_summary)
        .Set("resolved", delivered.resolved)
        .Set("moved_on", outcome.moved_on)
        .Set("refused", codec::Json::FromStrings(outcome.refused));
    return codec::RenderJson(object);
  }
  std::string text;
  const std::string& url = outcome.comment.comment_url;
  if (!url.empty()) text = (outcome.comment.created ? "created " : "updated ") + url + "\n";
  if (delivered.on_lines + delivered.on_files + delivered.in_summary + delivered.resolved > 0) {
    text += "review: " + std::to_string(delivered.on_lines) + " beside lines, " +
            std::to_string(delivered.on_files) + " on files, " +
            std::to_string(delivered.in_summary) + " in the comment only, " +
            std::to_string(delivered.resolved) + " resolved\n";
  }
  for (const std::string& refused : outcome.refused) text += "refused: " + refused + "\n";
  return text;
}

// What the forge took nowhere is shown on the run's own page.
std::string Undelivered(const post::Outcome& outcome) {
  std::vector<forge::Annotation> annotations;
  for (const post::Remark& remark : outcome.undelivered) {
    annotations.push_back({post::LevelOf(remark.severity), "agentic-ci: " + remark.rule,
                           remark.message, remark.path, remark.line, remark.end_line});
  }
  for (const std::string& refused : outcome.refused) {
    annotations.push_back({forge::Level::kWarning, "agentic-ci", "not posted: " + refused, "", 0});
  }
  return forge::RenderAnnotations(annotations);
}

}  // namespace

Result<int> PostCommand(const Arguments& arguments) {
  if (arguments.operands.size() != 1) {
    return Error{Code::kUsage, "post needs exactly one report directory",
                 "agentic-ci post REPORT-DIR"};
  }
  forge::Event event = TRY(forge::ReadEvent(sys::Environment));
  post::Target target = TRY(ReadTarget(arguments, event));
  post::Parts parts = TRY(ReadParts(arguments, event));
  forge::Client client = TRY(Connect(arguments, event, target));
  report::PostedReport posted = TRY(report::ReadReport(arguments.operands.front()));
  post::Outcome outcome =
      post::PostToPullRequest(client, target, parts, posted, Deadline::After(kPostingLimit));
  if (client.dry_run()) {
    TRY(std::move(outcome.ended));
    std::string lines;
    for (const codec::Json& request : client.planned())
      lines += codec::RenderJsonLine(request) + "\n";
    TRY(Print(lines));
    return 0;
  }
  if (event.forge != forge::ForgeKind::kNone && !arguments.Has("json")) {
    TRY(Print(Undelivered(outcome)));
  }
  TRY(WriteStepSummary(event, posted.summary_markdown));
  TRY(std::move(outcome.ended));
  TRY(WriteOutputs(event, {{"comment-url", outcome.comment.comment_url}}));
  TRY(Print(RenderOutcome(outcome, arguments.Has("json"))));
  return 0;
}

}  // namespace cli
