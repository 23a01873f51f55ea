// SPDX-License-Identifier: Apache-2.0
#include "forge/client.h"

#include <algorithm>
#include <set>
#include <utility>

#include "codec/text/neutral.h"
#include "codec/text/quantity.h"
#include "net/retry.h"

namespace forge {
namespace {

constexpr int kPerPage = 100;
constexpr int kPerPageMax = 50;   // The bound of Gitea, unless its administrator says otherwise.
constexpr int kAttemptsMax = 64;  // The deadline ends the attempts before.
// A restart of the forge is ridden out, and a wrong address not waited for: a quarter of a minute.
constexpr int kUnansweredMax = 6;
// A page of the longest comments there can be, every character escaped as \uXXXX\uXXXX.
constexpr size_t kResponseBytesMax = 96 * 1024 * 1024;

// A token in clear is everybody's on the way; on the machine itself there is no way.
bool KeepsTokenPrivate(const std::string& url) {
  if (url.starts_with("https://")) return true;
  constexpr std::string_view kHttp = "http://";
  if (!url.starts_with(kHttp)) return false;
  std::string authority = url.substr(kHttp.size(), url.find('/', kHttp.size()) - kHttp.size());
  if (authority.empty()) return false;
  std::string host = authority.front() == '[' ? authority.substr(0, authority.find(']') + 1)
                                              : authority.substr(0, authority.find(':'));
  return host == "127.0.0.1" || host == "[::1]" || host == "localhost";
}

Result<codec::Json> ParseResponse(const net::HttpResponse& response) {
  if (response.body.empty()) return codec::Json();
  codec::JsonBounds bounds;
  bounds.bytes_max = kResponseBytesMax;
  Result<codec::Json> json = codec::ParseJson(response.body, bounds);
  // A proxy's page, or a response cut short: another attempt may bring a whole one.
  if (!json.ok()) return Error{Code::kTemporary, "the forge's response is not JSON"};
  return json;
}

// "message" of GitHub and Gitea, "message" or "error" of GitLab: a string, a list or an object.
std::string MessageOf(const net::HttpResponse& response) {
  codec::JsonBounds bounds;
  bounds.bytes_max = size_t{1} << 16;
  Result<codec::Json> json = codec::ParseJson(response.body, bounds);
  if (!json.ok()) return "";
  for (const char* name : {"message", "error"}) {
    const codec::Json* message = json.value().Find(name);
    if (message == nullptr || message->is_null()) continue;
    std::string text = message->string() ? *message->string() : codec::RenderJsonLine(*message);
    return ": " + codec::NeutralLine(text, 200);
  }
  return "";
}

// GitHub Enterprise Server has REST at /api/v3 and GraphQL at /api/graphql; GitHub has /graphql.
std::string GraphQlUrl(std::string api_url) {
  constexpr std::string_view kV3 = "/v3";
  if (api_url.ends_with(kV3)) api_url.resize(api_url.size() - kV3.size());
  return api_url + "/graphql";
}

// Returns whether this is Gitea's last page: if it gives a count, that is believed; otherwise the
// page behind the last one is empty.
bool IsLastPage(const net::HttpResponse& response, const codec::Json& page, size_t read) {
  Result<int64_t> total = codec::ParseCount(response.Header("x-total-count"));
  if (total.ok()) return static_cast<int64_t>(read) >= total.value() || page.array()->empty();
  return page.array()->empty();
}

bool HasNextPage(const net::HttpResponse& response) {
  // RFC 8288. The address in it is not followed: it could lead the token to another host.
  return response.Header("link").find("rel=\"next\"") != std::string::npos;
}

bool Mentions(const codec::Json& object, const char* member, std::string_view text) {
  return object.StringAt(member).find(text) != std::string::npos;
}

// GitHub says some things by a text only. GraphQL answers 200 to what is limited ("Rate limits and
// query limits for the GraphQL API") and to what failed by chance; REST answers 422, which says
// that the request is wrong, to content that comes too quickly.
int StatusOf(const net::HttpResponse& response, bool graphql) {
  constexpr size_t kErrorBytesMax = 64 * 1024;
  const bool maybe = graphql ? response.status == 200 : response.status == 422;
  if (!maybe || response.body.size() > kErrorBytesMax) return response.status;
  Result<codec::Json> parsed = codec::ParseJson(response.body);
  if (!parsed.ok()) return response.status;
  constexpr std::string_view kTooQuickly = "submitted too quickly";
  if (!graphql && Mentions(parsed.value(), "message", kTooQuickly)) return 429;
  const codec::Json* errors = parsed.value().Find("errors");
  if (errors == nullptr || errors->array() == nullptr) return response.status;
  for (const codec::Json& error : *errors->array()) {
    if (error.StringAt("type") == "RATE_LIMITED" || error.StringAt("code") == "abuse" ||
        Mentions(error, "message", "secondary rate limit") ||
        Mentions(error, "message", kTooQuickly)) {
      return 429;
    }
    if (graphql && Mentions(error, "message", "Something went wrong while executing")) return 502;
  }
  return response.status;
}

}  // namespace

std::string ShownUrl(const std::string& url) {
  bool printable = std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c < 0x7f; });
  return printable && (url.starts_with("https://") || url.starts_with("http://")) ? url : "";
}

Client::Client(ClientOptions options, net::HttpClient http)
    : options_(std::move(options)), http_(std::move(http)) {}

Result<Client> Client::Create(ClientOptions options) {
  if (options.token.empty()) {
    return Error{Code::kSetup, "no token to post with", options.token_hint};
  }
  if (!KeepsTokenPrivate(options.api_url)) {
    return Error{Code::kSetup,
                 "the token is sent only over https, not to '" +
                     codec::NeutralLine(options.api_url, 200) + "'",
                 options.api_url_hint};
  }
  while (options.api_url.back() == '/') options.api_url.pop_back();
  net::HttpClientOptions http;
  http.ca_file = options.ca_file;
  http.proxy = options.proxy;
  http.response_bytes_max = kResponseBytesMax;
  http.stall_seconds = options.stall_seconds;
  net::HttpClient client = TRY(net::HttpClient::Create(std::move(http)));
  return Client(std::move(options), std::move(client));
}

std::string Client::UrlOf(const ApiPath& path) const {
  return path.graphql() ? GraphQlUrl(options_.api_url) : options_.api_url + path.text();
}

Result<net::HttpResponse> Client::Send(const WriteRequest& wanted, Deadline deadline) {
  if (!wanted.path.valid()) {
    return Error{Code::kInvalid,
                 "not an address of the API: " + codec::NeutralLine(wanted.path.text(), 200)};
  }
  net::HttpRequest request;
  request.method = wanted.method;
  request.url = UrlOf(wanted.path);
  request.headers = options_.headers;
  if (!wanted.body.is_null()) {
    request.headers.emplace_back("content-type", "application/json");
    request.body = codec::RenderJsonLine(wanted.body);
  }
  request.bearer = &options_.token;
  net::RetryPolicy policy;
  policy.repeatable = wanted.repeatable;
  policy.attempts_max = kAttemptsMax;
  policy.unanswered_max = kUnansweredMax;
  policy.status_of = [graphql = wanted.path.graphql()](const net::HttpResponse& response) {
    return StatusOf(response, graphql);
  };
  status_ = 0;
  unclear_ = true;
  net::HttpResponse response = TRY(net::SendWithRetries(http_, request, policy, deadline));
  ++sent_;
  status_ = response.status;
  unclear_ = response.status >= 500;
  if (response.status >= 200 && response.status < 300) return response;
  Error error = Explain(response, wanted.permission);
  // Git's words, which a forge may pass on.
  if (MessageOf(response).find("cannot lock ref") != std::string::npos) {
    error.kind = ErrorKind::kPushLost;
  }
  return error;
}

Error Client::Explain(const net::HttpResponse& response, const std::string& permission) const {
  std::string said =
      "the forge responded with " + std::to_string(response.status) + MessageOf(response);
  const std::string& where = options_.where;
  if (net::RateLimited(response)) return Error{Code::kTemporary, "rate limited: " + said};
  switch (response.status) {
    case 401:
      return Error{Code::kSetup, "the token is not valid: " + said, options_.token_hint};
    case 403:
      // What no permission of the token mends.
      if (said.find("issue is locked") != std::string::npos ||
          said.find("locked issue") != std::string::npos) {
        return Error{Code::kRefused, "the conversation of " + where + " is locked: " + said,
                     "unlock the conversation"};
      }
      if (said.find("not permitted to create or approve pull requests") != std::string::npos) {
        return Error{Code::kRefused, where + " takes no pull requests of its workflows: " + said,
                     "Settings > Actions > General: Allow GitHub Actions to create and approve "
                     "pull requests"};
      }
      return Error{Code::kRefused, "the token is not allowed to do this on " + where + ": " + said,
                   permission, 0, ErrorKind::kPermission};
    case 404:
      return Error{Code::kNotFound, "no " + where + " that this token can see: " + said, permission,
                   0, ErrorKind::kPermission};
    case 410:
      return Error{Code::kRefused, where + " does not accept comments: " + said};
    case 409:
    case 413:
    case 422:
      return Error{Code::kInvalid, "the forge rejected the request: " + said};
    default:
      break;
  }
  bool passing = response.status >= 500 || response.status == 408;
  // 3xx: a renamed repository. Following it could lead the token elsewhere.
  return Error{passing ? Code::kTemporary : Code::kRefused, said};
}

Result<codec::Json> Client::Get(const ApiPath& path, const std::string& permission,
                                Deadline deadline) {
  return Ask({"GET", path, {}, true, permission}, deadline);
}

Result<std::string> Client::GetText(const ApiPath& path, const std::string& permission,
                                    Deadline deadline) {
  net::HttpResponse response = TRY(Send({"GET", path, {}, true, permission}, deadline));
  return std::move(response.body);
}

Result<std::vector<codec::Json>> Client::GetAll(const ApiPath& path, const std::string& permission,
                                                size_t elements_max, Deadline deadline) {
  std::vector<codec::Json> elements;
  const bool link = options_.pages_by_link;
  std::set<int64_t> seen;
  const ApiPath first = link ? path.Query("per_page", kPerPage) : path.Query("limit", kPerPageMax);
  for (int page = 1;; ++page) {
    WriteRequest request{"GET", first.Query("page", page), {}, true, permission};
    net::HttpResponse response = TRY(Send(request, deadline));
    codec::Json json = TRY(ParseResponse(response));
    if (json.array() == nullptr) {
      return Error{Code::kTemporary, "the forge's response is not a list"};
    }
    const size_t known = elements.size();
    for (const codec::Json& element : *json.array()) {
      // An element that moved to the next page meanwhile comes twice.
      const int64_t id = element.IntegerAt("id");
      if (id == 0 || seen.insert(id).second) elements.push_back(element);
    }
    // A list that does not come in pages is the same on each.
    const bool repeated = !link && page > 1 && elements.size() == known;
    if (elements.size() > elements_max) {
      return Error{Code::kInvalid, "more than " + std::to_string(elements_max) + " entries at " +
                                       codec::NeutralLine(path.text(), 200)};
    }
    const bool last = link ? !HasNextPage(response) : IsLastPage(response, json, elements.size());
    if (last || repeated) return elements;
  }
}

Result<codec::Json> Client::Ask(const WriteRequest& request, Deadline deadline) {
  net::HttpResponse response = TRY(Send(request, deadline));
  return ParseResponse(response);
}

Result<std::optional<codec::Json>> Client::Write(const WriteRequest& request, Deadline deadline) {
  if (options_.dry_run) {
    codec::Json planned;
    planned.Set("method", request.method).Set("url", UrlOf(request.path)).Set("body", request.body);
    planned_.push_back(std::move(planned));
    return std::optional<codec::Json>();
  }
  Result<codec::Json> answer = Ask(request, deadline);
  if (!answer.ok()) return std::move(answer).error();
  return std::optional(std::move(answer).value());
}

}  // namespace forge
