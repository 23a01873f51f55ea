// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/client/rpc_access.h"

#include <poll.h>
#include <stdio.h>

#include <algorithm>
#include <chrono>

#include "base/sys.h"
#include "codec/data/protobuf.h"
#include "codec/text/neutral.h"
#include "codec/text/percent.h"
#include "net/url.h"

namespace openshell {
namespace {

constexpr size_t kFileBytesMax = size_t{1} << 20;
constexpr size_t kBodyShownBytesMax = 200;
constexpr std::chrono::seconds kTokenTime{15};
constexpr int64_t kTokenReserve_s = 30;  // As OpenShell's own clients have it.
constexpr char kTokenFile[] = "/oidc_token.json";
constexpr char kLogin[] = "openshell gateway login";

std::string PlacePath(const std::string& state) { return state + "/token-place"; }

int64_t Now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Error NoToken(const std::string& what) {
  return {Code::kSetup, "the token for OpenShell's gateway " + what, kLogin};
}

Result<codec::Json> ReadJsonFile(const std::string& path) {
  SecretString text;
  text = TRY(sys::ReadFile(path, kFileBytesMax));
  return codec::ParseJson(text);
}

bool IsFresh(const codec::Json& bundle) {
  const int64_t ends = bundle.IntegerAt("expires_at", -1);
  return !bundle.StringAt("access_token").empty() && (ends < 0 || Now_s() + kTokenReserve_s < ends);
}

// A token is sent to no issuer in cleartext, but on this machine.
Result<std::string> CheckedUrl(const std::string& url) {
  const net::Url parsed = TRY(net::ParseUrl(url));
  const bool here = net::KindOf(parsed.host) == net::AddressKind::kLoopback;
  if (parsed.scheme == "https" || (parsed.scheme == "http" && here)) return url;
  return NoToken("cannot be refreshed: " + net::ShownUrl(url) + " is not https");
}

std::string_view WithoutSlash(std::string_view url) {
  return url.ends_with('/') ? url.substr(0, url.size() - 1) : url;
}

// The issuer's own document says where tokens are refreshed (OpenID Connect Discovery 1.0, 4).
Result<std::string> TokenUrl(net::HttpClient& client, const std::string& issuer) {
  net::HttpRequest request;
  request.url =
      TRY(CheckedUrl(std::string(WithoutSlash(issuer)) + "/.well-known/openid-configuration"));
  const net::HttpResponse response = TRY(client.Send(request, Deadline::After(kTokenTime)));
  if (response.status != 200) {
    return NoToken("cannot be refreshed: its issuer responds with HTTP status " +
                   std::to_string(response.status));
  }
  const codec::Json found = TRY(codec::ParseJson(response.body));
  if (WithoutSlash(found.StringAt("issuer")) != WithoutSlash(issuer)) {
    return NoToken("cannot be refreshed: its issuer calls itself another");
  }
  return CheckedUrl(found.StringAt("token_endpoint"));
}

// RFC 6749, 6. Returns the new bundle.
Result<codec::Json> Refresh(const codec::Json& bundle) {
  const SecretString old(bundle.StringAt("refresh_token"));
  if (old.empty()) return NoToken("has ended");
  const std::string issuer = bundle.StringAt("issuer");
  std::string client_id = bundle.StringAt("client_id");
  if (client_id.empty()) client_id = "openshell-cli";
  net::HttpClientOptions options;
  options.ca_file = sys::Environment("SSL_CERT_FILE").value_or("");
  net::HttpClient client = TRY(net::HttpClient::Create(std::move(options)));
  net::HttpRequest request;
  request.method = "POST";
  request.url = TRY(TokenUrl(client, issuer));
  request.headers = {{"content-type", "application/x-www-form-urlencoded"}};
  request.body = "grant_type=refresh_token&refresh_token=" + codec::PercentEncode(old) +
                 "&client_id=" + codec::PercentEncode(client_id);
  Result<net::HttpResponse> response = client.Send(request, Deadline::After(kTokenTime));
  ::Wipe(request.body);
  if (!response.ok()) return std::move(response).Context("refreshing the token").error();
  if (response.value().status != 200) {
    return NoToken("cannot be refreshed: " +
                   codec::NeutralLine(response.value().body, kBodyShownBytesMax));
  }
  const codec::Json answer = TRY(codec::ParseJson(response.value().body));
  ::Wipe(response.value().body);
  codec::Json next;
  next.Set("access_token", answer.StringAt("access_token"));
  const std::string rotated = answer.StringAt("refresh_token");
  next.Set("refresh_token", rotated.empty() ? std::string(old) : rotated);
  const int64_t lasts = answer.IntegerAt("expires_in", -1);
  if (lasts >= 0) next.Set("expires_at", Now_s() + lasts);
  next.Set("issuer", issuer);
  next.Set("client_id", client_id);
  if (!IsFresh(next)) return NoToken("was refreshed, and has ended all the same");
  return next;
}

Status Replace(const std::string& path, const codec::Json& bundle) {
  const std::string next = path + "." + sys::RandomHex();
  TRY(sys::WriteFile(next, codec::RenderJson(bundle), 0600));
  if (::rename(next.c_str(), path.c_str()) != 0) return Errno("rename " + path);
  return Ok();
}

// The token that is in `directory`. An issuer may end the token with which another was fetched, so
// that what another process fetched meanwhile counts.
Result<Secret> TokenIn(const std::string& directory) {
  const std::string path = directory + kTokenFile;
  Result<codec::Json> read = ReadJsonFile(path);
  if (!read.ok()) return NoToken("cannot be read");
  codec::Json bundle = std::move(read).value();
  if (!IsFresh(bundle)) {
    Result<codec::Json> next = Refresh(bundle);
    if (!next.ok()) {
      Result<codec::Json> now = ReadJsonFile(path);
      if (!now.ok() || now.value().StringAt("refresh_token") == bundle.StringAt("refresh_token")) {
        return std::move(next).error();
      }
      next = IsFresh(now.value()) ? std::move(now) : Refresh(now.value());
    }
    bundle = TRY(std::move(next));
    TRY(Replace(path, bundle));
  }
  return Secret(SecretString(bundle.StringAt("access_token")));
}

// What libcurl and OpenSSL say where the keys of either end are not those that are expected.
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
  std::string login;
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
  access.login = std::string(kLogin);
  const std::string tls = own + "/mtls";
  if (sys::Exists(tls + "/ca.crt")) access.options.ca_file = tls + "/ca.crt";
  if (sys::Exists(tls + "/tls.crt") && sys::Exists(tls + "/tls.key")) {
    access.options.client_certificate = tls + "/tls.crt";
    access.options.client_key = tls + "/tls.key";
    access.login =
        "--gateway-tls DIR, with the gateway's ca.crt, and a tls.crt and tls.key that it takes";
  }
  if (!with_token || entry.StringAt("auth_mode") != "oidc") return access;
  access.login = std::string(kLogin) + " " + name;
  const Result<std::string> place = sys::ReadFile(PlacePath(state), kFileBytesMax);
  access.token = TRY(TokenIn(place.ok() ? place.value() : own));
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
  return RpcConnection(std::move(channel), std::move(access.login), cancel);
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
  if (error.code == Code::kSetup || error.code == Code::kRefused) error.hint = login_;
  return error;
}

Result<std::string> AskRelease(const std::string& state, Deadline deadline, int cancel) {
  RpcConnection connection = TRY(RpcConnection::Open(state, RpcConnection::Login::kNone, cancel));
  const codec::Json health = TRY(connection.Call(rpc::kHealth, {}, deadline));
  return codec::NeutralLine(health.StringAt("version"), kBodyShownBytesMax);
}

}  // namespace openshell
