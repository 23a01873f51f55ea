// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/client/rpc_access.h"

#include <poll.h>

#include <algorithm>

#include "backend/openshell/client/rpc_token.h"
#include "base/sys.h"
#include "codec/data/protobuf.h"
#include "codec/text/neutral.h"

namespace openshell {
namespace {

constexpr size_t kFileBytesMax = size_t{1} << 20;
constexpr size_t kReleaseBytesMax = 200;
constexpr char kLogin[] = "openshell gateway login";
constexpr char kMembership[] =
    "openshell workspace member add --subject SUB --role user, or admin if the run has secrets";

std::string PlacePath(const std::string& state) { return state + "/token-place"; }

Result<codec::Json> ReadJsonFile(const std::string& path) {
  return codec::ParseJson(TRY(sys::ReadFile(path, kFileBytesMax)));
}

// Returns whether an error of libcurl or OpenSSL is about a key or certificate of either end.
bool IsAboutKeys(std::string_view what) {
  constexpr std::string_view kKeySigns[] = {" alert ", "private key", "client certificate",
                                            "encoding routines", "certificate verify"};
  return std::any_of(std::begin(kKeySigns), std::end(kKeySigns), [&](std::string_view sign) {
    return what.find(sign) != std::string_view::npos;
  });
}

struct Access {
  std::string url;
  Secret token;
  net::HttpClientOptions options;
  RpcRemedies remedies;
};

// `with_token`: with the token of the user, which Health does not need.
Result<Access> ReadAccess(const std::string& state, bool with_token) {
  const std::string config = state + "/config/openshell";
  const std::string name = TRY(sys::ReadFile(config + "/active_gateway", kFileBytesMax));
  const std::string own = config + "/gateways/" + name;
  const codec::Json entry =
      TRY(ReadJsonFile(own + "/metadata.json").Context("the gateway's entry"));
  Access access;
  access.url = entry.StringAt("gateway_endpoint");
  access.remedies = {kLogin, kLogin};
  const std::string tls = own + "/mtls";
  if (sys::Exists(tls + "/ca.crt")) access.options.ca_file = tls + "/ca.crt";
  if (sys::Exists(tls + "/tls.crt") && sys::Exists(tls + "/tls.key")) {
    access.options.client_certificate = tls + "/tls.crt";
    access.options.client_key = tls + "/tls.key";
    constexpr char kCertificate[] =
        "--gateway-tls DIR, with the gateway's ca.crt, and a tls.crt and tls.key that it takes";
    access.remedies = {kCertificate, kCertificate};
  }
  if (!with_token || entry.StringAt("auth_mode") != "oidc") return access;
  access.remedies = {kLogin + (" " + name), kMembership};
  const Result<std::string> place = sys::ReadFile(PlacePath(state), kFileBytesMax);
  Result<Secret> token = TokenFor(entry, own, place.ok() ? place.value() : own);
  if (!token.ok()) {
    Error error = std::move(token).error();
    if (error.hint.empty()) error.hint = access.remedies.login;
    return error;
  }
  access.token = std::move(token).value();
  return access;
}

}  // namespace

bool IsRpcRelease(std::string_view version) {
  constexpr std::string_view kStart = "0.1.";
  if (!version.starts_with(kStart)) return false;
  version.remove_prefix(kStart.size());
  const size_t digits = std::min(version.find_first_not_of("0123456789"), version.size());
  return digits > 0 &&
         (digits == version.size() || version[digits] == '-' || version[digits] == '+');
}

Status WriteTokenPlace(const std::string& state, const std::string& registered) {
  return sys::WriteFile(PlacePath(state), registered, 0600);
}

Result<RpcConnection> RpcConnection::Open(const std::string& state, Login login, int cancel) {
  Access access = TRY(ReadAccess(state, login == Login::kWithToken));
  net::GrpcChannel channel = TRY(net::GrpcChannel::Open(
      std::move(access.url), std::move(access.token), std::move(access.options)));
  return RpcConnection(std::move(channel), std::move(access.remedies), cancel);
}

Result<codec::Json> RpcConnection::Call(const RpcMethod& method, const codec::Json& request,
                                        Deadline deadline) {
  std::optional<codec::Json> response;
  auto sink = [&](const codec::Json& message) -> Status {
    response = message;
    return Ok();
  };
  TRY(Stream(method, request, nullptr, sink, deadline));
  if (!response) return Error{Code::kIo, "the gateway's response is empty"};
  return std::move(*response);
}

Status RpcConnection::Stream(const RpcMethod& method, const codec::Json& request,
                             const std::function<Result<std::optional<codec::Json>>()>& source,
                             const std::function<Status(const codec::Json&)>& sink,
                             Deadline deadline) {
  const std::string first = TRY(codec::WriteMessage(request, *method.request));
  net::GrpcSource give = nullptr;
  if (source) {
    give = [&]() -> Result<std::optional<std::string>> {
      const std::optional<codec::Json> next = TRY(source());
      if (!next) return std::optional<std::string>();
      return std::optional(TRY(codec::WriteMessage(*next, *method.request)));
    };
  }
  auto take = [&](const std::string_view* message) -> Status {
    if (message == nullptr) {
      pollfd waited{cancel_, POLLIN, 0};
      if (cancel_ < 0 || ::poll(&waited, 1, 0) <= 0) return Ok();
      return Error{Code::kTemporary, "interrupted"};
    }
    return sink(TRY(codec::ReadMessage(*message, *method.response)));
  };
  Status done =
      channel_.Stream(method.path, first, give, take, deadline).Context("OpenShell's gateway");
  if (done.ok()) return done;
  Error error = std::move(done).error();
  const bool tls = error.code == Code::kTemporary && IsAboutKeys(error.what);
  if (tls) error.code = Code::kSetup;
  if (error.code == Code::kSetup) error.hint = remedies_.login;
  if (error.code == Code::kRefused) error.hint = remedies_.membership;
  return error;
}

Result<std::string> AskRelease(const std::string& state, Deadline deadline, int cancel) {
  RpcConnection connection = TRY(RpcConnection::Open(state, RpcConnection::Login::kNone, cancel));
  const codec::Json health = TRY(connection.Call(rpc::kHealth, {}, deadline));
  return codec::NeutralLine(health.StringAt("version"), kReleaseBytesMax);
}

}  // namespace openshell
