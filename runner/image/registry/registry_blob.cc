// SPDX-License-Identifier: Apache-2.0
#include "image/registry/registry_blob.h"

namespace image {
namespace {

constexpr int64_t kReportBytes = 256 * 1024;
// A transfer that got so far since the last failure has earned all its attempts again.
constexpr int64_t kEarnedBytes = 1024 * 1024;

}  // namespace

bool IsRangeFrom(std::string_view value, int64_t offset, int64_t total) {
  const std::string start = "bytes " + std::to_string(offset) + "-" + std::to_string(total - 1);
  return value == start + "/" + std::to_string(total) || value == start + "/*";
}

Status BlobTransfer::Run(RegistryClient& client, Deadline deadline) {
  while (true) {
    const int64_t before = check_.bytes();
    Result<net::HttpResponse> answer =
        net::GetWithRetries([&] { return Attempt(client, deadline); }, client.retries(), deadline,
                            [&] { return !Give({}).ok(); });
    if (!receiver_.ok()) return receiver_;
    if (answer.ok() && answer.value().status / 100 == 2) {
      Status finished = check_.Finish();
      if (finished.ok() || !resumed_) return finished;
      // Pieces of different blobs, maybe: once more, whole.
      resumable_ = false;
      if (!Rewind().ok()) return receiver_;
      continue;
    }
    const bool advanced = resumable_ && check_.bytes() - before >= kEarnedBytes;
    if (!answer.ok() && answer.error().code == Code::kTemporary && advanced && !deadline.passed()) {
      continue;
    }
    if (!answer.ok()) return About("blob ", blob_.digest, std::move(answer).error());
    return client.Explain(answer.value(), "blob " + blob_.digest);
  }
}

Result<net::HttpResponse> BlobTransfer::Attempt(RegistryClient& client, Deadline deadline) {
  if (check_.bytes() > 0 && !resumable_) TRY(Rewind());
  begun_ = false;
  const RegistryRequest request{client.address().ApiUrl("blobs/" + blob_.digest), "",
                                check_.bytes()};
  const auto sink = [this](const net::HttpResponse& head, std::string_view bytes) {
    return Take(head, bytes);
  };
  Result<net::HttpResponse> answer = client.Get(request, sink, deadline);
  net::HttpResponse response;
  if (answer.ok()) {
    response = std::move(answer).value();
  } else if (begun_ && check_.complete() && answer.error().code == Code::kTemporary) {
    response.status = 200;  // Every byte is there: how the transfer ended does not matter.
  } else {
    return std::move(answer).error();
  }
  if (response.status == 416) {
    resumable_ = false;
    return Error{Code::kTemporary, "the registry now has less of it than it already sent"};
  }
  if (response.status / 100 == 2 && !check_.complete()) {
    return Error{Code::kTemporary, "it ended after " + std::to_string(check_.bytes()) + " of " +
                                       std::to_string(blob_.size) + " bytes"};
  }
  return response;
}

Status BlobTransfer::Take(const net::HttpResponse& head, std::string_view bytes) {
  if (bytes.empty()) return Give(bytes);
  if (!begun_) TRY(Begin(head));
  begun_ = true;
  TRY(check_.Take(bytes));
  TRY(Give(bytes));
  if (progress_ && (check_.complete() || check_.bytes() - reported_ >= kReportBytes)) {
    reported_ = check_.bytes();
    progress_({blob_.digest, reported_, blob_.size});
  }
  return Ok();
}

Status BlobTransfer::Give(std::string_view bytes) {
  receiver_ = sink_(bytes);
  return receiver_.ok() ? Ok() : Status(Error{Code::kIo, "not accepted"});  // Never tried again.
}

Status BlobTransfer::Begin(const net::HttpResponse& head) {
  const int64_t offset = check_.bytes();
  if (head.status == 206) {
    if (IsRangeFrom(head.Header("content-range"), offset, blob_.size)) {
      resumed_ = resumed_ || offset > 0;
      return Ok();
    }
    resumable_ = false;
    return Error{Code::kTemporary, "the registry returned a different range than requested"};
  }
  const std::string length = head.Header("content-length");
  if (head.status != 200) {
    return Error{Code::kInvalid, "it responded with " + std::to_string(head.status)};
  }
  if (!length.empty() && length != std::to_string(blob_.size)) {
    return Error{Code::kRefused, "the registry has " + length.substr(0, 20) +
                                     " bytes of it, but its descriptor says " +
                                     std::to_string(blob_.size)};
  }
  if (offset > 0) {  // It knows no ranges.
    resumable_ = false;
    return Rewind();
  }
  return Ok();
}

Status BlobTransfer::Rewind() {
  receiver_ = restart_();
  if (!receiver_.ok()) return Error{Code::kIo, "not accepted"};
  check_.Restart();
  reported_ = 0;
  resumed_ = false;
  if (progress_) progress_({blob_.digest, 0, blob_.size});
  return Ok();
}

}  // namespace image
