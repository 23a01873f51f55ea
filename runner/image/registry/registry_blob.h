// SPDX-License-Identifier: Apache-2.0
// Downloads one blob of a registry, and goes on where an interrupted transfer ended.
#pragma once

#include "image/registry/registry_client.h"
#include "image/source/source.h"

namespace image {

// The transfer of one blob: what has come so far, and how it goes on after a failure.
class BlobTransfer {
 public:
  BlobTransfer(const Descriptor& blob, const BlobSink& sink, const BlobRestart& restart,
               const std::function<void(const BlobProgress&)>& progress)
      : blob_(blob), sink_(sink), restart_(restart), progress_(progress), check_(blob) {}

  // Runs until the blob is whole and has its digest, resuming where it was, or `client` has no more
  // attempts. May be called again with another client.
  Status Run(RegistryClient& client, Deadline deadline);

  // True if the sink or the restart failed: no other registry can help.
  bool receiver_failed() const { return !receiver_.ok(); }

 private:
  Result<net::HttpResponse> Attempt(RegistryClient& client, Deadline deadline);
  Status Take(const net::HttpResponse& head, std::string_view bytes);
  Status Give(std::string_view bytes);
  Status Begin(const net::HttpResponse& head);
  Status Rewind();

  const Descriptor& blob_;
  const BlobSink& sink_;
  const BlobRestart& restart_;
  const std::function<void(const BlobProgress&)>& progress_;
  BlobCheck check_;
  bool begun_ = false;      // This attempt's first bytes are judged.
  bool resumable_ = true;   // Ranges were answered as they should be, as far as we know.
  bool resumed_ = false;    // True if the bytes came in several pieces.
  Status receiver_ = Ok();  // The status that sink and restart gave.
  int64_t reported_ = 0;
};

// Returns whether `value` (a Content-Range header) says: from `offset` to the end of `total` bytes.
bool IsRangeFrom(std::string_view value, int64_t offset, int64_t total);

}  // namespace image
