// SPDX-License-Identifier: Apache-2.0
#include "gateway/stream.h"

#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>

namespace gateway {
namespace {

Error TimedOut() { return Error{Code::kTemporary, "timed out"}; }

}  // namespace

std::string TakeSslError() {
  unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "connection closed";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "error " + std::to_string(code);
}

Stream::Stream(EventLoop& loop, Fd socket) : loop_(loop), socket_(std::move(socket)) {}

Stream::~Stream() { loop_.Forget(socket_.get()); }

Task<Result<size_t>> Stream::ReadPlain(char* out, size_t size, int flags, Deadline deadline) {
  for (;;) {
    ssize_t n = ::recv(socket_.get(), out, size, flags);
    if (n >= 0) co_return static_cast<size_t>(n);
    if (errno == EINTR) continue;
    if (errno != EAGAIN) co_return Errno("recv");
    bool ready = co_await loop_.Readable(socket_.get(), deadline);
    if (!ready) co_return TimedOut();
  }
}

Task<Result<size_t>> Stream::Peek(char* out, size_t size, Deadline deadline) {
  ENSURE(!ssl_ && buffered().empty());
  co_return co_await ReadPlain(out, size, MSG_PEEK, deadline);
}

Task<bool> Stream::AwaitTls(int result, Deadline deadline) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ: {
      bool ready = co_await loop_.Readable(socket_.get(), deadline);
      co_return ready;
    }
    case SSL_ERROR_WANT_WRITE: {
      bool ready = co_await loop_.Writable(socket_.get(), deadline);
      co_return ready;
    }
    default:
      co_return false;
  }
}

Task<Result<size_t>> Stream::ReadTls(char* out, size_t size, Deadline deadline) {
  for (;;) {
    ERR_clear_error();
    size_t n = 0;
    int result = SSL_read_ex(ssl_.get(), out, size, &n);
    if (result == 1) co_return n;
    int kind = SSL_get_error(ssl_.get(), result);
    if (kind == SSL_ERROR_ZERO_RETURN) co_return size_t{0};
    bool wants = kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE;
    if (!wants) co_return Error{Code::kIo, "TLS: " + TakeSslError()};
    bool ready = co_await AwaitTls(result, deadline);
    if (!ready) co_return TimedOut();
  }
}

Task<Result<size_t>> Stream::Read(char* out, size_t size, Deadline deadline) {
  ENSURE(buffered().empty());
  if (ssl_) co_return co_await ReadTls(out, size, deadline);
  co_return co_await ReadPlain(out, size, 0, deadline);
}

Task<Result<size_t>> Stream::Fill(Deadline deadline) {
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  size_t held = buffer_.size();
  if (held >= kStreamBufferBytesMax) co_return Error{Code::kInvalid, "too much at once"};
  buffer_.resize(held + kStreamBufferBytes);
  char* out = buffer_.data() + held;
  // Two statements: gcc 12 destroys the wrong temporaries of a conditional with co_await in it.
  Result<size_t> read = size_t{0};
  if (ssl_) {
    read = co_await ReadTls(out, kStreamBufferBytes, deadline);
  } else {
    read = co_await ReadPlain(out, kStreamBufferBytes, 0, deadline);
  }
  buffer_.resize(held + (read.ok() ? read.value() : 0));
  co_return read;
}

void Stream::Consume(size_t bytes) {
  ENSURE(bytes <= buffered().size());
  begin_ += bytes;
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = 0;
  }
}

Task<Status> Stream::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    Deadline deadline = Deadline::After(kWriteTimeout);
    if (ssl_) {
      ERR_clear_error();
      size_t n = 0;
      int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &n);
      if (result == 1) {
        bytes.remove_prefix(n);
        continue;
      }
      int kind = SSL_get_error(ssl_.get(), result);
      bool wants = kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE;
      if (!wants) co_return Error{Code::kIo, "TLS: " + TakeSslError()};
      bool ready = co_await AwaitTls(result, deadline);
      if (!ready) co_return TimedOut();
      continue;
    }
    ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) co_return Errno("send");
    bool ready = co_await loop_.Writable(socket_.get(), deadline);
    if (!ready) co_return TimedOut();
  }
  co_return Ok();
}

Task<Status> Stream::StartTls(SslOwner ssl, Deadline deadline) {
  ENSURE(!ssl_ && buffered().empty());
  ENSURE(SSL_set_fd(ssl.get(), socket_.get()) == 1);
  ssl_ = std::move(ssl);
  for (;;) {
    ERR_clear_error();
    int result = SSL_do_handshake(ssl_.get());
    if (result == 1) co_return Ok();
    int kind = SSL_get_error(ssl_.get(), result);
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
      bool ready = co_await AwaitTls(result, deadline);
      if (!ready) co_return TimedOut();
      continue;
    }
    long verified = SSL_get_verify_result(ssl_.get());
    std::string why = TakeSslError();
    if (verified != X509_V_OK) {
      why += ": ";
      why += X509_verify_cert_error_string(verified);
    }
    co_return Error{Code::kIo, "TLS: " + why};
  }
}

void Stream::FinishWriting() {
  if (ssl_) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());  // Only sends close_notify; a full socket loses it, as a cut would.
    ERR_clear_error();
  }
  ::shutdown(socket_.get(), SHUT_WR);
}

void Stream::Abort() { ::shutdown(socket_.get(), SHUT_RDWR); }

void Stream::AbortReading() { ::shutdown(socket_.get(), SHUT_RD); }

void Stream::ResetOnClose() {
  linger none{1, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

Task<Done> Stream::Linger() {
  FinishWriting();
  // Below TLS: what arrives now is dropped, so it need not be decrypted.
  Deadline deadline = Deadline::After(kLingerTimeout);
  std::string dropped(kStreamBufferBytes, '\0');
  size_t total = 0;
  while (total < kLingerBytesMax) {
    Result<size_t> n = co_await ReadPlain(dropped.data(), dropped.size(), 0, deadline);
    if (!n.ok() || n.value() == 0) break;
    total += n.value();
  }
  co_return Done{};
}

std::string_view Stream::protocol() const {
  const unsigned char* name = nullptr;
  unsigned int size = 0;
  if (ssl_) SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

bool Stream::IsStale() const {
  if (!buffered().empty()) return true;
  char byte = 0;
  if (!ssl_) {
    ssize_t n = ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return !(n < 0 && errno == EAGAIN);
  }
  // Session tickets arrive unasked and are consumed here; application data or an end are not fine.
  ERR_clear_error();
  size_t n = 0;
  int result = SSL_peek_ex(ssl_.get(), &byte, 1, &n);
  bool stale = result == 1 || SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ;
  ERR_clear_error();
  return stale;
}

}  // namespace gateway
