// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/sigv4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <time.h>

#include <algorithm>
#include <map>

#include "base/ascii.h"
#include "codec/data/digest.h"
#include "codec/text/hex.h"
#include "codec/text/percent.h"
#include "gateway/credential/body_credentials.h"
#include "gateway/credential/limits.h"

namespace gateway {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::string_view kUnsigned = "UNSIGNED-PAYLOAD";
constexpr std::string_view kHashField = "X-Amz-Content-Sha256";
constexpr size_t kDateBytes = 8;

std::string Hmac(std::string_view key, std::string_view text) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(out.data()), &size);
  out.resize(size);
  return out;
}

// Blanks around it go, runs of blanks inside become one.
std::string Collapse(std::string_view value) {
  std::string out;
  for (char c : value) {
    bool blank = c == ' ' || c == '\t';
    if (!blank) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// Encoded once more, '/' excepted; S3 alone takes it as it is sent.
std::string CanonicalPathOf(std::string_view path, std::string_view service) {
  if (path.empty()) return "/";
  if (service == "s3") return std::string(path);
  return codec::PercentEncodePath(path);
}

std::string CanonicalQueryOf(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!query.empty()) {
    size_t end = std::min(query.find('&'), query.size());
    std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    size_t equals = std::min(pair.find('='), pair.size());
    std::string_view value = pair.substr(std::min(equals + 1, pair.size()));
    // A server that reads forms takes '+' for a blank; AWS does not.
    pairs.emplace_back(codec::PercentEncode(codec::PercentDecode(pair.substr(0, equals))),
                       codec::PercentEncode(codec::PercentDecode(value)));
  }
  std::sort(pairs.begin(), pairs.end());
  std::string out;
  for (const auto& [name, value] : pairs) {
    out.append(out.empty() ? "" : "&").append(name).append("=").append(value);
  }
  return out;
}

// Other fields may be rewritten on the way, by HTTP/2 or by a server in front.
bool IsSigned(const codec::HttpField& field) {
  std::string name = ascii::LowerCase(field.name);
  return name == "host" || name == "content-type" || name == "content-md5" ||
         name.starts_with("x-amz-");
}

// Returns whether a client's statement about its payload can be signed again without reading it.
bool IsPortableHash(std::string_view hash) {
  bool digest =
      hash.size() == 64 && hash.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return digest || hash == kUnsigned || hash == "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
}

void SetField(codec::HttpFields* fields, std::string_view name, std::string_view value) {
  std::erase_if(*fields, [&](const codec::HttpField& field) {
    return codec::EqualIgnoringCase(field.name, name);
  });
  fields->push_back({std::string(name), std::string(value)});
}

class Signer final : public WholeBodyStep {
 public:
  Signer(const Credentials& credentials, const CredentialTarget& target, SigningPlan plan,
         int64_t (*now)())
      : credentials_(credentials),
        path_(target.path),
        target_(target),
        plan_(std::move(plan)),
        now_(now) {
    target_.path = path_;
  }

  std::optional<OutgoingRefusal> Apply(OutgoingRequest& request) override {
    ResolvedCredential id = credentials_.Resolve(target_, "AWS_ACCESS_KEY_ID");
    ResolvedCredential key = credentials_.Resolve(target_, "AWS_SECRET_ACCESS_KEY");
    ResolvedCredential session = credentials_.Resolve(target_, "AWS_SESSION_TOKEN");
    if (id.refusal.has_value()) return RefuseCredential(*id.refusal);
    if (key.refusal.has_value()) return RefuseCredential(*key.refusal);
    SigningScope scope{plan_.region, plan_.service, now_()};
    if (scope.region.empty()) scope.region = RegionOf(target_.host);
    if (scope.region.empty())
      return Refuse("the region to sign for is unknown: set signing_region");
    const codec::HttpField* theirs = codec::FindField(request.fields, kHashField);
    if (theirs != nullptr && theirs->value == "STREAMING-AWS4-HMAC-SHA256-PAYLOAD") {
      return Refuse("a body that is signed in chunks cannot be re-signed");
    }
    std::string hash(kUnsigned);
    bool reuse = plan_.mode == policy::Signing::kSigV4 && theirs != nullptr;
    if (reuse) hash = theirs->value;
    if (plan_.mode != policy::Signing::kSigV4NoBody && !(reuse && IsPortableHash(hash))) {
      hash = codec::Sha256Hex(request.body);
    }
    SetField(&request.fields, kHashField, hash);
    SetField(&request.fields, "X-Amz-Date", AmzDate(scope.now));
    if (!session.value.empty()) {
      SetField(&request.fields, "X-Amz-Security-Token", session.value);
    }
    SignedRequest what{request.method, request.target, {}, {}, hash};
    size_t question = request.target.find('?');
    if (question != std::string::npos) {
      what.path = what.path.substr(0, question);
      what.query = std::string_view(request.target).substr(question + 1);
    }
    std::copy_if(request.fields.begin(), request.fields.end(), std::back_inserter(what.fields),
                 IsSigned);
    SetField(&request.fields, "Authorization",
             SignRequest({id.value, key.value, session.value}, scope, what));
    return std::nullopt;
  }

 private:
  static OutgoingRefusal Refuse(std::string why) {
    return RefuseCredential({500, "credential_unavailable", std::move(why)});
  }

  const Credentials& credentials_;
  std::string path_;
  CredentialTarget target_;
  SigningPlan plan_;
  int64_t (*now_)();
};

}  // namespace

std::string AmzDate(int64_t now) {
  time_t time = static_cast<time_t>(now);
  tm parts{};
  ::gmtime_r(&time, &parts);
  char text[sizeof "20150830T123600Z"] = "";
  ::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts);
  return text;
}

CanonicalRequest NewCanonicalRequest(const SignedRequest& request, const SigningScope& scope) {
  std::map<std::string, std::string> fields;  // Fields by name; several of one name are joined.
  for (const codec::HttpField& field : request.fields) {
    auto [place, added] = fields.try_emplace(ascii::LowerCase(field.name), Collapse(field.value));
    if (!added) place->second += "," + Collapse(field.value);
  }
  CanonicalRequest canonical;
  canonical.text = std::string(request.method) + "\n" +
                   CanonicalPathOf(request.path, scope.service) + "\n" +
                   CanonicalQueryOf(request.query) + "\n";
  for (const auto& [name, value] : fields) {
    canonical.text.append(name).append(":").append(value).append("\n");
    canonical.signed_names.append(canonical.signed_names.empty() ? "" : ";").append(name);
  }
  canonical.text += "\n" + canonical.signed_names + "\n" + request.payload_hash;
  return canonical;
}

std::string SignRequest(const AwsKeys& keys, const SigningScope& scope,
                        const SignedRequest& request) {
  CanonicalRequest canonical = NewCanonicalRequest(request, scope);
  std::string time = AmzDate(scope.now);
  std::string date = time.substr(0, kDateBytes);
  std::string scope_text = date + "/" + scope.region + "/" + scope.service + "/aws4_request";
  std::string to_sign = std::string(kAlgorithm) + "\n" + time + "\n" + scope_text + "\n" +
                        codec::Sha256Hex(canonical.text);
  SecretString key = "AWS4" + std::string(keys.secret_access_key);
  for (const std::string& part : {date, scope.region, scope.service, std::string("aws4_request")}) {
    key = Hmac(key, part);
  }
  std::string signature = codec::EncodeHex(Hmac(key, to_sign));
  return std::string(kAlgorithm) + " Credential=" + std::string(keys.access_key_id) + "/" +
         scope_text + ", SignedHeaders=" + canonical.signed_names + ", Signature=" + signature;
}

std::string RegionOf(std::string_view host) {
  bool aws = host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn") ||
             host.ends_with(".api.aws");
  if (!aws) return {};
  std::string found;
  while (!host.empty()) {
    size_t dot = std::min(host.find('.'), host.size());
    std::string_view label = host.substr(0, dot);
    host.remove_prefix(std::min(dot + 1, host.size()));
    // Such as eu-central-1 or us-gov-west-1.
    size_t first = label.find('-');
    size_t last = label.rfind('-');
    bool region = first == 2 && last > first && last + 2 == label.size() && label.back() >= '1' &&
                  label.back() <= '9' &&
                  label.substr(0, last).find_first_not_of("abcdefghijklmnopqrstuvwxyz-") ==
                      std::string_view::npos;
    if (region) found = label;
  }
  return found.empty() ? "us-east-1" : found;
}

size_t SignedBodyBytes(const SigningPlan& plan, const codec::HttpFields& fields) {
  if (plan.mode == policy::Signing::kSigV4NoBody || plan.mode == policy::Signing::kNone) return 0;
  const codec::HttpField* theirs = codec::FindField(fields, kHashField);
  bool known = theirs != nullptr && IsPortableHash(theirs->value);
  return plan.mode == policy::Signing::kSigV4 && known ? 0 : kSignedBodyBytesMax;
}

std::unique_ptr<WholeBodyStep> NewSigner(const Credentials& credentials,
                                         const CredentialTarget& target, SigningPlan plan,
                                         int64_t (*now)()) {
  return std::make_unique<Signer>(credentials, target, std::move(plan), now);
}

}  // namespace gateway
