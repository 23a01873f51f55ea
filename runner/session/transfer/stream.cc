// SPDX-License-Identifier: Apache-2.0
#include "session/transfer/stream.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"

namespace session {
namespace {

constexpr char kName[] = "transferred";
constexpr size_t kChunkBytes = size_t{256} << 10;

}  // namespace

StreamReader::StreamReader(int fd) : fd_(fd), buffer_(kChunkBytes, '\0') {}

Result<std::string_view> StreamReader::Next() {
  for (;;) {
    ssize_t n = ::read(fd_, buffer_.data(), buffer_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Errno("reading a stream of files");
    return std::string_view(buffer_).substr(0, static_cast<size_t>(n));
  }
}

TarWriter WriterTo(int fd, int owner) {
  return TarWriter([fd](std::string_view bytes) { return sys::WriteAll(fd, bytes); }, owner);
}

namespace {

Result<Sent> SendAs(const std::string& name, const Fd& source, const std::string& shown,
                    int stream) {
  TarWriter tar = WriterTo(stream, 0);
  TreeSender sender(tar, TreeSender::Kind::kFiles);
  TRY(sender.Send(source, name, shown));
  TRY(tar.Finish());
  return sender.sent();
}

}  // namespace

Result<Sent> SendTransferred(const Fd& source, const std::string& shown, int stream) {
  return SendAs(kName, source, shown, stream);
}

Result<Sent> SendTree(const Fd& source, const std::string& shown, int stream) {
  struct stat st {};
  if (::fstat(source.get(), &st) != 0) return Errno("fstat " + shown);
  const std::string leaf = shown.substr(shown.rfind('/') + 1);
  return SendAs(S_ISDIR(st.st_mode) ? "." : leaf, source, shown, stream);
}

Result<Received> ReceiveTransferred(int stream, const Landing& landing,
                                    const ReceiveLimits& limits) {
  StreamReader input(stream);
  image::TarReader tar([&] { return input.Next(); });
  bool any = false;
  auto route = [&](const std::string& path) -> std::optional<Spot> {
    any = true;
    if (path == kName) return Spot{landing.parent.get(), landing.leaf};
    if (!path.starts_with(std::string(kName) + "/")) return std::nullopt;
    return Spot{landing.parent.get(), landing.leaf + path.substr(sizeof kName - 1)};
  };
  TreeReceiver receiver(TreeReceiver::Kind::kFiles, limits, route);
  TRY(receiver.Receive(tar));
  if (!any) return Error{Code::kIo, "the transfer was broken off"};
  return receiver.received();
}

Result<Received> ReceiveContent(int stream, const Fd& output, const std::string& shown,
                                const ReceiveLimits& limits) {
  StreamReader input(stream);
  image::TarReader tar([&] { return input.Next(); });
  std::optional<image::TarEntry> entry = TRY(tar.Next());
  if (!entry) return Error{Code::kIo, "the transfer was broken off"};
  if (entry->type != image::TarType::kFile || entry->sparse) {
    return Error{Code::kInvalid, "a directory cannot be written to " + shown};
  }
  if (entry->size > limits.bytes_max) {
    return Error{Code::kInvalid, shown + ": the limit of " + std::to_string(limits.bytes_max) +
                                     " bytes is exceeded"};
  }
  for (;;) {
    image::TarPiece piece = TRY(tar.Read());
    if (piece.bytes.empty()) break;
    TRY(sys::WriteAll(output.get(), piece.bytes).Context("writing " + shown));
  }
  if (TRY(tar.Next())) return Error{Code::kInvalid, "more than one file for " + shown};
  return Received{1, entry->size};
}

Result<Received> ReceiveTree(const image::TarReader::Input& input, int directory,
                             const ReceiveLimits& limits) {
  image::TarReader tar(input);
  TreeReceiver receiver(TreeReceiver::Kind::kTree, limits, [directory](const std::string& path) {
    return std::optional(Spot{directory, path});
  });
  TRY(receiver.Receive(tar));
  return receiver.received();
}

std::string LeftOutText(const Sent& sent) {
  if (sent.left_out == 0) return {};
  return std::to_string(sent.left_out) + " left out, the first: " + sent.first_left_out;
}

}  // namespace session
