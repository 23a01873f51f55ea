// SPDX-License-Identifier: Apache-2.0
#include "serve/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ascii.h"
#include "codec/data/json_line.h"
#include "codec/text/base64.h"
#include "codec/text/utf8.h"

namespace serve {
namespace {

// The beginning of some bytes, without a character at the end that is not whole.
struct Piece {
  std::string_view whole;
  bool is_text = true;
};

Piece Split(std::string_view bytes) {
  constexpr size_t kCharacterBytesMax = 4;
  const size_t invalid = codec::FindInvalidUtf8(bytes);
  if (invalid == std::string_view::npos) return {bytes, true};
  if (bytes.size() - invalid >= kCharacterBytesMax) return {bytes, false};
  const codec::Utf8Character last = codec::NextUtf8(bytes.substr(invalid));
  if (invalid + last.bytes != bytes.size()) return {bytes, false};
  return {bytes.substr(0, invalid), true};
}

bool Append(const Piece& piece, std::string* line) {
  if (piece.whole.empty()) return false;
  if (piece.is_text) {
    *line += "\"text\":";
    codec::AppendJsonText(piece.whole, line);
  } else {
    ((*line += "\"base64\":\"") += codec::EncodeBase64(piece.whole)) += '"';
  }
  return true;
}

}  // namespace

Output::Output(int fd) : fd_(fd) {
  struct stat st {};
  is_socket_ = ::fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
  if (!S_ISFIFO(st.st_mode)) return;
  (void)::fcntl(fd, F_SETPIPE_SZ, 1 << 20);
  (void)::fcntl(fd, F_SETFL, O_WRONLY | O_NONBLOCK);
}

void Output::Write(std::string_view line) {
  if (closed_) return;
  if (!waits()) line.remove_prefix(WriteNow(line));
  if (!closed_) lines_ += line;
}

size_t Output::WriteNow(std::string_view bytes) {
  size_t written = 0;
  while (!closed_ && written < bytes.size()) {
    const char* rest = bytes.data() + written;
    const size_t size = bytes.size() - written;
    const ssize_t n = is_socket_ ? ::send(fd_, rest, size, MSG_DONTWAIT | MSG_NOSIGNAL)
                                 : ::write(fd_, rest, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      closed_ = errno != EAGAIN && errno != EWOULDBLOCK;
      break;
    }
    written += static_cast<size_t>(n);
  }
  return written;
}

void Output::Flush() {
  from_ += WriteNow(std::string_view(lines_).substr(from_));
  if (!waits() || closed_) {
    lines_.clear();
    from_ = 0;
  } else if (from_ > kWaitingBytesMax) {
    lines_.erase(0, from_);
    from_ = 0;
  }
}

void Output::Finish(Deadline deadline) {
  Flush();
  while (!closed_ && waits() && !deadline.passed()) {
    pollfd room{fd_, POLLOUT, 0};
    if (::poll(&room, 1, deadline.poll_ms()) < 0 && errno != EINTR) return;
    Flush();
  }
}

std::string_view CollectRoom::Take(std::string_view bytes) {
  size_t taken = 0;
  for (; taken < bytes.size() && bytes_ > 0; ++taken, --bytes_) {
    const auto byte = static_cast<unsigned char>(bytes[taken]);
    // An escape has six bytes, U+FFFD has three, and a quote gets a backslash.
    const size_t rendered = ascii::IsControl(bytes[taken]) ? 6
                            : byte >= 0x80                 ? 3
                            : byte == '"' || byte == '\\'  ? 2
                                                           : 1;
    if (rendered > rendered_bytes_) break;
    rendered_bytes_ -= rendered;
  }
  if (taken < bytes.size()) bytes_ = 0;
  return bytes.substr(0, taken);
}

std::string_view WholeText(std::string_view text) { return Split(text).whole; }

bool TextPieces::Take(std::string_view bytes, std::string* line) {
  std::string joined;
  if (!tail_.empty()) {
    joined = std::move(tail_) + std::string(bytes);
    bytes = joined;
  }
  const Piece piece = Split(bytes);
  tail_ = bytes.substr(piece.whole.size());
  return Append(piece, line);
}

bool TextPieces::Finish(std::string* line) {
  const std::string tail = std::exchange(tail_, {});
  return Append({tail, codec::FindInvalidUtf8(tail) == std::string_view::npos}, line);
}

void SetBytes(codec::Json* json, std::string bytes) {
  if (codec::FindInvalidUtf8(bytes) == std::string_view::npos) {
    json->Set("text", std::move(bytes));
  } else {
    json->Set("base64", codec::EncodeBase64(bytes));
  }
}

}  // namespace serve
