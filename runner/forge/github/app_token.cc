// SPDX-License-Identifier: Apache-2.0
#include "forge/github/app_token.h"

#include <time.h>

#include "codec/data/jwt.h"

namespace forge {
namespace {

// From a minute before now on, since clocks differ, and for less than ten minutes: GitHub,
// "Generating a JSON Web Token (JWT) for a GitHub App".
constexpr int64_t kBefore = 60;
constexpr int64_t kLifetime = 540;
constexpr char kInstalled[] = "install the application in the repository, with these permissions";

ClientOptions With(const ClientOptions& options, Secret token) {
  ClientOptions other;
  other.api_url = options.api_url;
  other.where = options.where;
  other.token = std::move(token);
  other.ca_file = options.ca_file;
  other.proxy = options.proxy;
  other.token_hint = "the application's id, and a private key of it that GitHub still lists";
  other.headers = options.headers;
  other.stall_seconds = options.stall_seconds;
  return other;
}

}  // namespace

Result<Secret> TakeAppToken(const ClientOptions& options, const std::string& repository,
                            const AppKey& key, const std::vector<std::string>& permissions,
                            Deadline deadline) {
  const int64_t now = int64_t{::time(nullptr)};
  codec::Json claims = codec::Json::EmptyObject();
  claims.Set("iat", now - kBefore).Set("exp", now + kLifetime).Set("iss", key.id);
  Result<std::string> jwt = codec::SignJwt(key.pem.reveal(), "", claims);
  if (!jwt.ok()) {
    return Error{Code::kSetup, "the application's private key " + jwt.error().what,
                 "the whole .pem file that GitHub gave for the application"};
  }
  Client client = TRY(Client::Create(With(options, Secret(jwt.value()))));
  Result<codec::Json> installation =
      client.Get(ApiPath::Repository(repository) / "installation", kInstalled, deadline);
  if (!installation.ok() && installation.error().code == Code::kNotFound) {
    return Error{Code::kRefused, "the application is not installed in " + repository, kInstalled};
  }
  const int64_t id = TRY(std::move(installation)).IntegerAt("id", 0);
  WriteRequest request;
  request.path = ApiPath() / "app" / "installations" / id / "access_tokens";
  request.permission = kInstalled;
  codec::Json wanted = codec::Json::EmptyObject();
  for (const std::string& permission : permissions) wanted.Set(permission, "write");
  request.body
      .Set("repositories", codec::Json::FromStrings({repository.substr(repository.find('/') + 1)}))
      .Set("permissions", std::move(wanted));
  Result<codec::Json> granted = client.Ask(request, deadline);
  if (!granted.ok() && client.status() == 422) {
    return Error{Code::kRefused, "the application lacks a permission that this post needs",
                 kInstalled};
  }
  SecretString token = TRY(std::move(granted)).StringAt("token");
  if (token.empty()) return Error{Code::kTemporary, "the forge's response has no token"};
  return Secret(token);
}

Status RevokeAppToken(Client& client, Deadline deadline) {
  WriteRequest request;
  request.method = "DELETE";
  request.path = ApiPath() / "installation" / "token";
  TRY(client.Ask(request, deadline));
  return Ok();
}

}  // namespace forge
