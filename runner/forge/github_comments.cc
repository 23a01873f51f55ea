// SPDX-License-Identifier: Apache-2.0
#include "forge/github_comments.h"

#include <algorithm>
#include <utility>

#include "codec/text/neutral.h"
#include "net/retry.h"

namespace forge {
namespace {

// GitHub closes a conversation at 2500 comments.
constexpr int kPagesMax = 100;
constexpr int kCommentsPerPage = 100;
// A page of the longest comments there can be, every character escaped as \uXXXX\uXXXX.
constexpr size_t kAnswerBytesMax = 96 * 1024 * 1024;
constexpr char kActionsLogin[] = "github-actions[bot]";

Result<codec::Json> ParseAnswer(const net::HttpResponse& response) {
  codec::JsonBounds bounds;
  bounds.bytes_max = kAnswerBytesMax;
  Result<codec::Json> json = codec::ParseJson(response.body, bounds);
  // A gateway's page, or an answer cut short: another attempt may bring a whole one.
  if (!json.ok()) return Error{Code::kTemporary, "the forge's response is not JSON"};
  return json;
}

Result<Comment> ReadComment(const codec::Json& json) {
  Comment comment;
  comment.id = json.IntegerAt("id");
  if (comment.id <= 0) return Error{Code::kTemporary, "the forge's response is not a comment"};
  if (const codec::Json* user = json.Find("user")) {
    comment.author_id = user->IntegerAt("id");
    comment.author_login = user->StringAt("login");
  }
  std::string url = json.StringAt("html_url");
  bool printable = std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (printable && (url.rfind("https://", 0) == 0 || url.rfind("http://", 0) == 0)) {
    comment.url = std::move(url);
  }
  comment.text = json.StringAt("body");
  return comment;
}

bool Success(const net::HttpResponse& response) {
  return response.status >= 200 && response.status < 300;
}

bool HasNextPage(const net::HttpResponse& response) {
  // RFC 8288. The address in it is not followed: it could lead the token to another host.
  return response.Header("link").find("rel=\"next\"") != std::string::npos;
}

std::string RenderBody(const std::string& text) {
  codec::Json body = codec::Json::EmptyObject();
  body.Set("body", text);
  return codec::RenderJsonLine(body);
}

// GitHub Enterprise Server has REST at /api/v3 and GraphQL at /api/graphql; GitHub has /graphql.
std::string GraphQlUrl(std::string api_url) {
  constexpr std::string_view kV3 = "/v3";
  if (api_url.size() > kV3.size() &&
      api_url.compare(api_url.size() - kV3.size(), kV3.size(), kV3) == 0) {
    api_url.resize(api_url.size() - kV3.size());
  }
  return api_url + "/graphql";
}

std::string MessageOf(const net::HttpResponse& response) {
  codec::JsonBounds bounds;
  bounds.bytes_max = size_t{1} << 16;
  Result<codec::Json> json = codec::ParseJson(response.body, bounds);
  std::string message = json.ok() ? json.value().StringAt("message") : "";
  return message.empty() ? "" : ": " + codec::NeutralLine(message, 200);
}

}  // namespace

bool Viewer::Wrote(const Comment& comment) const {
  if (id != 0) return comment.author_id == id;
  return comment.author_login == login;  // "[bot]" is in it, and in no person's login.
}

GitHubComments::GitHubComments(net::HttpClient client, std::string api_url, std::string repository,
                               int64_t proposal_number, const Secret& token)
    : client_(std::move(client)),
      api_url_(std::move(api_url)),
      repository_(std::move(repository)),
      proposal_number_(proposal_number),
      token_(token) {}

Result<net::HttpResponse> GitHubComments::Send(const std::string& method, const std::string& url,
                                               const std::string& body, bool repeatable,
                                               Deadline deadline) {
  net::HttpRequest request;
  request.method = method;
  request.url = url;
  request.headers = {{"accept", "application/vnd.github+json"},
                     {"x-github-api-version", "2022-11-28"}};
  if (!body.empty()) request.headers.emplace_back("content-type", "application/json");
  request.body = body;
  request.bearer = &token_;
  net::RetryPolicy policy;
  policy.repeatable = repeatable;
  return net::SendWithRetries(client_, request, policy, deadline);
}

Error GitHubComments::Explain(const net::HttpResponse& response) const {
  std::string said =
      "the forge responded with " + std::to_string(response.status) + MessageOf(response);
  std::string where = repository_ + "#" + std::to_string(proposal_number_);
  if (net::RateLimited(response)) return Error{Code::kTemporary, "rate limited: " + said};
  switch (response.status) {
    case 401:
      return Error{Code::kSetup, "the token is not valid: " + said,
                   "GITHUB_TOKEN: ${{ github.token }}"};
    case 403:
      return Error{Code::kRefused, "the token is not allowed to comment on " + where + ": " + said,
                   "permissions: { pull-requests: write }"};
    case 404:
      return Error{Code::kNotFound, "no " + where + " that this token can see: " + said,
                   "permissions: { pull-requests: write }"};
    case 410:
      return Error{Code::kRefused, where + " does not accept comments: " + said};
    case 422:
      return Error{Code::kInvalid, "the forge rejected the comment: " + said};
    default:
      break;
  }
  bool passing = response.status >= 500 || response.status == 408;
  // 3xx: a renamed repository. Following it could lead the token elsewhere.
  return Error{passing ? Code::kTemporary : Code::kRefused, said};
}

Result<Viewer> GitHubComments::AskGraphQl(Deadline deadline) {
  net::HttpResponse response = TRY(Send(
      "POST", GraphQlUrl(api_url_), R"({"query":"query { viewer { login } }"})", true, deadline));
  if (response.status >= 500 || net::RateLimited(response)) return Explain(response);
  std::string login;
  if (response.status == 200) {
    codec::Json json = TRY(ParseAnswer(response));
    const codec::Json* data = json.Find("data");
    const codec::Json* viewer = data == nullptr ? nullptr : data->Find("viewer");
    if (viewer != nullptr) login = viewer->StringAt("login");
  }
  if (login.empty()) return Viewer{0, kActionsLogin};
  // /user did not know the token, so it is an application's: its login ends so, and no person's
  // does.
  if (login.find("[bot]") == std::string::npos) login += "[bot]";
  return Viewer{0, login};
}

Result<Viewer> GitHubComments::WhoAmI(Deadline deadline) {
  net::HttpResponse response = TRY(Send("GET", api_url_ + "/user", "", true, deadline));
  if (response.status == 200) {
    codec::Json json = TRY(ParseAnswer(response));
    Viewer viewer{json.IntegerAt("id"), json.StringAt("login")};
    if (viewer.id == 0 && viewer.login.empty()) {
      return Error{Code::kTemporary, "the forge's response does not name a user"};
    }
    return viewer;
  }
  bool unknown_here = response.status == 403 || response.status == 404;
  if (unknown_here && !net::RateLimited(response)) return AskGraphQl(deadline);
  return Explain(response);
}

Result<std::vector<Comment>> GitHubComments::List(Deadline deadline) {
  std::vector<Comment> comments;
  for (int page = 1; page <= kPagesMax; ++page) {
    std::string url =
        api_url_ + "/repos/" + repository_ + "/issues/" + std::to_string(proposal_number_) +
        "/comments?per_page=" + std::to_string(kCommentsPerPage) + "&page=" + std::to_string(page);
    net::HttpResponse response = TRY(Send("GET", url, "", true, deadline));
    if (!Success(response)) return Explain(response);
    codec::Json json = TRY(ParseAnswer(response));
    if (json.array() == nullptr)
      return Error{Code::kTemporary, "the forge's response is not a list"};
    for (const codec::Json& item : *json.array()) comments.push_back(TRY(ReadComment(item)));
    if (!HasNextPage(response)) {
      std::sort(comments.begin(), comments.end(),
                [](const Comment& a, const Comment& b) { return a.id < b.id; });
      return comments;
    }
  }
  return Error{Code::kInvalid, "more than " + std::to_string(kPagesMax * kCommentsPerPage) +
                                   " comments on one pull request"};
}

Result<Comment> GitHubComments::Create(const std::string& text, Deadline deadline) {
  std::string url = api_url_ + "/repos/" + repository_ + "/issues/" +
                    std::to_string(proposal_number_) + "/comments";
  net::HttpResponse response = TRY(Send("POST", url, RenderBody(text), false, deadline));
  if (!Success(response)) return Explain(response);
  codec::Json json = TRY(ParseAnswer(response));
  return ReadComment(json);
}

Result<Comment> GitHubComments::Update(int64_t id, const std::string& text, Deadline deadline) {
  std::string url = api_url_ + "/repos/" + repository_ + "/issues/comments/" + std::to_string(id);
  net::HttpResponse response = TRY(Send("PATCH", url, RenderBody(text), true, deadline));
  if (!Success(response)) return Explain(response);
  codec::Json json = TRY(ParseAnswer(response));
  return ReadComment(json);
}

Status GitHubComments::Delete(int64_t id, Deadline deadline) {
  std::string url = api_url_ + "/repos/" + repository_ + "/issues/comments/" + std::to_string(id);
  net::HttpResponse response = TRY(Send("DELETE", url, "", true, deadline));
  if (Success(response) || response.status == 404 || response.status == 410) return Ok();
  return Explain(response);
}

}  // namespace forge
