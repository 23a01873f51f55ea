// SPDX-License-Identifier: Apache-2.0
#include "forge/gitlab/job_token.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <optional>
#include <utility>

#include "base/named_path.h"
#include "codec/data/json.h"
#include "codec/text/base64.h"
#include "forge/event_fields.h"
#include "forge/gitlab/event.h"
#include "net/http_client.h"
#include "net/retry.h"
#include "net/url.h"
#include "sigstore/trust/public_key.h"

namespace forge {
namespace {

constexpr size_t kTokenBytesMax = size_t{16} << 10;
constexpr int64_t kClockSkewS = 60;
constexpr char kKeysPath[] = "/oauth/discovery/keys";

Error Refused(std::string what) {
  return {Code::kSetup, std::string(kGitLabTokenVariable) + ": " + std::move(what)};
}

struct TokenParts {
  codec::Json header;
  codec::Json claims;
  std::string_view signed_text;
  std::string signature;
};

Result<codec::Json> ReadPart(std::string_view part) {
  std::optional<std::string> text = codec::DecodeBase64Url(part);
  if (!text) return Refused("not a token");
  Result<codec::Json> json = codec::ParseJson(*text);
  if (!json.ok() || json.value().object() == nullptr) return Refused("not a token");
  return json;
}

// RFC 7515, 7.1: three parts with a period between each two.
Result<TokenParts> SplitToken(std::string_view token) {
  const size_t first = token.find('.');
  const size_t second = first == token.npos ? first : token.find('.', first + 1);
  if (token.size() > kTokenBytesMax || second == token.npos) return Refused("not a token");
  std::optional<std::string> signature = codec::DecodeBase64Url(token.substr(second + 1));
  if (!signature) return Refused("not a token");
  codec::Json header = TRY(ReadPart(token.substr(0, first)));
  codec::Json claims = TRY(ReadPart(token.substr(first + 1, second - first - 1)));
  return TokenParts{std::move(header), std::move(claims), token.substr(0, second),
                    std::move(*signature)};
}

// DER (X.690, 8.1.3): type, length, contents. Contents of at most 65,535 bytes.
std::string Der(char type, std::string_view contents) {
  const size_t size = contents.size();
  std::string out(1, type);
  if (size >= 0x100) {
    out += {'\x82', static_cast<char>(size >> 8)};
  } else if (size >= 0x80) {
    out += '\x81';
  }
  out += static_cast<char>(size & 0xff);
  return out.append(contents);
}

// A number without a sign, its first byte first.
std::string DerNumber(std::string_view bytes) {
  bytes.remove_prefix(std::min(bytes.find_first_not_of('\0'), bytes.size()));
  const bool looks_negative = bytes.empty() || (bytes.front() & 0x80) != 0;
  return Der('\x02', (looks_negative ? std::string(1, '\0') : "").append(bytes));
}

// RFC 7518, 6.3.1.
std::optional<sigstore::PublicKey> ReadKey(const codec::Json& key) {
  std::optional<std::string> modulus = codec::DecodeBase64Url(key.StringAt("n"));
  std::optional<std::string> exponent = codec::DecodeBase64Url(key.StringAt("e"));
  if (!modulus || !exponent || modulus->size() > 1024 || exponent->size() > 8) return std::nullopt;
  auto read = sigstore::PublicKey::FromPkcs1(
      Der('\x30', DerNumber(*modulus) + DerNumber(*exponent)), sigstore::Reason::kKeyAlgorithm);
  if (!read.ok() || read.value().kind() != sigstore::PublicKey::Kind::kRsa) return std::nullopt;
  return std::move(read).value();
}

// Returns whether a key signed the token: the one that the header's `kid` names, or any if it names
// none. Keys of other kinds are passed over.
bool IsSigned(const TokenParts& token, const codec::Json::Array& keys) {
  const std::string wanted = token.header.StringAt("kid");
  return std::any_of(keys.begin(), keys.end(), [&](const codec::Json& key) {
    if (key.StringAt("kty") != "RSA") return false;
    if (const std::string use = key.StringAt("use"); !use.empty() && use != "sig") return false;
    if (!wanted.empty() && key.StringAt("kid") != wanted) return false;
    std::optional<sigstore::PublicKey> read = ReadKey(key);
    return read && read->Verifies(sigstore::Hash::kSha256, token.signed_text, token.signature);
  });
}

bool IsFor(const codec::Json& claims, std::string_view audience) {
  const codec::Json* named = claims.Find("aud");
  if (named == nullptr) return false;
  if (const std::string* one = named->string()) return *one == audience;
  const codec::Json::Array* several = named->array();
  return several != nullptr && std::any_of(several->begin(), several->end(), [&](const auto& one) {
           return one.string() != nullptr && *one.string() == audience;
         });
}

// GitLab writes ids as texts.
std::string IdAt(const codec::Json& claims, std::string_view name) {
  const codec::Json* value = claims.Find(name);
  if (value == nullptr) return "";
  if (value->string() != nullptr) return *value->string();
  return value->integer() ? std::to_string(*value->integer()) : "";
}

Result<int64_t> ProjectAt(const codec::Json& claims, std::string_view name) {
  const std::string text = IdAt(claims, name);
  if (text.empty()) return int64_t{0};
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number <= 0) {
    return Refused(std::string(name) + " is not a number");
  }
  return number;
}

Status CheckTerms(const codec::Json& claims, const GitLabTokenTerms& terms) {
  if (const std::string issuer = claims.StringAt("iss"); WithoutSlash(issuer) != terms.issuer) {
    return Refused("issued by " + Quoted(issuer) + ", not by " + terms.issuer);
  }
  if (!IsFor(claims, kGitLabTokenAudience)) {
    return Refused(std::string("not for ") + kGitLabTokenAudience + " (aud)");
  }
  if (claims.IntegerAt("exp") + kClockSkewS < terms.now_s) return Refused("expired");
  if (claims.IntegerAt("nbf", terms.now_s) - kClockSkewS > terms.now_s) {
    return Refused("not valid yet: is the clock right?");
  }
  return Ok();
}

Error Contradiction(const std::string& variable, const std::string& value,
                    const std::string& claim) {
  return {Code::kSetup,
          variable + " is " + Quoted(value) + ", and the job's ID token says " + Quoted(claim)};
}

}  // namespace

Result<GitLabJob> VerifyGitLabToken(std::string_view token, const GitLabTokenTerms& terms) {
  TokenParts parts = TRY(SplitToken(token));
  if (parts.header.StringAt("alg") != "RS256") {
    return Refused("signed with " + Quoted(parts.header.StringAt("alg")) + ", not RS256");
  }
  // Extensions that have to be understood (RFC 7515, 4.1.11).
  if (parts.header.Find("crit") != nullptr) return Refused("has critical extensions");
  Result<codec::Json> keys = codec::ParseJson(terms.keys);
  const codec::Json* list = keys.ok() ? keys.value().Find("keys") : nullptr;
  if (list == nullptr || list->array() == nullptr) {
    return Error{Code::kInvalid, "the keys of " + terms.issuer + " are not a JSON Web Key Set"};
  }
  if (!IsSigned(parts, *list->array())) {
    return Refused("not signed with a key of " + terms.issuer);
  }
  TRY(CheckTerms(parts.claims, terms));
  GitLabJob job;
  job.source_project = TRY(ProjectAt(parts.claims, "project_id"));
  job.project = TRY(ProjectAt(parts.claims, "job_project_id"));
  job.pipeline_source = parts.claims.StringAt("pipeline_source");
  job.pipeline_id = IdAt(parts.claims, "pipeline_id");
  job.job_id = IdAt(parts.claims, "job_id");
  job.ref = parts.claims.StringAt("ref");
  job.sha = parts.claims.StringAt("sha");
  job.ref_protected = IdAt(parts.claims, "ref_protected") == "true";
  if (job.source_project == 0 || job.pipeline_source.empty()) {
    return Refused("without project_id or pipeline_source");
  }
  return job;
}

Status TakeGitLabJob(const GitLabJob& job, const EnvironmentReader& environment, Event* event) {
  const Variables variables(environment);
  const std::pair<const char*, const std::string&> claims[] = {
      {"CI_PIPELINE_SOURCE", job.pipeline_source},
      {"CI_PIPELINE_ID", job.pipeline_id},
      {"CI_JOB_ID", job.job_id},
      {"CI_COMMIT_REF_NAME", job.ref},
      {"CI_COMMIT_SHA", job.sha},
  };
  for (const auto& [name, claim] : claims) {
    if (claim.empty() || variables.Get(name) == claim) continue;
    return Contradiction(name, variables.Get(name), claim);
  }
  const std::string project = variables.Get("CI_PROJECT_ID");
  const std::string running = std::to_string(job.project);
  const std::string source = std::to_string(job.source_project);
  if (job.project != 0 && project != running) {
    return Contradiction("CI_PROJECT_ID", project, running);
  }
  if (event->head_origin == HeadOrigin::kBase && project != source) {
    return Contradiction("the source project", project, source);
  }
  if (variables.True("CI_COMMIT_REF_PROTECTED") && !job.ref_protected) {
    return Contradiction("CI_COMMIT_REF_PROTECTED", "true", "false");
  }
  if (!event->trusted_sha.empty() && !job.ref_protected) {
    event->trusted_sha.clear();
    event->trusted_ref = kBaseRef;
    event->trusted_fetch = FetchBaseCommand("origin", variables.Get("CI_DEFAULT_BRANCH"));
  }
  return Ok();
}

Result<std::string> FetchGitLabKeys(const std::string& issuer, const GitLabKeysAccess& access,
                                    Deadline deadline) {
  net::Url url = TRY(net::ParseUrl(issuer));
  if (url.scheme != "https" && net::KindOf(url.host) != net::AddressKind::kLoopback) {
    return Error{Code::kSetup, "keys from " + issuer + " prove nothing without TLS",
                 "--gitlab-keys FILE"};
  }
  net::HttpClientOptions options;
  options.ca_file = access.ca_file;
  options.proxy = access.proxy;
  options.response_bytes_max = kGitLabKeysBytesMax;
  net::HttpClient client = TRY(net::HttpClient::Create(std::move(options)));
  net::HttpRequest request;
  request.url = issuer + kKeysPath;
  request.headers = {{"accept", "application/json"}};
  Result<net::HttpResponse> sent = net::SendWithRetries(client, request, {}, deadline);
  if (!sent.ok()) {
    Error error = std::move(sent).error();
    if (error.hint.empty()) error.hint = "--gitlab-keys FILE";
    return error;
  }
  net::HttpResponse& response = sent.value();
  if (response.status == 200) return std::move(response.body);
  const bool later = response.status == 429 || response.status >= 500;
  return Error{later ? Code::kTemporary : Code::kSetup,
               request.url + " responded with " + std::to_string(response.status),
               later ? "" : "--gitlab-issuer URL"};
}

Result<bool> VerifyGitLabEvent(const EnvironmentReader& environment, const SignatureTerms& terms,
                               Event* event, Deadline deadline) {
  const std::string token = environment(kGitLabTokenVariable).value_or("");
  if (token.empty()) return false;
  GitLabTokenTerms wanted;
  wanted.issuer = WithoutSlash(terms.issuer.empty() ? event->server_url : terms.issuer);
  wanted.now_s = std::time(nullptr);
  wanted.keys = TRY(terms.keys_file.empty()
                        ? FetchGitLabKeys(wanted.issuer, {terms.ca_file, terms.proxy}, deadline)
                        : ReadNamedFile(terms.keys_file, kGitLabKeysBytesMax));
  const GitLabJob job = TRY(VerifyGitLabToken(token, wanted));
  TRY(TakeGitLabJob(job, environment, event));
  return true;
}

}  // namespace forge
