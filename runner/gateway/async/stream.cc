// SPDX-License-Identifier: Apache-2.0
#include "gateway/async/stream.h"

#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>

#include "gateway/async/limits.h"

namespace gateway {
namespace {

// A buffer that is worth keeping rather than making anew.
constexpr size_t kSmallBytesMax = 4096;
// An ample bound on what TLS adds to kStreamBufferBytes.
constexpr size_t kTlsOverheadBytes = 1024;

Error TimedOut() { return Error{Code::kTemporary, "timed out"}; }

}  // namespace

std::string TakeSslError() {
  unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "connection closed";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "error " + std::to_string(code);
}

Error SslFailed(std::string_view doing) {
  return Error{Code::kBug, std::string(doing) + ": " + TakeSslError()};
}

Stream::Stream(EventLoop& loop, Fd socket) : loop_(loop), socket_(std::move(socket)) {}

Stream::~Stream() { loop_.Forget(socket_.get()); }

// --- Between OpenSSL and the socket ------------------------------------------------------------

const BIO_METHOD* Stream::Transport() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");
    ENSURE(made != nullptr && BIO_meth_set_read_ex(made, ReadTransport) == 1 &&
           BIO_meth_set_write_ex(made, WriteTransport) == 1 &&
           BIO_meth_set_ctrl(made, ControlTransport) == 1);
    return made;
  }();
  return method;
}

int Stream::ReadTransport(BIO* bio, char* out, size_t size, size_t* got) {
  Stream& stream = *static_cast<Stream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  ssize_t n = -1;
  while (!stream.drained_) {
    n = stream.Receive(out, size, 0);
    if (n >= 0) {
      stream.ended_ = n == 0;
      *got = static_cast<size_t>(n);
      return n > 0 ? 1 : 0;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return 0;
    stream.drained_ = true;
  }
  BIO_set_retry_read(bio);
  return 0;
}

int Stream::WriteTransport(BIO* bio, const char* bytes, size_t size, size_t* taken) {
  static_cast<Stream*>(BIO_get_data(bio))->written_.append(bytes, size);
  *taken = size;
  return 1;
}

long Stream::ControlTransport(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
  if (command == BIO_CTRL_EOF) return static_cast<Stream*>(BIO_get_data(bio))->ended_ ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// --- The socket --------------------------------------------------------------------------------

// A coroutine that waits for the peer's answer to what could not be sent wakes up.
ssize_t Stream::Exceed() {
  Abort();
  errno = EDQUOT;
  return -1;
}

ssize_t Stream::Receive(char* out, size_t size, int flags) {
  if (allowance_ != nullptr && (size = allowance_->Allow(size)) == 0) return Exceed();
  ssize_t n = ::recv(socket_.get(), out, size, flags);
  if (n <= 0 || (flags & MSG_PEEK) != 0) return n;
  // Less than asked for: there is no more, and the loop will tell of what comes.
  drained_ = static_cast<size_t>(n) < size;
  if (allowance_ != nullptr) allowance_->Spend(static_cast<size_t>(n));
  return n;
}

ssize_t Stream::Send(std::string_view bytes, int flags) {
  if (allowance_ != nullptr) {
    bytes = bytes.substr(0, allowance_->Allow(bytes.size()));
    if (bytes.empty()) return Exceed();
  }
  ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), flags);
  if (n > 0 && allowance_ != nullptr) allowance_->Spend(static_cast<size_t>(n));
  return n;
}

Error Stream::Failed(const char* call) const {
  int error = errno;
  return Exceeded().value_or(Errno(call, error));
}

Error Stream::TlsFailed() const {
  Error failed{Code::kIo, "TLS: " + TakeSslError()};
  return Exceeded().value_or(std::move(failed));
}

std::optional<Error> Stream::Exceeded() const {
  if (allowance_ == nullptr || !allowance_->exceeded()) return std::nullopt;
  return Error{Code::kIo, allowance_->why()};
}

bool Stream::TrySend(int flags) {
  while (sent_ < written_.size()) {
    ssize_t n = Send(std::string_view(written_).substr(sent_), MSG_NOSIGNAL | flags);
    if (n >= 0) {
      sent_ += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
  sent_ = 0;
  // A small one is kept: most are small.
  if (written_.capacity() > kSmallBytesMax) {
    written_ = std::string();
  } else {
    written_.clear();
  }
  return true;
}

Task<Status> Stream::SendWritten(Deadline deadline, int flags) {
  for (;;) {
    if (!TrySend(flags)) co_return Failed("send");
    if (written_.empty()) co_return Ok();
    size_t sent = sent_;
    bool ready = co_await loop_.Writable(socket_.get(), deadline);
    if (!ready) co_return TimedOut();
    if (sent_ > sent) deadline = Deadline::After(kWriteTimeout);
  }
}

// --- Reading -----------------------------------------------------------------------------------

Task<bool> Stream::AwaitReadable(Deadline deadline) {
  bool ready = co_await loop_.Readable(socket_.get(), deadline);
  if (ready) drained_ = false;
  co_return ready;
}

Task<bool> Stream::AwaitTls(int kind, Deadline deadline) {
  if (kind == SSL_ERROR_WANT_WRITE) {
    bool ready = co_await loop_.Writable(socket_.get(), deadline);
    co_return ready;
  }
  bool ready = co_await AwaitReadable(deadline);
  co_return ready;
}

Task<Result<size_t>> Stream::ReadPlain(char* out, size_t size, int flags, Deadline deadline) {
  for (;;) {
    if (drained_) {
      bool ready = co_await AwaitReadable(deadline);
      if (!ready) co_return TimedOut();
    }
    ssize_t n = Receive(out, size, flags);
    if (n >= 0) co_return static_cast<size_t>(n);
    if (errno == EINTR) continue;
    if (errno != EAGAIN) co_return Failed("recv");
    drained_ = true;
  }
}

Task<Result<size_t>> Stream::Peek(char* out, size_t size, Deadline deadline) {
  ENSURE(!ssl_ && buffered().empty());
  co_return co_await ReadPlain(out, size, MSG_PEEK, deadline);
}

std::optional<Result<size_t>> Stream::TryReadTls(char* out, size_t size, int& kind) {
  // To OpenSSL an end without its notice is an error, behind which nothing can be written either.
  if (reading_aborted_) return Result<size_t>(size_t{0});
  size_t total = 0;
  while (total < size) {
    ERR_clear_error();
    size_t n = 0;
    int result = SSL_read_ex(ssl_.get(), out + total, size - total, &n);
    if (result == 1) {
      total += n;
      // One record at a time; the next may be here already.
      if (drained_ && SSL_has_pending(ssl_.get()) == 0) return Result<size_t>(total);
      continue;
    }
    kind = SSL_get_error(ssl_.get(), result);
    (void)TrySend();  // An answer to a change of keys; if it does not leave now, then later.
    // An end or an error comes again at the next call.
    if (total > 0) return Result<size_t>(total);
    if (kind == SSL_ERROR_ZERO_RETURN) return Result<size_t>(size_t{0});
    bool wants = kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE;
    if (wants) return std::nullopt;
    return Result<size_t>(TlsFailed());
  }
  return Result<size_t>(total);
}

Task<Result<size_t>> Stream::ReadTls(char* out, size_t size, Deadline deadline) {
  for (;;) {
    int kind = SSL_ERROR_NONE;
    std::optional<Result<size_t>> read = TryReadTls(out, size, kind);
    if (read.has_value()) co_return std::move(*read);
    bool ready = co_await AwaitTls(kind, deadline);
    if (!ready) co_return TimedOut();
  }
}

Task<Result<size_t>> Stream::Read(char* out, size_t size, Deadline deadline) {
  ENSURE(buffered().empty());
  if (ssl_) co_return co_await ReadTls(out, size, deadline);
  co_return co_await ReadPlain(out, size, 0, deadline);
}

// Room for kStreamBufferBytes behind what is buffered.
void Stream::MakeRoom() {
  size_t held = end_ - begin_;
  if (capacity_ - end_ >= kStreamBufferBytes) return;
  if (held == 0) {
    if (capacity_ != kStreamBufferBytes) buffer_ = loop_.TakeBuffer();
    capacity_ = kStreamBufferBytes;
    begin_ = end_ = 0;
    return;
  }
  size_t capacity = held + kStreamBufferBytes;
  std::unique_ptr<char[]> larger(new char[capacity]);
  std::copy_n(buffer_.get() + begin_, held, larger.get());
  buffer_ = std::move(larger);
  capacity_ = capacity;
  begin_ = 0;
  end_ = held;
}

Task<Result<size_t>> Stream::Fill(Deadline deadline) {
  if (end_ - begin_ >= kStreamBufferBytesMax) {
    return Result<size_t>(Error{Code::kInvalid, "too much at once"});
  }
  return FillLater(deadline);
}

Task<Result<size_t>> Stream::FillLater(Deadline deadline) {
  for (;;) {
    bool pending = ssl_ && SSL_has_pending(ssl_.get()) == 1;
    if (drained_ && !pending) {
      bool ready = co_await loop_.Readable(socket_.get(), deadline);
      if (!ready) co_return TimedOut();
      drained_ = false;
    }
    MakeRoom();
    char* out = buffer_.get() + end_;
    Result<size_t> read = size_t{0};
    if (ssl_) {
      int kind = SSL_ERROR_NONE;
      std::optional<Result<size_t>> now = TryReadTls(out, kStreamBufferBytes, kind);
      if (!now.has_value() && kind == SSL_ERROR_WANT_READ && drained_) {
        if (begin_ == end_) Consume(0);
        bool ready = co_await loop_.Readable(socket_.get(), deadline);
        if (!ready) co_return TimedOut();
        drained_ = false;
        continue;
      }
      if (now.has_value()) read = std::move(*now);
      if (!now.has_value()) read = co_await ReadTls(out, kStreamBufferBytes, deadline);
    } else {
      read = co_await ReadPlain(out, kStreamBufferBytes, 0, deadline);
    }
    if (read.ok()) end_ += read.value();
    if (begin_ == end_) Consume(0);
    co_return read;
  }
}

void Stream::Consume(size_t bytes) {
  ENSURE(bytes <= end_ - begin_);
  begin_ += bytes;
  if (begin_ < end_) return;
  if (capacity_ == kStreamBufferBytes) loop_.GiveBuffer(std::move(buffer_));
  buffer_.reset();
  capacity_ = begin_ = end_ = 0;
}

// --- Writing -----------------------------------------------------------------------------------

Task<Status> Stream::WritePlain(std::string_view bytes, bool more) {
  int flags = MSG_NOSIGNAL | (more ? MSG_MORE : 0);
  while (!bytes.empty()) {
    ssize_t n = Send(bytes, flags);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) co_return Failed("send");
    bool ready = co_await loop_.Writable(socket_.get(), Deadline::After(kWriteTimeout));
    if (!ready) co_return TimedOut();
  }
  co_return Ok();
}

bool Stream::Encrypt(std::string_view& bytes, int& kind) {
  if (written_.capacity() < bytes.size()) {
    written_.reserve(written_.size() + bytes.size() + kTlsOverheadBytes);
  }
  while (!bytes.empty()) {
    ERR_clear_error();
    size_t n = 0;
    int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &n);
    if (result != 1) {
      kind = SSL_get_error(ssl_.get(), result);
      return false;
    }
    bytes.remove_prefix(n);
  }
  return true;
}

Task<Status> Stream::Write(std::string_view bytes, bool more) {
  if (!ssl_) return WritePlain(bytes, more);
  // The usual case: the socket takes all of it at once.
  int kind = SSL_ERROR_NONE;
  bool short_enough = bytes.size() <= kStreamBufferBytes && written_.empty();
  if (!short_enough || !Encrypt(bytes, kind)) return WriteTlsLater(bytes, more);
  if (more && written_.size() < kStreamBufferBytes) return Ok();
  if (!TrySend()) return Status(Failed("send"));
  if (written_.empty()) return Ok();
  return WriteTlsLater(bytes, more);
}

Task<Status> Stream::WriteTlsLater(std::string_view bytes, bool more) {
  do {
    // The bytes that OpenSSL has written and the socket has not taken are bounded, too.
    std::string_view piece = bytes.substr(0, kStreamBufferBytes);
    bytes.remove_prefix(piece.size());
    int kind = SSL_ERROR_NONE;
    while (!Encrypt(piece, kind)) {
      bool wants = kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE;
      if (!wants) co_return TlsFailed();
      bool ready = co_await AwaitTls(kind, Deadline::After(kWriteTimeout));
      if (!ready) co_return TimedOut();
    }
    if (more && bytes.empty() && written_.size() < kStreamBufferBytes) break;
    Status sent = co_await SendWritten(Deadline::After(kWriteTimeout));
    if (!sent.ok()) co_return sent;
  } while (!bytes.empty());
  co_return Ok();
}

Task<Status> Stream::StartTls(SslOwner ssl, Deadline deadline) {
  ENSURE(!ssl_ && buffered().empty());
  BIO* bio = BIO_new(Transport());
  ENSURE(bio != nullptr);
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl.get(), bio, bio);
  // Reads as many records as have arrived, with one call to the kernel.
  SSL_set_read_ahead(ssl.get(), 1);
  SSL_set_default_read_buffer_len(ssl.get(), kTlsBufferBytes);
  ssl_ = std::move(ssl);
  for (;;) {
    ERR_clear_error();
    int result = SSL_do_handshake(ssl_.get());
    int kind = result == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), result);
    long verified = SSL_get_verify_result(ssl_.get());
    std::string why = result == 1 ? "" : TakeSslError();
    Status sent = co_await SendWritten(deadline);
    if (result == 1) co_return sent;
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
      if (!sent.ok()) co_return sent;
      bool ready = co_await AwaitTls(kind, deadline);
      if (!ready) co_return TimedOut();
      continue;
    }
    if (std::optional<Error> exceeded = Exceeded()) co_return std::move(*exceeded);
    if (verified != X509_V_OK) {
      why += ": ";
      why += X509_verify_cert_error_string(verified);
    }
    co_return Error{Code::kIo, "TLS: " + why};
  }
}

void Stream::OfferResumption() {
  if (!ssl_ || SSL_is_server(ssl_.get()) == 0) return;
  ERR_clear_error();
  SSL_new_session_ticket(ssl_.get());  // Not inside TLS 1.2, which has given one at its beginning.
  ERR_clear_error();
}

void Stream::WriteCloseNotify() {
  if (!ssl_) return;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

void Stream::FinishWriting() {
  if (std::exchange(finished_, true)) return;
  WriteCloseNotify();
  (void)TrySend(MSG_MORE);  // A full socket loses it, as a cut would.
  ::shutdown(socket_.get(), SHUT_WR);
}

void Stream::Abort() { ::shutdown(socket_.get(), SHUT_RDWR); }

void Stream::AbortReading() {
  reading_aborted_ = true;
  ::shutdown(socket_.get(), SHUT_RD);
}

void Stream::ResetOnClose() {
  linger none{1, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

Task<void> Stream::Linger() {
  Deadline deadline = Deadline::After(kLingerTimeout);
  if (!std::exchange(finished_, true)) {
    WriteCloseNotify();
    // With MSG_MORE, the end leaves in the same packet. Bytes that cannot be sent are lost, as by a
    // cut.
    (void)co_await SendWritten(deadline, MSG_MORE);
    ::shutdown(socket_.get(), SHUT_WR);
  }
  // Below TLS: what arrives now is dropped, so it need not be decrypted.
  std::string dropped(kSmallBytesMax, '\0');
  size_t total = 0;
  while (total < kLingerBytesMax) {
    Result<size_t> n = co_await ReadPlain(dropped.data(), dropped.size(), 0, deadline);
    if (!n.ok() || n.value() == 0) break;
    total += n.value();
  }
}

std::string_view Stream::protocol() const {
  const unsigned char* name = nullptr;
  unsigned int size = 0;
  if (ssl_) SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

bool Stream::IsStale() {
  if (!buffered().empty()) return true;
  // The loop would have reported an end, as of anything else.
  bool pending = ssl_ && SSL_has_pending(ssl_.get()) == 1;
  if (drained_ && !pending && !loop_.MayBeReadable(socket_.get())) return false;
  drained_ = false;
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
