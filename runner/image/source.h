// SPDX-License-Identifier: Apache-2.0
// Where the bytes of images come from: a registry, an OCI layout, an archive. What a source gives
// has the digest that was asked for; whether it may be run is decided elsewhere (image/verify.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "image/manifest.h"

namespace image {

struct Document {
  std::string media_type;
  std::string bytes;
  std::string digest;  // Of `bytes`, computed here.
};

// Takes the next bytes of a blob. An error ends the transfer and is what FetchBlob gives.
using BlobSink = std::function<Status(std::string_view bytes)>;
// The transfer starts again from byte 0: a server could not resume. Whoever cannot take that back
// fails.
using BlobRestart = std::function<Status()>;

class Source {
 public:
  virtual ~Source() = default;

  // By tag or digest; its digest is verified when one was asked for. kNotFound: there is no such
  // manifest, and the source said so. Any other error: nobody knows (kTemporary, kRefused...),
  // which must never be taken for "absent".
  virtual Result<Document> FetchManifest(const std::string& tag_or_digest, Deadline deadline) = 0;

  // What refers to `digest` (referrers API, else its fallback tag): descriptors as listed, at most
  // kReferrersMax, unfiltered. Empty: nothing does. Errors as above.
  virtual Result<std::vector<Descriptor>> FetchReferrers(const std::string& digest,
                                                         Deadline deadline) = 0;

  // A small blob, whole; its size and digest verified. Fails with kInvalid over `bytes_max`.
  virtual Result<std::string> FetchBlob(const Descriptor& blob, size_t bytes_max,
                                        Deadline deadline) = 0;

  // Streams a blob, compressed as it is, resuming and retrying; its size and digest are verified by
  // the time this succeeds, and what went to `sink` before may be wrong when it fails. From several
  // threads at once.
  virtual Status StreamBlob(const Descriptor& blob, const BlobSink& sink,
                            const BlobRestart& restart, Deadline deadline) = 0;
};

inline constexpr size_t kReferrersMax = 64;

}  // namespace image
