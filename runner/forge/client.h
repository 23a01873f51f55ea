// SPDX-License-Identifier: Apache-2.0
// A forge's HTTP API under one token: retries, pages, bounded responses, errors that a user can act
// on, and dry runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "base/secret.h"
#include "codec/data/json.h"
#include "forge/api_path.h"
#include "net/http_client.h"

namespace forge {

struct ClientOptions {
  std::string api_url;  // https, or http to a loopback address only; no slash at the end.
  std::string where;    // The place that is posted to, for errors: "acme/site#7".
  Secret token;
  std::string ca_file;  // If empty, the system's bundle (net::SystemCaBundle).
  net::Proxy proxy;
  std::string token_hint;  // The remedy if the token is not valid.
  // The remedy if the address is not.
  std::string api_url_hint = "--api-url https://api.github.com";
  // A list's Link header says whether there is more, as GitHub's and GitLab's do; Gitea leaves it
  // out of some lists, and gives as many entries as it likes.
  bool pages_by_link = true;
  // Headers beside those of every request.
  std::vector<std::pair<std::string, std::string>> headers = {};
  bool dry_run = false;  // Requests that write are kept in planned(), not sent.
  // A request has failed if nothing moves for this long: a forge that hangs must not take all the
  // time there is.
  int stall_seconds = 60;
};

// A request that writes.
struct WriteRequest {
  std::string method = "POST";
  ApiPath path;             // Below api_url.
  codec::Json body = {};    // Null for no body.
  bool repeatable = false;  // Sending it twice does no harm. PUT and DELETE never do.
  std::string permission =
      {};  // The right to grant if it is refused: "permissions: { checks: write }".
};

class Client {
 public:
  // Fails with kSetup without a token, and for an address that would show it on the way.
  static Result<Client> Create(ClientOptions options);

  // Errors of all requests:
  //   kSetup      401: the token is not known
  //   kRefused    403, 410, 451, and redirects, which are not followed: they could lead the token
  //               elsewhere
  //   kNotFound   404
  //   kInvalid    400, 409, 413, 422: what was sent is not accepted (`status()` tells them apart)
  //   kTemporary  rate limits, 5xx, unreachable, cut, not JSON, or `deadline` passed, after retries

  // Fails with kInvalid, before anything is sent, if `path` is not valid().
  Result<codec::Json> Get(const ApiPath& path, const std::string& permission, Deadline deadline);
  // Returns the response's body as it is: no JSON.
  Result<std::string> GetText(const ApiPath& path, const std::string& permission,
                              Deadline deadline);
  // Returns the elements of all pages of a list; fails with kInvalid beyond `elements_max`.
  Result<std::vector<codec::Json>> GetAll(const ApiPath& path, const std::string& permission,
                                          size_t elements_max, Deadline deadline);
  // Returns the response, or nothing in a dry run. A response without a body is null.
  Result<std::optional<codec::Json>> Write(const WriteRequest& request, Deadline deadline);
  // Does what Write does, also in a dry run: for a request that reads and needs a body (GraphQL).
  Result<codec::Json> Ask(const WriteRequest& request, Deadline deadline);

  int status() const { return status_; }  // The status of the last response; 0 if there was none.
  // Returns whether the last request that failed may have been acted on all the same.
  bool may_have_arrived() const { return unclear_; }
  const std::string& api_url() const { return options_.api_url; }
  const std::string& where() const { return options_.where; }
  bool dry_run() const { return options_.dry_run; }
  // Returns whether the token is one of a GitHub App's installation, as GITHUB_TOKEN is: GET /user
  // does not know it.
  bool of_installation() const { return options_.token.reveal().starts_with("ghs_"); }
  // Returns {"method", "url", "body"} of each request that a dry run did not send, in order.
  const std::vector<codec::Json>& planned() const { return planned_; }
  int sent() const { return sent_; }  // Requests that were answered, without repetitions.

 private:
  Client(ClientOptions options, net::HttpClient http);
  Result<net::HttpResponse> Send(const WriteRequest& request, Deadline deadline);
  std::string UrlOf(const ApiPath& path) const;
  Error Explain(const net::HttpResponse& response, const std::string& permission) const;

  ClientOptions options_;
  net::HttpClient http_;
  int status_ = 0;
  bool unclear_ = false;
  int sent_ = 0;
  std::vector<codec::Json> planned_;
};

// Returns an address that a forge gave, for people: empty unless it is http(s) and printable.
std::string ShownUrl(const std::string& url);

}  // namespace forge
