// SPDX-License-Identifier: Apache-2.0
// Requests to a service we were told to speak to, over libcurl: verified TLS always, no redirect
// followed, every answer bounded. Not for traffic of an agent: that is the gateway's.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "base/secret.h"

namespace net {

struct HttpRequest {
  std::string method = "GET";
  std::string url;  // http or https.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // Sent as `authorization: Bearer ...`; borrowed, may be null. It is in no header list and no
  // error.
  const Secret* bearer = nullptr;
};

struct HttpResponse {
  int status = 0;
  std::multimap<std::string, std::string> headers;  // Names in lower case.
  std::string body;

  // The first header of that name (lower case), or "".
  std::string Header(const std::string& name) const;
};

struct HttpClientOptions {
  std::string ca_file;  // PEM; empty: SystemCaBundle(). There is no way to verify nothing.
  std::string user_agent = "agentic-ci";
  std::string proxy;  // Empty: none, whatever the environment says. "http://host:port".
  size_t response_bytes_max = 16 * 1024 * 1024;
  int connect_timeout_ms = 10'000;
};

// The first of the places distributions keep their bundle in. kSetup when there is none.
Result<std::string> SystemCaBundle();

// One connection pool; not for use from two threads.
class HttpClient {
 public:
  static Result<HttpClient> Create(HttpClientOptions options);
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  ~HttpClient();

  // Any status is a success. kTemporary: no (whole) answer came; kSetup: the certificate does not
  // verify; kInvalid: a malformed URL or header, or an answer over the bound.
  Result<HttpResponse> Send(const HttpRequest& request, Deadline deadline);

  // Whether the last Send put a byte of its request on a connection: false means that the service
  // can not have acted on it.
  bool reached() const;

 private:
  struct State;
  explicit HttpClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace net
