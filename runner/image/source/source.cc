// SPDX-License-Identifier: Apache-2.0
#include "image/source/source.h"

namespace image {

Status BlobCheck::Take(std::string_view bytes) {
  if (static_cast<int64_t>(bytes.size()) > bytes_total_ - bytes_) {
    return Error{Code::kRefused, digest_ + " is longer than the " + std::to_string(bytes_total_) +
                                     " bytes it should have"};
  }
  bytes_ += static_cast<int64_t>(bytes.size());
  hash_.Update(bytes);
  return Ok();
}

Status BlobCheck::Finish() {
  if (!complete()) {
    return Error{Code::kRefused, digest_ + " has " + std::to_string(bytes_) + " bytes instead of " +
                                     std::to_string(bytes_total_)};
  }
  const std::string actual = "sha256:" + hash_.Hex();
  if (actual != digest_) {
    return Error{Code::kRefused,
                 "the content received for " + digest_ + " has the digest " + actual};
  }
  return Ok();
}

void BlobCheck::Restart() {
  bytes_ = 0;
  hash_ = codec::Sha256();
}

Error About(std::string_view kind, std::string_view name, Error error) {
  // "sha256:HEX" is a file "sha256/HEX" of a layout.
  if (error.what.find(name.substr(name.find(':') + 1)) == std::string::npos) {
    error.what = std::string(kind) + std::string(name) + ": " + error.what;
  }
  return error;
}

Result<Document> MakeDocument(std::string media_type, std::string bytes,
                              const std::string& digest) {
  Document document{std::move(media_type), std::move(bytes), ""};
  document.digest = DigestOf(document.bytes);
  if (!digest.empty() && digest != document.digest) {
    return Error{Code::kRefused,
                 "the content received for " + digest + " has the digest " + document.digest};
  }
  return document;
}

Status StreamLocalBlob(const Descriptor& blob,
                       const std::function<Result<std::string_view>(int64_t offset)>& read,
                       const BlobSink& sink,
                       const std::function<void(const BlobProgress&)>& progress,
                       Deadline deadline) {
  BlobCheck check(blob);
  while (true) {
    const std::string_view bytes = TRY(read(check.bytes()));
    if (bytes.empty()) return check.Finish();
    if (deadline.passed()) return Error{Code::kTemporary, "the time limit passed"};
    TRY(check.Take(bytes));
    TRY(sink(bytes));
    if (progress) progress({blob.digest, check.bytes(), blob.size});
  }
}

Result<std::string> CollectBlob(Source& source, const Descriptor& blob, size_t bytes_max,
                                Deadline deadline) {
  if (blob.size < 0 || static_cast<size_t>(blob.size) > bytes_max) {
    return Error{Code::kInvalid, blob.digest + " has " + std::to_string(blob.size) +
                                     " bytes; at most " + std::to_string(bytes_max) + " are read"};
  }
  std::string bytes;
  const auto take = [&bytes](std::string_view piece) {
    bytes += piece;
    return Ok();
  };
  const auto restart = [&bytes] {
    bytes.clear();
    return Ok();
  };
  TRY(source.StreamBlob(blob, take, restart, deadline));
  return bytes;
}

}  // namespace image
