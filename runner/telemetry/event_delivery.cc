// SPDX-License-Identifier: Apache-2.0
#include "telemetry/event_delivery.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/sys.h"
#include "codec/text/neutral.h"
#include "net/http_client.h"
#include "net/retry.h"
#include "net/stream.h"
#include "record/integrity.h"
#include "telemetry/collector_retries.h"
#include "telemetry/event_forms.h"

namespace telemetry {
namespace {

using Kind = EventTarget::Kind;

constexpr size_t kBatchBytes = size_t{512} << 10;  // Most collectors take a megabyte.
constexpr std::chrono::milliseconds kLockPause{20};

// Where batches go: whole lines or messages, one after the other.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual Status Write(const std::string& batch) = 0;
};

class FileSink : public Sink {
 public:
  static Result<std::unique_ptr<Sink>> Open(const std::string& path, Deadline deadline) {
    std::error_code failed;
    const std::string whole =
        std::filesystem::absolute(path, failed).lexically_normal().relative_path().string();
    const Fd root = TRY(sys::Open("/", O_RDONLY | O_DIRECTORY));
    auto sink = std::make_unique<FileSink>();
    sink->file_ = TRY(sys::OpenBeneath(root.get(), whole,
                                       O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY, 0600));
    struct stat facts = {};
    if (::fstat(sink->file_.get(), &facts) != 0) return Errno("fstat");
    if (!S_ISREG(facts.st_mode)) return Error{Code::kInvalid, "not a regular file"};
    while (::flock(sink->file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return Errno("flock");
      if (deadline.passed()) return Error{Code::kTemporary, "another program holds its lock"};
      std::this_thread::sleep_for(kLockPause);
    }
    // What was killed while it wrote left a part of a line.
    const off_t size = ::lseek(sink->file_.get(), 0, SEEK_END);
    char last = '\n';
    if (size > 0 && ::pread(sink->file_.get(), &last, 1, size - 1) != 1) return Errno("read");
    if (last != '\n') TRY(sys::WriteAll(sink->file_.get(), "\n"));
    return std::unique_ptr<Sink>(std::move(sink));
  }

  Status Write(const std::string& batch) override { return sys::WriteAll(file_.get(), batch); }

 private:
  Fd file_;
};

class SyslogSink : public Sink {
 public:
  SyslogSink(net::Stream stream, Deadline deadline)
      : stream_(std::move(stream)), deadline_(deadline) {}
  Status Write(const std::string& batch) override { return stream_.Write(batch, deadline_); }

 private:
  net::Stream stream_;
  Deadline deadline_;
};

class HttpSink : public Sink {
 public:
  HttpSink(net::HttpClient client, const EventTarget& target, Deadline deadline)
      : client_(std::move(client)), target_(target), deadline_(deadline) {
    if (target.credential.empty()) return;
    SecretString value = target.kind == Kind::kSplunk ? "Splunk "
                         : target.kind == Kind::kBulk ? "ApiKey "
                                                      : "Bearer ";
    value.append(target.credential.reveal());
    authorization_ = Secret(value);
  }

  Status Write(const std::string& batch) override {
    net::HttpRequest request;
    request.method = "POST";
    request.url = target_.url;
    const bool splunk = target_.kind == Kind::kSplunk;
    request.headers = {{"content-type", splunk ? "application/json" : "application/x-ndjson"}};
    request.body = batch;
    if (!authorization_.empty()) request.authorization = &authorization_;
    const net::HttpResponse answer =
        TRY(net::SendWithRetries(client_, request, CollectorRetries(), deadline_));
    if (answer.status < 200 || answer.status > 299) {
      return Error{Code::kTemporary, "the answer was " + std::to_string(answer.status)};
    }
    if (target_.kind != Kind::kBulk) return Ok();
    const BulkFailure failure = ParseBulkAnswer(answer.body);
    if (failure.count == 0) return Ok();
    return Error{Code::kTemporary,
                 std::to_string(failure.count) + " records of a batch: " + failure.reason};
  }

 private:
  net::HttpClient client_;
  const EventTarget& target_;
  Secret authorization_;
  Deadline deadline_;
};

Result<std::unique_ptr<Sink>> OpenSink(const EventTarget& target, const Reach& reach,
                                       Deadline deadline) {
  if (target.kind == Kind::kFile) return FileSink::Open(target.path, deadline);
  if (target.kind == Kind::kSyslog) {
    net::Stream stream =
        TRY(net::Stream::Connect({target.host, target.port, target.tls, reach.ca_file}, deadline));
    return std::unique_ptr<Sink>(std::make_unique<SyslogSink>(std::move(stream), deadline));
  }
  net::HttpClientOptions options;
  options.ca_file = reach.ca_file;
  options.proxy = reach.proxy;
  options.response_bytes_max = kAnswerBytesMax;
  net::HttpClient client = TRY(net::HttpClient::Create(std::move(options)));
  return std::unique_ptr<Sink>(std::make_unique<HttpSink>(std::move(client), target, deadline));
}

std::string HostName() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

// Gathers records into batches. The sink is opened for the first of them.
class Sender {
 public:
  Sender(const FinishedRun& run, const EventTarget& target, const Reach& reach, Deadline deadline)
      : target_(target), reach_(reach), deadline_(deadline), source_(run.record.event.run_url) {
    if (target.kind == Kind::kSyslog) host_ = HostName();
  }

  void Take(std::string_view line) {
    if (!delivery_.why.empty()) {
      ++delivery_.unsent;
      return;
    }
    const std::optional<std::string> part = target_.kind == Kind::kSyslog
                                                ? RenderSyslog(line, host_)
                                                : RenderBatchPart(target_.kind, line, source_);
    if (!part) {
      ++delivery_.unsent;
      ++odd_;
      return;
    }
    batch_ += *part;
    ++waiting_;
    if (batch_.size() >= kBatchBytes) Flush();
  }

  Delivery Finish() {
    Flush();
    if (odd_ > 0 && delivery_.why.empty()) {
      delivery_.why = "too long for it, or not whole";
    }
    return std::move(delivery_);
  }

 private:
  void Flush() {
    if (waiting_ == 0) return;
    const Status written = WriteBatch();
    (written.ok() ? delivery_.sent : delivery_.unsent) += waiting_;
    if (!written.ok()) delivery_.why = codec::NeutralLine(written.error().what, 300);
    batch_.clear();
    waiting_ = 0;
  }

  Status WriteBatch() {
    if (deadline_.passed()) return Error{Code::kTemporary, "the time limit passed"};
    if (!sink_) sink_ = TRY(OpenSink(target_, reach_, deadline_));
    return sink_->Write(batch_);
  }

  const EventTarget& target_;
  const Reach& reach_;
  Deadline deadline_;
  std::string source_;
  std::string host_;
  std::unique_ptr<Sink> sink_;
  std::string batch_;
  int64_t waiting_ = 0;
  int64_t odd_ = 0;
  Delivery delivery_;
};

}  // namespace

Delivery DeliverEvents(const FinishedRun& run, const EventTarget& target, const Reach& reach,
                       Deadline deadline) {
  Sender sender(run, target, reach, deadline);
  record::IntegrityChain links(run.chain);
  const Status read = ForEachEventOf(run, [&](std::string_view line, size_t check) {
    const bool stated = check == 0 && !run.chain.empty();
    const std::optional<std::string> linked = stated ? links.Link(line) : std::nullopt;
    sender.Take(linked ? *linked : line);
  });
  Delivery delivery = sender.Finish();
  if (!read.ok() && delivery.why.empty()) delivery.why = read.error().what;
  return delivery;
}

}  // namespace telemetry
