// SPDX-License-Identifier: Apache-2.0
#include "image/registry/registry_source.h"

#include <atomic>
#include <deque>
#include <optional>
#include <utility>

#include "image/registry/credential_search.h"
#include "image/registry/registry_blob.h"
#include "image/registry/registry_client.h"

namespace image {
namespace {

constexpr int kPagesMax = 32;
constexpr size_t kErrorBytesMax = 64 * 1024;
constexpr int kMirrorAttemptsMax = 2;

constexpr char kManifestTypes[] =
    "application/vnd.oci.image.index.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.v2+json";
constexpr char kIndexType[] = "application/vnd.oci.image.index.v1+json";

// A GET whose body is small, tried again while that helps.
Result<net::HttpResponse> GetDocument(RegistryClient& client, const RegistryRequest& request,
                                      Deadline deadline) {
  std::string body;
  const auto sink = [&](const net::HttpResponse&, std::string_view bytes) -> Status {
    if (bytes.size() > kManifestBytesMax - body.size()) {
      return Error{Code::kInvalid, net::ShownUrl(request.url) + ": more than " +
                                       std::to_string(kManifestBytesMax) + " bytes"};
    }
    body += bytes;
    return Ok();
  };
  const auto send = [&] {
    body.clear();
    return client.Get(request, sink, deadline);
  };
  net::HttpResponse response = TRY(net::GetWithRetries(send, client.retries(), deadline));
  if (response.status == 200) response.body = std::move(body);
  return response;
}

Result<Document> FetchManifestFrom(RegistryClient& client, const std::string& tag_or_digest,
                                   Deadline deadline) {
  const bool by_digest = IsDigest(tag_or_digest);
  if (!by_digest && !IsTag(tag_or_digest)) {
    return Error{Code::kInvalid, "neither a tag nor a digest"};
  }
  net::HttpResponse response = TRY(GetDocument(
      client, {client.address().ApiUrl("manifests/" + tag_or_digest), kManifestTypes}, deadline));
  if (response.status != 200) return client.Explain(response, "manifest " + tag_or_digest);
  Document document = TRY(MakeDocument(response.Header("content-type"), std::move(response.body),
                                       by_digest ? tag_or_digest : "")
                              .Context(client.address().Name()));
  const std::string claimed = response.Header("docker-content-digest");
  if (IsDigest(claimed) && claimed != document.digest) {
    return Error{Code::kRefused, client.address().Name() + ": the registry claims the digest " +
                                     claimed + " for content with the digest " + document.digest};
  }
  return document;
}

Result<std::vector<Descriptor>> ParseReferrers(const std::string& bytes,
                                               const std::string& media_type) {
  std::variant<Index, Manifest> parsed =
      TRY(ParseManifest(bytes, media_type).Context("the list of referrers"));
  Index* index = std::get_if<Index>(&parsed);
  if (index == nullptr) return Error{Code::kInvalid, "the list of referrers is not an index"};
  return std::move(index->manifests);
}

// Without the API, referrers are listed under a tag: distribution-spec, "Referrers Tag Schema".
Result<std::vector<Descriptor>> FetchFallback(RegistryClient& client, const std::string& digest,
                                              Deadline deadline) {
  Result<Document> document = FetchManifestFrom(client, "sha256-" + digest.substr(7), deadline);
  if (!document.ok() && document.error().code == Code::kNotFound) {
    return std::vector<Descriptor>();
  }
  const Document read = TRY(std::move(document));
  return ParseReferrers(read.bytes, read.media_type);
}

// Returns whether an answer is one of a registry that lacks this API. Some say so by 400 or 406, or
// answer something else altogether.
bool LacksReferrers(const net::HttpResponse& response) {
  const int status = response.status;
  if (status == 400 || status == 404 || status == 405 || status == 406 || status == 501) {
    return true;
  }
  return status == 200 && !response.Header("content-type").starts_with(kIndexType);
}

Result<std::vector<Descriptor>> FetchReferrersFrom(RegistryClient& client,
                                                   const std::string& digest, Deadline deadline) {
  if (!IsDigest(digest)) return Error{Code::kInvalid, "not a digest"};
  std::vector<Descriptor> referrers;
  net::Url page = TRY(net::ParseUrl(client.address().ApiUrl("referrers/" + digest)));
  for (int pages = 0; pages < kPagesMax; ++pages) {
    const net::HttpResponse response = TRY(GetDocument(client, {page.text, kIndexType}, deadline));
    if (pages == 0 && LacksReferrers(response)) return FetchFallback(client, digest, deadline);
    if (response.status != 200) return client.Explain(response, "referrers of " + digest);
    std::vector<Descriptor> some =
        TRY(ParseReferrers(response.body, response.Header("content-type")));
    if (some.size() > kReferrersMax - referrers.size()) {
      return Error{Code::kInvalid,
                   "more than " + std::to_string(kReferrersMax) + " referrers of " + digest};
    }
    referrers.insert(referrers.end(), some.begin(), some.end());
    const std::string next = NextPage(response.Header("link"));
    if (next.empty()) return referrers;
    const net::Url target = TRY(net::ResolveUrl(page, next).Context("the next page of referrers"));
    if (!target.SameService(client.address().base) || target.scheme != page.scheme) {
      return Error{Code::kRefused, "the next page of referrers is on another host"};
    }
    page = target;
  }
  return Error{Code::kInvalid,
               "more than " + std::to_string(kPagesMax) + " pages of referrers of " + digest};
}

class Registry : public Source {
 public:
  explicit Registry(std::function<void(const BlobProgress&)> progress)
      : progress_(std::move(progress)) {}

  // The registry itself is the last.
  void Add(std::unique_ptr<RegistryClient> client) {
    clients_.push_back(std::move(client));
    silent_.emplace_back(false);
  }

  Result<Document> FetchManifest(const std::string& tag_or_digest, Deadline deadline) override {
    for (size_t mirror = 0; mirror + 1 < clients_.size(); ++mirror) {
      if (silent_[mirror]) continue;
      Result<Document> document = FetchManifestFrom(*clients_[mirror], tag_or_digest, deadline);
      if (document.ok()) return document;
      Note(mirror, document.error());
    }
    return FetchManifestFrom(*clients_.back(), tag_or_digest, deadline);
  }

  Result<std::vector<Descriptor>> FetchReferrers(const std::string& digest,
                                                 Deadline deadline) override {
    for (size_t mirror = 0; mirror + 1 < clients_.size(); ++mirror) {
      if (silent_[mirror]) continue;
      Result<std::vector<Descriptor>> referrers =
          FetchReferrersFrom(*clients_[mirror], digest, deadline);
      if (referrers.ok() && !referrers.value().empty()) return referrers;
      if (!referrers.ok()) Note(mirror, referrers.error());
    }
    return FetchReferrersFrom(*clients_.back(), digest, deadline);
  }

  Result<std::string> FetchBlob(const Descriptor& blob, size_t bytes_max,
                                Deadline deadline) override {
    return CollectBlob(*this, blob, bytes_max, deadline);
  }

  Status StreamBlob(const Descriptor& blob, const BlobSink& sink, const BlobRestart& restart,
                    Deadline deadline) override {
    if (!IsDigest(blob.digest)) return Error{Code::kInvalid, "not a digest"};
    for (size_t mirror = 0; mirror + 1 < clients_.size(); ++mirror) {
      if (silent_[mirror]) continue;
      BlobTransfer transfer(blob, sink, restart, progress_);
      Status done = transfer.Run(*clients_[mirror], deadline);
      if (done.ok() || transfer.receiver_failed()) return done;
      Note(mirror, done.error());
      TRY(restart());
    }
    return BlobTransfer(blob, sink, restart, progress_).Run(*clients_.back(), deadline);
  }

 private:
  // A mirror that does not answer is not asked again: each time would cost its time limit.
  void Note(size_t mirror, const Error& error) {
    if (error.code == Code::kTemporary) silent_[mirror] = true;
  }

  const std::function<void(const BlobProgress&)> progress_;
  std::vector<std::unique_ptr<RegistryClient>> clients_;
  std::deque<std::atomic<bool>> silent_;
};

}  // namespace

std::string NextPage(std::string_view link) {
  const size_t open = link.find('<');
  const size_t close = link.find('>', open);
  if (open == std::string_view::npos || close == std::string_view::npos) return "";
  std::string parameters(link.substr(close + 1, link.find('<', close) - close - 1));
  std::erase_if(parameters, [](char c) { return c == ' ' || c == '\t' || c == '"'; });
  if (parameters.find(";rel=next") == std::string::npos) return "";
  return std::string(link.substr(open + 1, close - open - 1));
}

Result<std::unique_ptr<Source>> OpenRegistry(const Reference& reference,
                                             const SourceOptions& options) {
  net::HttpClientOptions http;
  http.ca_file = options.ca_file;
  http.proxy = options.proxy;
  http.response_bytes_max = kErrorBytesMax;
  http.stall_seconds = options.stall_seconds;
  net::RetryPolicy retries;
  retries.attempts_max = options.attempts_max;
  retries.first_delay = std::chrono::milliseconds(200);
  retries.delay_max = std::chrono::seconds(30);
  retries.repeatable = true;

  std::vector<RegistryAddress> addresses = TRY(MirrorsOf(
      reference.host, reference.repository, options.mirrors, options.insecure_registries));
  addresses.push_back(
      TRY(MakeRegistryAddress(reference.host, reference.repository, options.insecure_registries)));
  auto registry = std::make_unique<Registry>(options.progress);
  for (size_t at = 0; at < addresses.size(); ++at) {
    const bool mirror = at + 1 < addresses.size();
    net::RetryPolicy its_retries = retries;
    if (mirror) its_retries.attempts_max = std::min(kMirrorAttemptsMax, retries.attempts_max);
    const auto find = [options, host = addresses[at].host, repository = addresses[at].repository] {
      return FindCredential(host, repository, options);
    };
    registry->Add(std::make_unique<RegistryClient>(addresses[at], find, its_retries, http));
  }
  return std::unique_ptr<Source>(std::move(registry));
}

}  // namespace image
