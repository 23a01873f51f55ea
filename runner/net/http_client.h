// SPDX-License-Identifier: Apache-2.0
// Requests to configured services, over libcurl: TLS is always verified, redirects are not
// followed, every response is bounded. Not for the agent's traffic, which the gateway carries.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "base/secret.h"
#include "net/proxy.h"

namespace net {

struct HttpRequest {
  std::string method = "GET";
  std::string url;  // http or https.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // If set, the body is what it returns instead, call by call, up to an empty piece; each piece is
  // valid until the next call. An error ends the transfer and becomes Send's result.
  std::function<Result<std::string_view>()> body_source = {};
  // Sent as `authorization: Bearer ...`; borrowed, may be null. It is in no header list and no
  // error.
  const Secret* bearer = nullptr;
  // The same as `authorization: Basic ...`: the base64 of "user:password".
  const Secret* basic = nullptr;
  // The same with a scheme of its own: the whole value of `authorization`.
  const Secret* authorization = nullptr;
  // Further headers, likewise, by name; none of the values may be null.
  std::vector<std::pair<std::string, const Secret*>> secret_headers = {};
  // Judges the address that the connection leads to, before anything is sent on it; an error
  // becomes Send's result. Not asked where a proxy resolves the name. May be null.
  std::function<Status(const std::string& address)> judge_address;
};

struct HttpResponse {
  int status = 0;
  std::multimap<std::string, std::string> headers;  // Names in lower case.
  std::string body;

  // Returns the first header of that name (lower case), or "".
  std::string Header(const std::string& name) const;
};

// Takes the next piece of the body of an answer whose status is in 200..299; `head` is the answer
// without its body. Also called without bytes, at least once a second, so that a stalled transfer
// can be aborted; `head` may then still be empty. An error ends the transfer and becomes Send's
// result.
using BodySink = std::function<Status(const HttpResponse& head, std::string_view bytes)>;

struct HttpClientOptions {
  std::string ca_file;  // PEM; if empty, SystemCaBundle(). Verification cannot be switched off.
  // What this client shows servers that ask for it: PEM files, both or neither.
  std::string client_certificate = {};
  std::string client_key = {};
  std::string user_agent = "agentic-ci";
  Proxy proxy;  // The environment is not asked.
  size_t response_bytes_max = 16 * 1024 * 1024;
  int connect_timeout_ms = 10'000;
  // A transfer that stays below 1000 bytes in a second for this long has failed (kTemporary); if 0,
  // only the deadline counts.
  int stall_seconds = 0;
  bool http2 = false;  // HTTP/2 in cleartext, too: what gRPC is carried by.
};

// Returns the first of the places distributions keep their bundle in. Fails with kSetup if there is
// none.
Result<std::string> SystemCaBundle();

// Reads the certificates to trust from `ca_file` (PEM), or from SystemCaBundle() if it is empty.
// Fails with kSetup if there are none in it.
Result<std::string> ReadCaFile(std::string ca_file);

// Initialises libcurl and OpenSSL, once per process.
Status InitialiseCurl();

// One connection pool; not for use from two threads.
class HttpClient {
 public:
  static Result<HttpClient> Create(HttpClientOptions options);
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  ~HttpClient();

  // Sends the request; any status is a success. Fails with kTemporary if no whole answer came, with
  // kSetup if the certificate does not verify, with kInvalid for a malformed URL or header and for
  // an answer over the bound.
  Result<HttpResponse> Send(const HttpRequest& request, Deadline deadline);

  // Does the same with the body given to `sink`, which bounds it. The body of any other status is
  // in the answer, cut at `response_bytes_max`.
  Result<HttpResponse> Send(const HttpRequest& request, const BodySink& sink, Deadline deadline);

  // Returns whether the last Send put a byte of its request on a connection: false means that the
  // service cannot have acted on it.
  bool reached() const;

 private:
  struct State;
  Result<HttpResponse> Perform(const HttpRequest& request, const BodySink* sink, Deadline deadline);
  explicit HttpClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace net
