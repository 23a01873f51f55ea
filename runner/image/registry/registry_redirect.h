// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "image/registry/registry_address.h"
#include "net/http_client.h"

namespace image {

inline constexpr int kRedirectsMax = 5;

struct Followed {
  net::HttpResponse response;
  net::Url url;  // The URL that the answer came from.
  // True if that is another host or port than was asked; it never saw an authorization.
  bool left = false;
};

// Sends `request` and follows at most kRedirectsMax redirects by hand, each judged by
// CheckTarget(origin, …), and by CheckConnected once it is connected. Once the first service is
// left, nothing further gets the authorization, not even that service again. Fails with kRefused
// for a redirect that is not followed; a POST never is.
Result<Followed> SendFollowing(net::HttpClient& client, net::HttpRequest request,
                               const net::Url& origin, TargetKind kind, const net::BodySink* sink,
                               Deadline deadline);

}  // namespace image
