// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/transfer.h"

#include <errno.h>
#include <fcntl.h>

#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "base/tree.h"
#include "codec/text/neutral.h"
#include "codec/text/shell_word.h"
#include "session/transfer/stream.h"

namespace openshell {
namespace {

// How much is sent to the sandbox at once, at least: its gateway takes messages of 1 MiB, and what
// is read at once is a quarter of that.
constexpr size_t kUploadBytes = size_t{512} << 10;
constexpr std::chrono::seconds kUploadTime{60};
constexpr std::chrono::seconds kLandTime{600};
constexpr size_t kWordsBytesMax = 300;

// The exit statuses of the scripts below: something failed in the sandbox, or is in the way there.
// All others are of the shell or of OpenShell.
constexpr int kFailed = 3;
constexpr int kInTheWay = 4;

// $t: a directory of its own.
constexpr char kBegin[] = "umask 077; { mkdir \"$t\" && cat >\"$t/archive\"; } || exit 3";
constexpr char kGoOn[] = "cat >>\"$t/archive\" || exit 3";
constexpr char kDrop[] = "rm -rf \"$t\"";
constexpr char kEnd[] =
    "set -e; trap 'r=$?; chmod -R u+rwx \"$t\"; rm -rf \"$t\"; [ $r = 0 ] || [ $r = 4 ] || exit 3' "
    "EXIT\n";
// $p: the target, absolute. All of what is in the archive, which another program made.
constexpr char kLandArchive[] = "mkdir -p \"$p\"; tar -xf \"$t/archive\" -C \"$p\"";
// $n: what it is called where it comes from. It is unpacked in $t first: what is broken off or
// malformed does not arrive at all.
constexpr char kLand[] = R"(refuse() { printf '%s: %s\n' "$p" "$1" >&2; exit 4; }
mkdir "$t/x"; tar -xf "$t/archive" -C "$t/x"; rm "$t/archive"; s=$t/x/transferred
into=; case $p in */|*/.|*/..) into=y;; *) [ ! -d "$p" ] || into=y;; esac
if [ -n "$into" ]; then mkdir -p "$p"; p=${p%/}/$n; else mkdir -p "${p%/*}/"; fi
if [ ! -d "$s" ] || [ -L "$s" ]; then
  if [ -L "$p" ]; then rm "$p"; fi
  [ ! -d "$p" ] || refuse 'a directory is in the way of a file'
  [ ! -e "$p" ] || [ -f "$p" ] || refuse 'a device, pipe or socket is not replaced by a file'
  mv -f "$s" "$p"
else
  [ ! -L "$p" ] || refuse 'a link is in the way of a directory'
  [ ! -e "$p" ] || [ -d "$p" ] || refuse 'a file is in the way of a directory'
  cd "$s"; tar -cf "$t/archive" .; mkdir -p "$p"; cd "$p"; tar -xf "$t/archive"
fi
)";
// $p: as above. A link is followed.
constexpr char kLook[] =
    "if [ -d \"$p\" ]; then echo directory; elif [ ! -e \"$p\" ]; then echo absent; "
    "elif [ ! -f \"$p\" ]; then echo other; elif [ ! -r \"$p\" ]; then echo unreadable; "
    "else echo file; fi";

std::string Assign(char variable, std::string_view value) {
  return std::string(1, variable) + "=" + codec::ShellWord(value) + "; ";
}

std::string AbsolutePath(const std::string& path) {
  return path.starts_with('/') ? path : std::string(kWorkspace) + "/" + path;
}

// Runs one of the scripts; returns what it prints. Errors call what it is about `shown`.
Result<std::string> Run(const Sandbox& sandbox, const std::string& script, Deadline deadline,
                        const std::string& shown, std::string_view input = {}) {
  Answer answer = TRY(sandbox.Ask(script, deadline, input).Context(shown));
  if (answer.status == 0) return std::move(answer.output);
  if (answer.status != kFailed && answer.status != kInTheWay) {
    return ErrorOf(shown, answer.error);
  }
  return Error{answer.status == kInTheWay ? Code::kInvalid : Code::kIo,
               shown + ": " + codec::NeutralLine(answer.error, kWordsBytesMax)};
}

// Writes all that comes on `stream` to the archive in the directory that `assign` sets. By pieces:
// `openshell sandbox upload` would need a copy on this machine's disk.
Status Upload(const Sandbox& sandbox, const std::string& assign, const std::string& shown,
              int stream, int64_t bytes_max) {
  session::StreamReader input(stream);
  std::string piece;
  int64_t bytes = 0;
  for (bool more = true, first = true; more;) {
    const std::string_view read = TRY(input.Next());
    piece += read;
    more = !read.empty();
    bytes += static_cast<int64_t>(read.size());
    if (bytes > bytes_max) {
      return Error{Code::kUnsupported, shown + ": more than " + std::to_string(bytes_max) +
                                           " bytes, the sandbox's --disk"};
    }
    if (more && piece.size() < kUploadBytes) continue;
    TRY(Run(sandbox, assign + (first ? kBegin : kGoOn), Deadline::After(kUploadTime), shown,
            piece));
    piece.clear();
    first = false;
  }
  return Ok();
}

// Fetches what is at `path` into `scratch`, and sends it from there.
Result<std::string> FetchAndSend(const Sandbox& sandbox, const session::TransferRequest& request,
                                 const std::string& path, bool is_directory, int stream,
                                 const std::string& scratch, const FetchLimits& limits) {
  TRY(sys::MakeDirectories(scratch, 0700));
  const Fetched fetched = TRY((is_directory ? sandbox.Get(path + "/.", scratch, false, limits)
                                            : sandbox.GetFile(path, scratch, limits))
                                  .Context(request.path));
  Fd source = TRY(sys::Open(scratch, O_RDONLY | O_DIRECTORY));
  if (!is_directory) {
    const std::vector<std::string> names = TRY(sys::DirectoryNames(source.get()));
    if (names.size() != 1) return Error{Code::kIo, request.path + ": it did not come"};
    source = TRY(sys::OpenBeneath(source.get(), names.front(), O_RDONLY));
  }
  const session::Sent sent =
      TRY(request.archive ? session::SendTree(source, request.path, stream)
                          : session::SendTransferred(source, request.path, stream));
  if (fetched.whole) return session::LeftOutText(sent);
  return "not all could be read: " + codec::NeutralLine(fetched.said, kWordsBytesMax);
}

}  // namespace

Status TakeFiles(const Sandbox& sandbox, const session::TransferRequest& request, int stream,
                 int64_t bytes_max) {
  const std::string assign = Assign('t', "/sandbox/.agentic-ci-" + sys::RandomHex());
  Status taken = Upload(sandbox, assign, request.path, stream, bytes_max);
  if (taken.ok()) {
    const std::string land = assign + Assign('p', AbsolutePath(request.path)) +
                             Assign('n', request.name) + kEnd +
                             (request.archive ? kLandArchive : kLand);
    TRY(Run(sandbox, land, Deadline::After(kLandTime), request.path));
    return Ok();
  }
  (void)sandbox.Ask(assign + kDrop, Deadline::After(kUploadTime));
  return taken;
}

Result<std::string> SendFiles(const Sandbox& sandbox, const session::TransferRequest& request,
                              int stream, const std::string& scratch, const FetchLimits& limits) {
  const std::string path = AbsolutePath(request.path);
  const std::string kind =
      TRY(Run(sandbox, Assign('p', path) + kLook, limits.deadline, request.path));
  if (kind == "absent\n") return Errno(request.path, ENOENT);
  if (kind == "unreadable\n") return Errno(request.path, EACCES);
  const bool is_directory = kind == "directory\n";
  if (!is_directory && kind != "file\n") {
    return Error{Code::kInvalid, request.path + " is neither a file nor a directory"};
  }
  Result<std::string> sent =
      FetchAndSend(sandbox, request, path, is_directory, stream, scratch, limits);
  Fd root = TRY(sys::Open("/", O_RDONLY | O_DIRECTORY));
  (void)sys::RemoveTree(root.get(), scratch.substr(1));
  return sent;
}

}  // namespace openshell
