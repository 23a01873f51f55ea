// SPDX-License-Identifier: Apache-2.0
#include "serve/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/data/json_line.h"
#include "codec/text/base64.h"
#include "codec/text/utf8.h"

namespace serve {
namespace {

std::string RenderBytes(std::string_view bytes) {
  if (bytes.empty()) return {};
  if (codec::FindInvalidUtf8(bytes) != std::string_view::npos) {
    return "\"base64\":\"" + codec::EncodeBase64(bytes) + "\"";
  }
  std::string object;
  codec::JsonLine(object).Text("text", bytes).Close();
  return object.substr(1, object.size() - 2);
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
  lines_ += line;
  if (lines_.size() - from_ <= line.size()) Flush();
}

void Output::Flush() {
  while (!closed_ && waits()) {
    const std::string_view rest = std::string_view(lines_).substr(from_);
    const ssize_t n = is_socket_
                          ? ::send(fd_, rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                          : ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      closed_ = errno != EAGAIN && errno != EWOULDBLOCK;
      break;
    }
    from_ += static_cast<size_t>(n);
  }
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
    const size_t rendered = byte < 0x20 || byte == 0x7f   ? 6
                            : byte >= 0x80                ? 3
                            : byte == '"' || byte == '\\' ? 2
                                                          : 1;
    if (rendered > rendered_bytes_) break;
    rendered_bytes_ -= rendered;
  }
  if (taken < bytes.size()) bytes_ = 0;
  return bytes.substr(0, taken);
}

std::string_view WholeText(std::string_view text) {
  constexpr size_t kCharacterBytesMax = 4;
  const size_t invalid = codec::FindInvalidUtf8(text);
  if (invalid == std::string_view::npos || text.size() - invalid >= kCharacterBytesMax) return text;
  const codec::Utf8Character last = codec::NextUtf8(text.substr(invalid));
  return invalid + last.bytes == text.size() ? text.substr(0, invalid) : text;
}

std::string TextPieces::Take(std::string_view bytes) {
  std::string joined;
  if (!tail_.empty()) {
    joined = std::move(tail_) + std::string(bytes);
    bytes = joined;
  }
  const std::string_view whole = WholeText(bytes);
  std::string member = RenderBytes(whole);
  tail_ = bytes.substr(whole.size());
  return member;
}

void SetBytes(codec::Json* json, std::string bytes) {
  if (codec::FindInvalidUtf8(bytes) == std::string_view::npos) {
    json->Set("text", std::move(bytes));
  } else {
    json->Set("base64", codec::EncodeBase64(bytes));
  }
}

std::string TextPieces::Finish() { return RenderBytes(std::exchange(tail_, {})); }

}  // namespace serve
