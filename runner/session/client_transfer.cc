// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "base/named_path.h"
#include "base/sys.h"
#include "base/wire.h"
#include "session/answer.h"
#include "session/client.h"
#include "session/transfer/landing.h"
#include "session/transfer/stream.h"

namespace session {

namespace {

// A connection that a sandbox at its end did not accept is reset.
bool HasEnded(const Error& error) {
  return error.os_error == ECONNRESET || error.os_error == EPIPE;
}

Error Ended() { return {Code::kIo, "the sandbox ended"}; }

}  // namespace

Status Send(const Fd& connection, std::string_view message, int fd) {
  Status sent = sys::SendMessage(connection.get(), message, fd);
  if (!sent.ok() && HasEnded(sent.error())) return Ended();
  return sent;
}

Result<std::string> Receive(const Fd& connection, Deadline deadline) {
  Result<sys::Message> received = sys::ReceiveMessage(connection.get(), kMessageBytesMax, deadline);
  if (!received.ok() && HasEnded(received.error())) return Ended();
  sys::Message message = TRY(std::move(received));
  if (message.bytes.empty()) return Ended();
  MessageKind kind{};
  Error fault;
  if (wire::Read(message.bytes, kind, fault) && kind == MessageKind::kFault) return fault;
  return std::move(message.bytes);
}

Error Malformed() { return {Code::kIo, "the sandbox's response is malformed"}; }

Status SendScript(const Fd& connection, std::string_view script) {
  for (; !script.empty(); script.remove_prefix(std::min(script.size(), kPieceBytesMax))) {
    std::string_view piece = script.substr(0, kPieceBytesMax);
    TRY(Send(connection, wire::Write(MessageKind::kScript, piece)));
  }
  return Ok();
}

Result<std::string> AwaitDone(const Fd& connection) {
  std::string message = TRY(Receive(connection, Deadline::Never()));
  MessageKind kind{};
  std::string text;
  if (!wire::Read(message, kind, text) || kind != MessageKind::kDone) return Malformed();
  return text;
}

namespace {

// Returns the text of kDone, the error that the sandbox reports, or else the one that occurred
// here.
Result<std::string> Conclude(const Fd& connection, const Status& here) {
  Result<std::string> there = AwaitDone(connection);
  if (!there.ok()) return there;
  if (!here.ok()) return here.error();
  return there;
}

std::string NameOf(const std::string& path) {
  std::string clean = path;
  while (clean.size() > 1 && clean.ends_with('/')) clean.pop_back();
  std::string name = clean.substr(clean.rfind('/') + 1);
  return name.empty() || name == "." || name == ".." ? "copied" : name;
}

// A path of the host, to be looked up with `root` as the root directory.
struct HostPath {
  Fd root;
  std::string path;  // Absolute.
  bool in_checkout = false;
};

bool Same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// Returns whether what there is of `path` lies beneath `top`, links followed; both are absolute.
bool StaysBeneath(const std::filesystem::path& top, const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::path real = std::filesystem::weakly_canonical(path, failed);
  if (failed) return false;
  std::filesystem::path from_top = real.lexically_relative(std::filesystem::canonical(top, failed));
  return !failed && !from_top.empty() && *from_top.begin() != "..";
}

// The links in a checkout are a stranger's, so those on the way to `path` may not lead out of it.
// Fails with kRefused if they do, or if
// the checkout cannot be found.
Result<HostPath> Locate(const std::string& path, const std::string& checkout) {
  std::error_code failed;
  std::filesystem::path absolute = std::filesystem::absolute(path, failed);
  if (failed) return Error{Code::kIo, path + ": " + failed.message()};
  std::string normal = absolute.lexically_normal().string();
  // Of a sandbox of a directory in it, too: the rest is as much the pull request's.
  const std::optional<CheckoutPath> whole = FindCheckoutPath(checkout);
  struct stat top {};
  struct stat st {};
  if (::stat((whole ? whole->top : checkout).c_str(), &top) != 0) {
    Error error = Errno(path + ": looking up the sandbox's checkout, " + checkout);
    error.code = Code::kRefused;
    return error;
  }
  for (size_t end = normal.find('/', 1); end != std::string::npos;
       end = normal.find('/', end + 1)) {
    std::string above = normal.substr(0, end);
    if (::stat(above.c_str(), &st) != 0) break;
    if (!Same(st, top)) continue;
    if (!StaysBeneath(above, normal)) {
      return Error{Code::kRefused, path + ": a symbolic link in the checkout leads out of it"};
    }
    return HostPath{TRY(sys::Open(above, O_PATH | O_DIRECTORY)), normal.substr(end), true};
  }
  return HostPath{TRY(sys::Open("/", O_PATH | O_DIRECTORY)), absolute.string(), false};
}

// Returns what a copy to `target` is written to where it does not become a file: standard output
// (`-`), or a pipe, a terminal or another character device that is there. Returns nothing for a
// place of files. Fails with kInvalid for what is neither.
Result<std::optional<Fd>> OpenStream(const HostPath& to, const std::string& target) {
  auto duplicate = [](int fd) -> Result<std::optional<Fd>> {
    Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copy.valid()) return Errno("standard output");
    return std::optional<Fd>(std::move(copy));
  };
  if (target == "-") return duplicate(STDOUT_FILENO);
  auto at_target = [&](int flags) {
    return to.in_checkout ? sys::OpenInRoot(to.root.get(), to.path, flags)
                          : sys::Open(target, flags);
  };
  Result<Fd> there = at_target(O_PATH);
  struct stat st {};
  if (!there.ok() || ::fstat(there.value().get(), &st) != 0) return std::optional<Fd>();
  // "/dev/stdout" may lead to a file, which this process must not replace under its own output.
  for (int own : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat written {};
    if (::fstat(own, &written) == 0 && Same(st, written)) return duplicate(own);
  }
  if (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)) return std::optional<Fd>();
  if (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode)) {
    return Error{Code::kInvalid, target + " is a socket or a block device: nothing is copied to it",
                 "agentic-ci sandbox get NAME FILE -"};
  }
  Fd stream = TRY(at_target(O_WRONLY | O_NOCTTY).Context(target));
  struct stat opened {};
  if (::fstat(stream.get(), &opened) != 0) return Errno("fstat " + target);
  if (!Same(st, opened)) return Error{Code::kIo, target + ": it was replaced meanwhile"};
  return std::optional<Fd>(std::move(stream));
}

}  // namespace

Result<std::string> Put(const Place& place, const std::string& name, const std::string& source,
                        const std::string& target) {
  Facts facts = TRY(place.Find(name));
  HostPath from = TRY(Locate(source, facts.workdir));
  Fd opened = TRY(OpenSource(from.root.get(), from.path, source));
  std::string real = TRY(sys::RealPath(source));
  Fd connection = TRY(place.Connect(name));
  auto [reads, writes] = TRY(sys::Pipe());
  TransferRequest request{target, NameOf(source == "." || source == ".." ? real : source), false};
  TRY(Send(connection, wire::Write(MessageKind::kPut, request), reads.get()));
  reads.Close();
  Result<Sent> sent = SendTransferred(opened, source, writes.get());
  // A tree that could not be sent whole is not taken for whole.
  if (!sent.ok() && sent.error().os_error != EPIPE) return std::move(sent).error();
  writes.Close();
  TRY(Conclude(connection, sent.ok() ? Ok() : Status(sent.error())));
  return LeftOutText(sent.value());
}

Result<std::string> Get(const Place& place, const std::string& name, const std::string& source,
                        const std::string& target, const ReceiveLimits& limits) {
  Facts facts = TRY(place.Find(name));
  HostPath to = TRY(Locate(target, facts.workdir));
  std::optional<Fd> output = TRY(OpenStream(to, target));
  Landing landing;
  if (!output) {
    std::filesystem::path inside = std::filesystem::path(facts.workdir) / source;
    std::string file = NameOf(inside.lexically_normal().string());
    landing = TRY(FindLanding(to.root.get(), to.path, file, target));
  }
  Fd connection = TRY(place.Connect(name));
  auto [reads, writes] = TRY(sys::Pipe());
  TransferRequest request{source, {}, false};
  TRY(Send(connection, wire::Write(MessageKind::kGet, request), writes.get()));
  writes.Close();
  Result<Received> received = output ? ReceiveContent(reads.get(), *output, target, limits)
                                     : ReceiveTransferred(reads.get(), landing, limits);
  reads.Close();
  if (received.ok()) return Conclude(connection, Ok());
  Error here = std::move(received).error();
  if (here.code == Code::kInvalid) return here;
  here.hint.clear();  // It is about the disk of the sandbox, and this is the host's.
  Result<std::string> there = Conclude(connection, here);
  // What was not written here cannot be sent there.
  if (!there.ok() && there.error().os_error == EPIPE) return here;
  return there;
}

Result<Applied> Apply(const Place& place, const std::string& name) {
  Fd connection = TRY(place.Connect(name));
  TRY(Send(connection, wire::Write(MessageKind::kApply)));
  std::string text = TRY(AwaitDone(connection));
  Applied applied;
  std::from_chars(text.data(), text.data() + text.size(), applied.files);
  for (size_t line = text.find('\n'); line < text.size();) {
    const size_t end = std::min(text.find('\n', line + 1), text.size());
    applied.conflicts.push_back(text.substr(line + 1, end - line - 1));
    line = end;
  }
  return applied;
}

Result<AskedSnapshot> AskSnapshot(const Place& place, const std::string& name) {
  Fd connection = TRY(place.Connect(name, {}));
  auto [reads, writes] = TRY(sys::Pipe());
  TRY(Send(connection, wire::Write(MessageKind::kSnapshot), writes.get()));
  (void)::fcntl(reads.get(), F_SETPIPE_SZ, 1 << 20);
  return AskedSnapshot{std::move(connection), std::move(reads)};
}

Result<TakenSnapshot> TakeSnapshot(const AskedSnapshot& asked,
                                   const std::function<Status(std::string_view)>& layer) {
  StreamReader stream(asked.layer.get());
  for (;;) {
    std::string_view bytes = TRY(stream.Next());
    if (bytes.empty()) break;
    TRY(layer(bytes));
  }
  TakenSnapshot taken;
  for (;;) {
    std::string message = TRY(Receive(asked.connection, Deadline::Never()));
    MessageKind kind{};
    std::string piece;
    if (wire::Read(message, kind, piece) && kind == MessageKind::kPiece) {
      taken.state += piece;
    } else if (wire::Read(message, kind, taken.facts) && kind == MessageKind::kSnapshotFacts) {
      return taken;
    } else {
      return Malformed();
    }
  }
}

Result<SandboxState> Restore(const Place& place, const std::string& name,
                             const RestoreRequest& request, std::string_view state,
                             const std::function<Status(int fd)>& stream) {
  Fd connection = TRY(place.Connect(name));
  auto [reads, writes] = TRY(sys::Pipe());
  TRY(SendScript(connection, state));
  TRY(Send(connection, wire::Write(MessageKind::kRestore, request), reads.get()));
  reads.Close();
  Status streamed = stream(writes.get());
  writes.Close();
  TRY(Conclude(connection, streamed));
  TRY(Send(connection, wire::Write(MessageKind::kCommit)));
  std::string message = TRY(Receive(connection, Deadline::Never()));
  MessageKind kind{};
  SandboxState now;
  if (!wire::Read(message, kind, now) || kind != MessageKind::kState) return Malformed();
  return now;
}

}  // namespace session
