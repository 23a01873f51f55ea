// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/client/rpc_token.h"

#include <stdio.h>

#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "codec/text/neutral.h"
#include "codec/text/percent.h"
#include "net/http_client.h"
#include "net/url.h"

namespace openshell {
namespace {

constexpr size_t kBundleBytesMax = size_t{1} << 20;
constexpr size_t kRefusalBytesMax = 200;
constexpr std::chrono::seconds kTokenTime{15};
constexpr int64_t kTokenReserve_s = 30;  // The same reserve as in OpenShell's own clients.
constexpr char kUsersFile[] = "/oidc_token.json";
constexpr char kClientsFile[] = "/client_token.json";
constexpr char kSecretVariable[] = "OPENSHELL_OIDC_CLIENT_SECRET";

using Fields = std::vector<std::pair<const char*, std::string_view>>;

int64_t Now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Error NoToken(const std::string& what) {
  return {Code::kSetup, "the token for OpenShell's gateway " + what};
}

Result<codec::Json> ReadBundle(const std::string& path) {
  SecretString text;
  text = TRY(sys::ReadFile(path, kBundleBytesMax));
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
  return NoToken("cannot be fetched: " + net::ShownUrl(url) + " is not https");
}

std::string_view WithoutSlash(std::string_view url) {
  return url.ends_with('/') ? url.substr(0, url.size() - 1) : url;
}

// The issuer's own document says where tokens are fetched (OpenID Connect Discovery 1.0, 4).
Result<std::string> TokenUrl(net::HttpClient& client, const std::string& issuer) {
  net::HttpRequest request;
  request.url =
      TRY(CheckedUrl(std::string(WithoutSlash(issuer)) + "/.well-known/openid-configuration"));
  const net::HttpResponse response = TRY(client.Send(request, Deadline::After(kTokenTime)));
  if (response.status != 200) {
    return NoToken("cannot be fetched: its issuer responds with HTTP status " +
                   std::to_string(response.status));
  }
  const codec::Json found = TRY(codec::ParseJson(response.body));
  if (WithoutSlash(found.StringAt("issuer")) != WithoutSlash(issuer)) {
    return NoToken("cannot be fetched: its issuer calls itself another");
  }
  return CheckedUrl(found.StringAt("token_endpoint"));
}

// Asks `issuer` for a token with these fields, but for the empty ones (RFC 6749, 3.2). Returns a
// bundle as OpenShell's command line keeps it, without the fields about who asks.
Result<codec::Json> Fetch(const std::string& issuer, const Fields& fields) {
  net::HttpClientOptions options;
  options.ca_file = sys::Environment("SSL_CERT_FILE").value_or("");
  net::HttpClient client = TRY(net::HttpClient::Create(std::move(options)));
  net::HttpRequest request;
  request.method = "POST";
  request.url = TRY(TokenUrl(client, issuer));
  request.headers = {{"content-type", "application/x-www-form-urlencoded"}};
  for (const auto& [name, value] : fields) {
    if (value.empty()) continue;
    if (!request.body.empty()) request.body += '&';
    request.body.append(name).append("=").append(codec::PercentEncode(value));
  }
  Result<net::HttpResponse> response = client.Send(request, Deadline::After(kTokenTime));
  ::Wipe(request.body);
  if (!response.ok()) return std::move(response).Context("fetching the token").error();
  if (response.value().status != 200) {
    return NoToken("cannot be fetched: " +
                   codec::NeutralLine(response.value().body, kRefusalBytesMax));
  }
  const codec::Json answer = TRY(codec::ParseJson(response.value().body));
  ::Wipe(response.value().body);
  codec::Json bundle;
  bundle.Set("access_token", answer.StringAt("access_token"));
  bundle.Set("refresh_token", answer.StringAt("refresh_token"));
  const int64_t lasts = answer.IntegerAt("expires_in", -1);
  if (lasts >= 0) bundle.Set("expires_at", Now_s() + lasts);
  if (!IsFresh(bundle)) return NoToken("was fetched, and has ended all the same");
  return bundle;
}

// RFC 6749, 6.
Result<codec::Json> Refresh(const codec::Json& bundle) {
  const SecretString old(bundle.StringAt("refresh_token"));
  if (old.empty()) return NoToken("has ended");
  const std::string issuer = bundle.StringAt("issuer");
  std::string client_id = bundle.StringAt("client_id");
  if (client_id.empty()) client_id = "openshell-cli";
  codec::Json next = TRY(Fetch(
      issuer, {{"grant_type", "refresh_token"}, {"refresh_token", old}, {"client_id", client_id}}));
  if (next.StringAt("refresh_token").empty()) next.Set("refresh_token", std::string(old));
  next.Set("issuer", issuer).Set("client_id", client_id);
  return next;
}

// RFC 6749, 4.4.
Result<codec::Json> IssueToClient(const codec::Json& entry, std::string_view secret) {
  const std::string issuer = entry.StringAt("oidc_issuer");
  const std::string client_id = entry.StringAt("oidc_client_id");
  if (issuer.empty() || client_id.empty()) {
    const std::string missing = issuer.empty() ? "oidc_issuer" : "oidc_client_id";
    Error error = NoToken("cannot be issued: the gateway's entry has no " + missing);
    error.hint = "\"" + missing + "\" in the gateway's metadata.json";
    return error;
  }
  return Fetch(issuer, {{"grant_type", "client_credentials"},
                        {"client_id", client_id},
                        {"client_secret", secret},
                        {"scope", entry.StringAt("oidc_scopes")},
                        {"audience", entry.StringAt("oidc_audience")}});
}

Status Replace(const std::string& path, const codec::Json& bundle) {
  const std::string next = path + "." + sys::RandomHex();
  TRY(sys::WriteFile(next, codec::RenderJson(bundle), 0600));
  if (::rename(next.c_str(), path.c_str()) != 0) return Errno("rename " + path);
  return Ok();
}

Secret TokenOf(const codec::Json& bundle) {
  return Secret(SecretString(bundle.StringAt("access_token")));
}

// An issuer may end the token with which another was fetched, so that what another process fetched
// meanwhile counts.
Result<Secret> UsersToken(const std::string& path) {
  Result<codec::Json> read = ReadBundle(path);
  if (!read.ok()) {
    return NoToken("is not there, and " + std::string(kSecretVariable) + " is not set");
  }
  codec::Json bundle = std::move(read).value();
  if (!IsFresh(bundle)) {
    Result<codec::Json> next = Refresh(bundle);
    if (!next.ok()) {
      Result<codec::Json> now = ReadBundle(path);
      if (!now.ok() || now.value().StringAt("refresh_token") == bundle.StringAt("refresh_token")) {
        return std::move(next).error();
      }
      next = IsFresh(now.value()) ? std::move(now) : Refresh(now.value());
    }
    bundle = TRY(std::move(next));
    TRY(Replace(path, bundle));
  }
  return TokenOf(bundle);
}

}  // namespace

Result<Secret> TokenFor(const codec::Json& entry, const std::string& own,
                        const std::string& registered) {
  const SecretString secret(sys::Environment(kSecretVariable).value_or(""));
  const std::string issued = own + kClientsFile;
  if (secret.empty() && !sys::Exists(issued)) return UsersToken(registered + kUsersFile);
  const Result<codec::Json> kept = ReadBundle(issued);
  if (kept.ok() && IsFresh(kept.value())) return TokenOf(kept.value());
  if (secret.empty()) return NoToken("has ended");
  Result<codec::Json> bundle = IssueToClient(entry, secret).Context(kSecretVariable);
  if (!bundle.ok()) {
    Error error = std::move(bundle).error();
    if (error.code == Code::kSetup && error.hint.empty()) {
      error.hint = std::string(kSecretVariable) + "=SECRET, of the client '" +
                   codec::NeutralLine(entry.StringAt("oidc_client_id"), kRefusalBytesMax) + "'";
    }
    return error;
  }
  TRY(Replace(issued, bundle.value()));
  return TokenOf(bundle.value());
}

}  // namespace openshell
