// SPDX-License-Identifier: Apache-2.0
#include "attest/signing_config.h"

#include <algorithm>
#include <set>
#include <span>

#include "codec/data/embedded_file.h"
#include "codec/data/json.h"
#include "net/url.h"

namespace attest {

std::span<const codec::EmbeddedFile> EmbeddedSigningConfig();

namespace {

constexpr std::string_view kMediaType = "application/vnd.dev.sigstore.signingconfig.v0.2+json";

struct Candidate {
  Service service;
  std::string operated_by;
  sigstore::Instant start;
};

Error Malformed(const std::string& what) {
  return Error{Code::kInvalid, "not a signing configuration: " + what};
}

Result<Candidate> ReadService(const codec::Json& json, const std::string& where) {
  Candidate candidate;
  candidate.service.url = json.StringAt("url");
  candidate.service.version = static_cast<int>(json.IntegerAt("majorApiVersion"));
  candidate.operated_by = json.StringAt("operator");
  while (candidate.service.url.ends_with('/')) candidate.service.url.pop_back();
  const net::Url url = TRY(net::ParseUrl(candidate.service.url).Context(where));
  if (url.scheme != "https" && net::KindOf(url.host) != net::AddressKind::kLoopback) {
    return Malformed(where + " has a service of another machine over plain HTTP");
  }
  const codec::Json* valid = json.Find("validFor");
  const std::string start = valid == nullptr ? "" : valid->StringAt("start");
  const std::optional<sigstore::Instant> from = sigstore::ParseInstant(start);
  if (!from) return Malformed(where + " does not say from when it is valid");
  candidate.start = *from;
  return candidate;
}

bool HasEnded(const codec::Json& json, const sigstore::Instant& now) {
  const codec::Json* valid = json.Find("validFor");
  if (valid == nullptr || valid->Find("end") == nullptr) return false;
  const std::optional<sigstore::Instant> end = sigstore::ParseInstant(valid->StringAt("end"));
  return !end || *end < now;
}

// Returns the services of the list `name` that can be used now, the best first.
Result<std::vector<Service>> ListServices(const codec::Json& json, const char* name,
                                          int version_max, const sigstore::Instant& now) {
  const codec::Json* list = json.Find(name);
  if (list == nullptr) return std::vector<Service>();
  if (list->array() == nullptr) return Malformed(std::string(name) + " is not a list");
  std::vector<Candidate> found;
  for (const codec::Json& one : *list->array()) {
    Candidate candidate = TRY(ReadService(one, name));
    const bool known = candidate.service.version >= 1 && candidate.service.version <= version_max;
    if (known && candidate.start <= now && !HasEnded(one, now)) found.push_back(candidate);
  }
  std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
    if (a.service.version != b.service.version) return a.service.version > b.service.version;
    return a.start > b.start;
  });
  std::vector<Service> services;
  std::set<std::string> operators;
  for (const Candidate& candidate : found) {
    const bool same_version = candidate.service.version == found.front().service.version;
    if (!same_version || !operators.insert(candidate.operated_by).second) continue;
    services.push_back(candidate.service);
  }
  return services;
}

// Keeps as many as the selector `name` says: one of them if it says nothing.
Status Select(const codec::Json& json, const char* name, std::vector<Service>* services) {
  const codec::Json* config = json.Find(name);
  const std::string selector = config == nullptr ? "ANY" : config->StringAt("selector");
  if (selector == "ALL") return Ok();
  size_t count = 1;
  if (selector == "EXACT") {
    count = static_cast<size_t>(std::max<int64_t>(config->IntegerAt("count"), 1));
    if (services->size() < count) return Malformed(std::string(name) + " asks for more services");
  } else if (selector != "ANY") {
    return Malformed(std::string(name) + " has the selector '" + selector + "'");
  }
  if (services->size() > count) services->resize(count);
  return Ok();
}

}  // namespace

std::string_view PublicSigningConfig() { return EmbeddedSigningConfig().front().text; }

Result<SigningServices> ChooseServices(std::string_view text, const sigstore::Instant& now) {
  codec::Json json = TRY(codec::ParseJson(text));
  if (const codec::Json* inner = json.Find("signingConfig")) {
    codec::Json config = *inner;
    json = std::move(config);
  }
  if (json.StringAt("mediaType") != kMediaType) {
    return Malformed("its media type is '" + json.StringAt("mediaType") + "'");
  }
  SigningServices services;
  const std::vector<Service> authorities = TRY(ListServices(json, "caUrls", 1, now));
  if (!authorities.empty()) services.certificate_authority = authorities.front().url;
  services.logs = TRY(ListServices(json, "rekorTlogUrls", 2, now));
  TRY(Select(json, "rekorTlogConfig", &services.logs));
  std::vector<Service> stamps = TRY(ListServices(json, "tsaUrls", 1, now));
  TRY(Select(json, "tsaConfig", &stamps));
  for (const Service& stamp : stamps) services.timestamp_authorities.push_back(stamp.url);
  return services;
}

}  // namespace attest
