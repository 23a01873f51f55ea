// SPDX-License-Identifier: Apache-2.0
// The way to a gateway of OpenShell 0.1: its address and the credentials for it, from the files
// that its own command line keeps.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "backend/openshell/client/rpc_messages.h"
#include "base/deadline.h"
#include "base/result.h"
#include "codec/data/json.h"
#include "net/grpc.h"

namespace openshell {

// Returns whether a version such as "0.1.5" or "0.1.5-dev.1+g0" is of those that are asked by gRPC.
bool IsRpcRelease(std::string_view version);

// What a person types after a call was refused: for UNAUTHENTICATED, and for PERMISSION_DENIED.
struct RpcRemedies {
  std::string login;
  std::string membership;
};

// A connection to the gateway, for one call after the other. Failures are those of
// net::GrpcChannel, with a hint.
class RpcConnection {
 public:
  enum class Login { kNone, kWithToken };
  // Opens one to the gateway that is selected in the directory STATE/config/openshell. Refreshes a
  // token that has ended or is about to, in the file that it is from; fails with kSetup if it
  // cannot. `cancel` (borrowed, or -1) ends a call, with kTemporary, when it becomes readable.
  static Result<RpcConnection> Open(const std::string& state, Login login, int cancel);

  Result<codec::Json> Call(const RpcMethod& method, const codec::Json& request, Deadline deadline);
  // Gives each message of the response to `sink`, whose errors end the call. `source` gives further
  // messages of the request behind the first, as net::GrpcSource; may be null.
  Status Stream(const RpcMethod& method, const codec::Json& request,
                const std::function<Result<std::optional<codec::Json>>()>& source,
                const std::function<Status(const codec::Json&)>& sink, Deadline deadline);

 private:
  RpcConnection(net::GrpcChannel channel, RpcRemedies remedies, int cancel)
      : channel_(std::move(channel)), remedies_(std::move(remedies)), cancel_(cancel) {}

  net::GrpcChannel channel_;
  RpcRemedies remedies_;
  int cancel_;
};

// Returns the release that the gateway is of ("0.1.5"), of either generation: the one question that
// both answer alike, and that needs no credentials.
Result<std::string> AskRelease(const std::string& state, Deadline deadline, int cancel);

// Writes down in `state` that a gateway which this user registered keeps its token in the directory
// `registered`.
Status WriteTokenPlace(const std::string& state, const std::string& registered);

}  // namespace openshell
