// SPDX-License-Identifier: Apache-2.0
// The sources of images: a registry, an OCI layout, an archive. The bytes that a source gives have
// the digest that was asked for; whether they may be run is decided elsewhere (image/verify.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "base/secret.h"
#include "codec/data/digest.h"
#include "image/source/manifest.h"
#include "image/source/reference.h"
#include "net/proxy.h"

namespace image {

struct Document {
  std::string media_type;
  std::string bytes;
  std::string digest;  // The digest of `bytes`, computed here.
};

// Takes the next bytes of a blob; none, now and then, while nothing comes from a registry. An error
// ends the transfer and is what FetchBlob gives.
using BlobSink = std::function<Status(std::string_view bytes)>;
// The transfer starts again from byte 0: a server could not resume. A consumer that cannot start
// over fails.
using BlobRestart = std::function<Status()>;

// Returns `error` with what it is about before it, unless its text names that already: a digest is
// long.
Error About(std::string_view kind, std::string_view name, Error error);

class Source {
 public:
  virtual ~Source() = default;

  // Fetches a manifest by tag or digest; a digest that was asked for is verified. Fails with
  // kNotFound if there is no such manifest, and the source said so. Any other error (kTemporary,
  // kRefused...) leaves it unknown, which must never be taken for "absent".
  virtual Result<Document> FetchManifest(const std::string& tag_or_digest, Deadline deadline) = 0;

  // Fetches the descriptors of what refers to `digest` (referrers API, else its fallback tag): as
  // listed, at most kReferrersMax, unfiltered; more are kInvalid. Empty if nothing does. Fails as
  // above.
  virtual Result<std::vector<Descriptor>> FetchReferrers(const std::string& digest,
                                                         Deadline deadline) = 0;

  // Returns a small blob, whole; its size and digest verified. Fails with kInvalid over
  // `bytes_max`.
  virtual Result<std::string> FetchBlob(const Descriptor& blob, size_t bytes_max,
                                        Deadline deadline) = 0;

  // Streams a blob, compressed as it is, resuming and retrying; its size and digest are verified by
  // the time this succeeds, and what went to `sink` before may be wrong when it fails. From several
  // threads at once.
  virtual Status StreamBlob(const Descriptor& blob, const BlobSink& sink,
                            const BlobRestart& restart, Deadline deadline) = 0;
};

inline constexpr size_t kReferrersMax = 1024;

// The progress of one blob's transfer; `bytes` falls back to 0 when it starts again.
struct BlobProgress {
  std::string digest;
  int64_t bytes = 0;
  int64_t bytes_total = 0;
};

struct SourceOptions {
  // The credential for the registry `password_host` ("ghcr.io"), and no other: a source for another
  // repository may be opened with the same options. Before every other credential. `password` is
  // borrowed for the life of the Source, may be null.
  std::string password_host;
  std::string username;
  const Secret* password = nullptr;

  std::string ca_file;  // PEM; if empty, the system's.
  net::Proxy proxy;

  // The "host[:port]" pairs that are asked over http: only loopback ones, or those that are listed
  // twice.
  std::vector<std::string> insecure_registries;
  // "docker.io=mirror.example:5000[/prefix]": asked before that registry, under its own
  // credentials; what it does not have, or fails to give, the registry itself is asked for.
  std::vector<std::string> mirrors;

  // Returns a variable of the environment, for credentials (image/registry/credential_search.h has
  // the list and its order). If it is empty, `password` is the only credential.
  std::function<std::optional<std::string>(const std::string& name)> environment;
  // The checkout, from which no credential helper is started: a stranger may have written it. May
  // be empty.
  std::string checkout;

  // Called from every thread that streams, a few times per MiB.
  std::function<void(const BlobProgress&)> progress;

  // A transfer that stays below 1000 bytes in a second for this long is tried anew.
  int stall_seconds = 30;
  int attempts_max = 5;  // The attempts of one request, with back-off between them.
};

// Checks a blob while it streams from any source: its size and its digest.
class BlobCheck {
 public:
  explicit BlobCheck(const Descriptor& blob) : digest_(blob.digest), bytes_total_(blob.size) {}

  // Fails with kRefused as soon as there is more than there should be; the surplus is not hashed.
  Status Take(std::string_view bytes);
  // Fails with kRefused if bytes are missing, or the digest is another.
  Status Finish();
  int64_t bytes() const { return bytes_; }
  bool complete() const { return bytes_ == bytes_total_; }
  // Starts from byte 0 again.
  void Restart();

 private:
  std::string digest_;
  int64_t bytes_total_;
  int64_t bytes_ = 0;
  codec::Sha256 hash_;
};

// Returns `bytes` as a Document. Fails with kRefused if `digest` is not empty and not theirs.
Result<Document> MakeDocument(std::string media_type, std::string bytes, const std::string& digest);

// Does what StreamBlob does for bytes that are at hand: `read` gives those from an offset on, empty
// at the end.
Status StreamLocalBlob(const Descriptor& blob,
                       const std::function<Result<std::string_view>(int64_t offset)>& read,
                       const BlobSink& sink,
                       const std::function<void(const BlobProgress&)>& progress, Deadline deadline);

// Does what FetchBlob does, by means of StreamBlob.
Result<std::string> CollectBlob(Source& source, const Descriptor& blob, size_t bytes_max,
                                Deadline deadline);

}  // namespace image
