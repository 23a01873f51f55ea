// SPDX-License-Identifier: Apache-2.0
// One TCP connection of the event loop, plain or TLS, for coroutines: read into a bounded buffer,
// write, close.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/result.h"
#include "gateway/async/byte_allowance.h"
#include "gateway/async/event_loop.h"
#include "gateway/async/limits.h"
#include "gateway/async/openssl_owner.h"
#include "gateway/async/task.h"

namespace gateway {

// One TCP connection, plain at first and inside TLS after StartTls, with a bounded buffer of what
// was read and not yet used. One coroutine may read while another writes. Errors are kIo, or
// kTemporary when a deadline passed.
class Stream {
 public:
  // Takes a connected (or connecting) non-blocking socket. `loop` must outlive the stream.
  Stream(EventLoop& loop, Fd socket);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Looks at what has arrived on a plain stream without taking it: at most `size` bytes into `out`.
  // Returns 0 if the peer has finished. Nothing may be buffered.
  Task<Result<size_t>> Peek(char* out, size_t size, Deadline deadline);

  // Reads at most `size` bytes straight into `out`; never mixed with buffered bytes.
  Task<Result<size_t>> Read(char* out, size_t size, Deadline deadline);

  // Reads more into the buffer and says how much, 0 if the peer has finished. At most
  // kStreamBufferBytes at a time; fails with kInvalid if the buffer is full. While it waits with
  // nothing buffered, it holds no buffer.
  Task<Result<size_t>> Fill(Deadline deadline);
  std::string_view buffered() const { return {buffer_.get() + begin_, end_ - begin_}; }
  void Consume(size_t bytes);

  // Writes all of it; fails if the peer takes nothing for kWriteTimeout. `more` is true if another
  // Write or Linger follows at once, which may take this with it.
  Task<Status> Write(std::string_view bytes, bool more = false);

  // Shakes hands over this stream, as SSL_set_accept_state or SSL_set_connect_state has set in
  // `ssl`. Nothing may be buffered. The error says why a certificate was not accepted.
  Task<Status> StartTls(SslOwner ssl, Deadline deadline);

  // Has a server inside TLS 1.3 offer resumption: what is written next brings the client a ticket
  // to resume with. Most clients end with their first connection; those that use one twice are
  // worth the work.
  void OfferResumption();

  // Tells the peer that nothing more will be written. Reading goes on.
  void FinishWriting();
  // Cuts both directions: a waiter for this stream wakes up and fails.
  void Abort();
  // Does the same for reading alone: a reader wakes up and sees the end; writing goes on.
  void AbortReading();
  // Has the peer told of a broken connection (RST), not of its end.
  void ResetOnClose();
  // Does FinishWriting and drops what still arrives, for kLingerTimeout at most: otherwise the
  // kernel throws away what the peer has not yet read if unread bytes are left here.
  Task<void> Linger();

  // Returns true if the peer has hung up or has sent something unasked: the stream must not be used
  // for a new request.
  bool IsStale();

  // Spends `allowance` on all that passes from now on; beyond it, reading and writing fail with its
  // `why`. It must outlive the stream.
  void Bound(ByteAllowance* allowance) { allowance_ = allowance; }

  int fd() const { return socket_.get(); }
  bool tls() const { return ssl_ != nullptr; }
  // Returns the protocol that both sides agreed on by ALPN ("h2"); empty if there was no agreement.
  std::string_view protocol() const;

 private:
  // Returns the transport between OpenSSL and the socket: it reads only what is there, collects
  // what is written.
  static const BIO_METHOD* Transport();
  static int ReadTransport(BIO* bio, char* out, size_t size, size_t* got);
  static int WriteTransport(BIO* bio, const char* bytes, size_t size, size_t* taken);
  static long ControlTransport(BIO* bio, int command, long number, void* pointer);

  // Reads what can be read without waiting; nullopt if the caller has to wait for what `kind` says
  // (SSL_ERROR_...).
  std::optional<Result<size_t>> TryReadTls(char* out, size_t size, int& kind);
  Task<Result<size_t>> ReadTls(char* out, size_t size, Deadline deadline);
  Task<Result<size_t>> FillLater(Deadline deadline);
  Task<Result<size_t>> ReadPlain(char* out, size_t size, int flags, Deadline deadline);
  Task<bool> AwaitReadable(Deadline deadline);
  // Waits for what an SSL call that failed wants. Returns false if the call failed for good, or at
  // the deadline.
  Task<bool> AwaitTls(int kind, Deadline deadline);
  void MakeRoom();

  // Call recv(2) and send(2), within the allowance; beyond it they fail with EDQUOT, and the
  // connection is cut.
  ssize_t Receive(char* out, size_t size, int flags);
  ssize_t Send(std::string_view bytes, int flags);
  ssize_t Exceed();
  // Return the error of a failed call: of Receive or Send, by errno; of OpenSSL. Both return that
  // of Exceeded if the allowance is used up.
  Error Failed(const char* call) const;
  Error TlsFailed() const;
  std::optional<Error> Exceeded() const;

  // Sends what OpenSSL has written, as far as the socket takes it. Returns false if the socket is
  // broken. `flags` are send(2)'s.
  bool TrySend(int flags = 0);
  Task<Status> SendWritten(Deadline deadline, int flags = 0);
  void WriteCloseNotify();
  Task<Status> WritePlain(std::string_view bytes, bool more);
  // Returns false on failure, with SSL_get_error's reason in `kind`.
  bool Encrypt(std::string_view& bytes, int& kind);
  Task<Status> WriteTlsLater(std::string_view bytes, bool more);

  EventLoop& loop_;
  Fd socket_;
  SslOwner ssl_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::string written_;   // By OpenSSL, for the socket.
  size_t sent_ = 0;       // The bytes of written_ that are sent.
  bool drained_ = false;  // The socket has had nothing more to read since the loop was last asked.
  bool ended_ = false;    // The peer has finished, below TLS.
  bool finished_ = false;
  bool reading_aborted_ = false;
  ByteAllowance* allowance_ = nullptr;
};

}  // namespace gateway
