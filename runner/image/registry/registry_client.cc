// SPDX-License-Identifier: Apache-2.0
#include "image/registry/registry_client.h"

#include <optional>
#include <utility>

#include "base/ascii.h"
#include "codec/data/json.h"
#include "image/registry/registry_redirect.h"

namespace image {
namespace {

constexpr size_t kShownBytesMax = 200;

std::vector<Challenge> ChallengesOf(const net::HttpResponse& response) {
  std::vector<Challenge> challenges;
  auto [begin, end] = response.headers.equal_range("www-authenticate");
  for (auto header = begin; header != end; ++header) {
    for (Challenge& challenge : ParseChallenges(header->second)) {
      challenges.push_back(std::move(challenge));
    }
  }
  return challenges;
}

// The registry's own words: distribution-spec, "Error Codes". Bytes of a remote end.
std::string WordsOf(const net::HttpResponse& response) {
  Result<codec::Json> body = codec::ParseJson(response.body, {.bytes_max = 64 * 1024});
  if (!body.ok()) return "";
  const codec::Json* errors = body.value().Find("errors");
  if (errors == nullptr || errors->array() == nullptr || errors->array()->empty()) return "";
  const codec::Json& first = errors->array()->front();
  std::string words = first.StringAt("message");
  if (words.empty()) words = first.StringAt("code");
  words.resize(std::min(words.size(), kShownBytesMax));
  for (char& c : words) {
    if (ascii::IsControl(c)) c = ' ';
  }
  return words;
}

// A registry that speaks plain HTTP is not one that is gone.
Error Advised(Error error, const RegistryAddress& address) {
  if (error.kind != ErrorKind::kNotTls || address.base.scheme != "https") return error;
  return Error{Code::kSetup, address.host + " does not speak TLS",
               "--insecure-registry " + address.host};
}

}  // namespace

// One of our clients, for the duration of a request.
class RegistryClient::Lease {
 public:
  static Result<Lease> Borrow(RegistryClient& owner) {
    std::lock_guard lock(owner.mutex_);
    if (owner.idle_.empty()) {
      return Lease(owner, TRY(net::HttpClient::Create(owner.options_)));
    }
    Lease lease(owner, std::move(owner.idle_.back()));
    owner.idle_.pop_back();
    return lease;
  }
  Lease(Lease&& other) noexcept
      : owner_(std::exchange(other.owner_, nullptr)), client_(std::move(other.client_)) {}
  Lease& operator=(Lease&&) = delete;
  ~Lease() {
    if (owner_ == nullptr) return;
    std::lock_guard lock(owner_->mutex_);
    owner_->idle_.push_back(std::move(client_));
  }
  net::HttpClient& client() { return client_; }

 private:
  Lease(RegistryClient& owner, net::HttpClient client)
      : owner_(&owner), client_(std::move(client)) {}
  RegistryClient* owner_;
  net::HttpClient client_;
};

Result<net::HttpResponse> RegistryClient::Get(const RegistryRequest& request,
                                              const net::BodySink& sink, Deadline deadline) {
  Lease lease = TRY(Lease::Borrow(*this));
  RegistryAuth::Authorization authorization = auth_.Current();
  net::HttpRequest http;
  http.url = request.url;
  http.headers.push_back({"accept-encoding", "identity"});
  if (!request.accept.empty()) http.headers.push_back({"accept", request.accept});
  if (request.offset > 0) {
    http.headers.push_back({"range", "bytes=" + std::to_string(request.offset) + "-"});
  }
  for (bool renewed = false;; renewed = true) {
    http.bearer = authorization.bearer.empty() ? nullptr : &authorization.bearer;
    http.basic = authorization.basic.empty() ? nullptr : &authorization.basic;
    Result<Followed> sent =
        SendFollowing(lease.client(), http, address_.base, TargetKind::kBlob, &sink, deadline);
    if (!sent.ok()) return Advised(std::move(sent).error(), address_);
    Followed followed = std::move(sent).value();
    if (followed.response.status == 401 && followed.left) {
      return Error{Code::kRefused, address_.Name() + " redirects to " +
                                       net::ShownUrl(followed.url.text) +
                                       ", which requires credentials; none are sent there"};
    }
    if (followed.response.status != 401 || renewed) return std::move(followed.response);
    authorization = TRY(auth_.Renew(ChallengesOf(followed.response), authorization.generation,
                                    lease.client(), deadline));
  }
}

Error RegistryClient::Explain(const net::HttpResponse& response, const std::string& what) {
  std::string text = address_.Name() + ": " + what + ": " + std::to_string(response.status);
  const std::string words = WordsOf(response);
  if (!words.empty()) text += ", " + words;
  const bool denied = response.status == 401 || response.status == 403;
  const bool anonymous = auth_.anonymous();
  if (response.status == 429) {
    const std::string limit = response.Header("ratelimit-limit");
    if (!limit.empty() && limit.size() < 40) text += " (limit " + limit.substr(0, 40) + ")";
    return Error{Code::kTemporary, text + ": too many requests",
                 anonymous ? CredentialHint(address_.host) : ""};
  }
  if (response.status >= 500 || response.status == 408) return Error{Code::kTemporary, text};
  if (!denied && response.status != 404) return Error{Code::kInvalid, text};
  // A private repository looks like one that is not there, to who may not see it.
  const bool github = address_.host == "ghcr.io";
  std::string hint = denied || (anonymous && github) ? CredentialHint(address_.host) : "";
  if (denied && github && !anonymous) {
    hint += "; and add this repository in the package's settings, under Manage Actions access";
  }
  if (denied) text += auth_.Complaints();
  const Code refusal = anonymous ? Code::kSetup : Code::kRefused;
  return Error{denied ? refusal : Code::kNotFound, text, std::move(hint)};
}

}  // namespace image
