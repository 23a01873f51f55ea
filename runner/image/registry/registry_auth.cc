// SPDX-License-Identifier: Apache-2.0
#include "image/registry/registry_auth.h"

#include <string.h>

#include "base/secret.h"
#include "codec/data/json.h"
#include "codec/text/base64.h"
#include "codec/text/percent.h"
#include "image/registry/registry_redirect.h"

namespace image {
namespace {

constexpr size_t kTokenBytesMax = 64 * 1024;

Secret BasicOf(std::string_view username, const Secret& password) {
  SecretString joined;
  joined.reserve(username.size() + 1 + password.reveal().size());
  joined.append(username).append(":").append(password.reveal());
  return Secret(SecretString(codec::EncodeBase64(joined)));
}

Secret Copy(const Secret& secret) { return Secret(secret.reveal()); }

const Challenge* FindScheme(const std::vector<Challenge>& challenges, std::string_view scheme) {
  for (const Challenge& challenge : challenges) {
    if (challenge.scheme == scheme) return &challenge;
  }
  return nullptr;
}

// Returns the scopes that a token is asked for: the registry's own first, since some have scopes of
// their own.
std::vector<std::string> ScopesOf(const Challenge& challenge, const std::string& repository) {
  std::vector<std::string> scopes;
  std::string pull = "repository:" + repository + ":pull";
  std::string asked = challenge.Parameter("scope");
  if (!asked.empty() && asked != pull) scopes.push_back(std::move(asked));
  scopes.push_back(std::move(pull));
  return scopes;
}

Result<Secret> ParseToken(SecretString body) {
  Result<codec::Json> parsed = codec::ParseJson(body, {.bytes_max = kTokenBytesMax});
  if (!parsed.ok()) return Error{Code::kInvalid, "the token service's response is not JSON"};
  for (const char* name : {"token", "access_token"}) {
    SecretString token = parsed.value().StringAt(name);
    const bool printable = token.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos;
    if (!token.empty() && printable) return Secret(token);
  }
  return Error{Code::kInvalid, "the token service's response contains no token"};
}

net::HttpRequest TokenGet(const std::string& realm, const Challenge& challenge,
                          const std::vector<std::string>& scopes, const std::string& account) {
  net::HttpRequest request;
  request.url = realm;
  const auto add = [&request](const char* name, const std::string& value) {
    request.url += request.url.find('?') == std::string::npos ? '?' : '&';
    request.url += std::string(name) + "=" + codec::PercentEncode(value);
  };
  const std::string service = challenge.Parameter("service");
  if (!service.empty()) add("service", service);
  for (const std::string& scope : scopes) add("scope", scope);
  if (!account.empty()) add("account", account);
  return request;
}

net::HttpRequest TokenPost(const std::string& realm, const Challenge& challenge,
                           const std::vector<std::string>& scopes, const Secret& identity_token) {
  net::HttpRequest request;
  request.method = "POST";
  request.url = realm;
  request.headers = {{"content-type", "application/x-www-form-urlencoded"}};
  std::string scope;
  for (const std::string& one : scopes) scope += (scope.empty() ? "" : " ") + one;
  request.body = "grant_type=refresh_token&client_id=agentic-ci&service=" +
                 codec::PercentEncode(challenge.Parameter("service")) +
                 "&scope=" + codec::PercentEncode(scope) +
                 "&refresh_token=" + codec::PercentEncode(identity_token.reveal());
  return request;
}

}  // namespace

const CredentialSearch& RegistryAuth::Find() {
  if (!searched_ && find_) search_ = find_();
  searched_ = true;
  return search_;
}

bool RegistryAuth::anonymous() {
  std::lock_guard lock(mutex_);
  return !search_.credential.known();
}

std::string RegistryAuth::Complaints() {
  std::lock_guard lock(mutex_);
  std::string all;
  for (const std::string& complaint : search_.complaints) all += "; " + complaint;
  return all;
}

Error RegistryAuth::Denied(const std::string& what) {
  std::string text = address_.Name() + ": " + what;
  const Credential& credential = search_.credential;
  if (credential.known()) {
    return Error{Code::kRefused, text + " (the credentials are from " + credential.origin + ")"};
  }
  for (const std::string& complaint : search_.complaints) text += "; " + complaint;
  return Error{Code::kSetup, text + ", and there are no credentials for " + address_.host,
               CredentialHint(address_.host)};
}

RegistryAuth::Authorization RegistryAuth::Current() {
  std::lock_guard lock(mutex_);
  return {Copy(current_.bearer), Copy(current_.basic), current_.generation};
}

Result<RegistryAuth::Authorization> RegistryAuth::Renew(const std::vector<Challenge>& challenges,
                                                        int generation, net::HttpClient& client,
                                                        Deadline deadline) {
  std::lock_guard lock(mutex_);
  if (generation == current_.generation) {  // Else another thread was here meanwhile.
    Authorization renewed;
    if (const Challenge* bearer = FindScheme(challenges, "bearer")) {
      renewed.bearer = TRY(FetchToken(*bearer, client, deadline));
    } else if (FindScheme(challenges, "basic") != nullptr) {
      const Credential& credential = Find().credential;
      if (credential.password.empty()) return Denied("it requires a password");
      renewed.basic = BasicOf(credential.username, credential.password);
    } else {
      return Error{
          Code::kRefused,
          address_.Name() +
              ": it responded with 401 but requests neither Bearer nor Basic authentication"};
    }
    renewed.generation = generation + 1;
    current_ = std::move(renewed);
  }
  return Authorization{Copy(current_.bearer), Copy(current_.basic), current_.generation};
}

Result<Secret> RegistryAuth::FetchToken(const Challenge& challenge, net::HttpClient& client,
                                        Deadline deadline) {
  const std::string realm = challenge.Parameter("realm");
  const net::Url url = TRY(net::ParseUrl(realm).Context(address_.host + ": its token service"));
  TRY(CheckTarget(address_.base, url, TargetKind::kRealm));
  const Credential& credential = Find().credential;
  const std::vector<std::string> scopes = ScopesOf(challenge, address_.repository);
  const auto send = [&](const net::HttpRequest& request) -> Result<net::HttpResponse> {
    Followed followed =
        TRY(SendFollowing(client, request, address_.base, TargetKind::kRealm, nullptr, deadline));
    return std::move(followed.response);
  };
  Result<net::HttpResponse> answer = net::HttpResponse{};
  if (!credential.identity_token.empty()) {
    net::HttpRequest request = TokenPost(realm, challenge, scopes, credential.identity_token);
    answer = net::GetWithRetries([&] { return send(request); }, retries_, deadline);
    Wipe(request.body);
  }
  // Token services that know no POST say 404 or 405.
  const bool unanswered =
      answer.ok() &&
      (answer.value().status == 0 || answer.value().status == 404 || answer.value().status == 405);
  if (unanswered) {
    net::HttpRequest request = TokenGet(url.text, challenge, scopes, credential.username);
    Secret basic;
    if (credential.known()) {
      const bool password = !credential.password.empty();
      basic =
          BasicOf(credential.username, password ? credential.password : credential.identity_token);
      request.basic = &basic;
    }
    answer = net::GetWithRetries([&] { return send(request); }, retries_, deadline);
  }
  net::HttpResponse response = TRY(std::move(answer));
  const std::string where = net::ShownUrl(url.text);
  if (response.status == 200) return ParseToken(std::move(response.body)).Context(where);
  if (response.status == 401 || response.status == 403) {
    return Denied("its token service denied access");
  }
  const bool passing = response.status == 429 || response.status >= 500;
  return Error{passing ? Code::kTemporary : Code::kInvalid,
               where + ": the token service responded with " + std::to_string(response.status)};
}

}  // namespace image
