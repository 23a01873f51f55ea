// SPDX-License-Identifier: Apache-2.0
#include "image/registry/registry_redirect.h"

namespace image {
namespace {

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace

Result<Followed> SendFollowing(net::HttpClient& client, net::HttpRequest request,
                               const net::Url& origin, TargetKind kind, const net::BodySink* sink,
                               Deadline deadline) {
  Followed followed;
  followed.url = TRY(net::ParseUrl(request.url));
  request.judge_address = [&](const std::string& address) {
    return CheckConnected(origin, followed.url, address);
  };
  for (int redirects = 0;; ++redirects) {
    followed.response = TRY(sink == nullptr ? client.Send(request, deadline)
                                            : client.Send(request, *sink, deadline));
    const std::string location = followed.response.Header("location");
    if (!IsRedirect(followed.response.status) || location.empty()) return followed;
    const std::string shown = net::ShownUrl(followed.url.text);
    if (request.method != "GET") {
      return Error{Code::kRefused, shown + ": a redirect for a " + request.method};
    }
    if (redirects == kRedirectsMax) {
      return Error{Code::kRefused,
                   shown + ": more than " + std::to_string(kRedirectsMax) + " redirects"};
    }
    const net::Url target =
        TRY(net::ResolveUrl(followed.url, location).Context("a redirect of " + shown));
    TRY(CheckTarget(origin, target, kind));
    if (target.scheme == "http" && followed.url.scheme == "https") {
      return Error{Code::kRefused, shown + " redirects from https to http"};
    }
    if (!target.SameService(followed.url) || target.scheme != followed.url.scheme) {
      followed.left = true;
      request.bearer = nullptr;
      request.basic = nullptr;
    }
    followed.url = target;
    request.url = target.text;
  }
}

}  // namespace image
