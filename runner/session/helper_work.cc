// SPDX-License-Identifier: Apache-2.0
#include "session/helper_work.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "base/wire.h"
#include "codec/data/digest.h"
#include "image/unpack/inflate.h"
#include "image/unpack/tar_reader.h"
#include "sandbox/limit/usage.h"
#include "session/snapshot_places.h"
#include "session/transfer/landing.h"
#include "session/transfer/stream.h"
#include "session/transfer/tar_writer.h"
#include "session/transfer/tree_receiver.h"
#include "session/transfer/tree_sender.h"

namespace session {
namespace {

constexpr size_t kInflatedBytes = size_t{256} << 10;

ReceiveLimits LimitsOf(int64_t bytes_max) {
  return {bytes_max, static_cast<int64_t>(sandbox::InodesOf(bytes_max))};
}

Error NoTerminal(const Error& why) {
  return {Code::kUnsupported, "no terminal can be opened in this sandbox: " + why.what,
          "agentic-ci sandbox exec"};
}

// Opens the kernel's own device. Another at that name was put there by the sandbox, or by what runs
// in it: only the kernel's has this number, and nothing in a sandbox can make one.
Result<Fd> OpenMaster() {
  constexpr int kFlags = O_RDWR | O_NOCTTY | O_NONBLOCK;
  Result<Fd> master = sys::Open("/dev/ptmx", kFlags);
  if (!master.ok()) return NoTerminal(master.error());
  struct stat about {};
  constexpr unsigned kMajor = 5;
  constexpr unsigned kMinor = 2;
  if (::fstat(master.value().get(), &about) != 0) return Errno("fstat");
  if (!S_ISCHR(about.st_mode) || about.st_rdev != ::makedev(kMajor, kMinor)) {
    return Error{Code::kUnsupported, "/dev/ptmx of this sandbox does not open terminals"};
  }
  return master;
}

// The name of the other end, which can be opened from now on.
Result<std::string> OtherEndOf(const Fd& master) {
  int locked = 0;
  unsigned number = 0;
  if (::ioctl(master.get(), TIOCSPTLCK, &locked) != 0) return Errno("unlocking a terminal");
  if (::ioctl(master.get(), TIOCGPTN, &number) != 0) return Errno("numbering a terminal");
  return "/dev/pts/" + std::to_string(number);
}

// Checks that the agent may open a terminal by its name. Tried on one that nothing else uses: a
// terminal whose other end was closed has hung up.
Status TryOtherEnd() {
  Fd master = TRY(OpenMaster());
  const std::string path = TRY(OtherEndOf(master));
  Result<Fd> other = sys::Open(path, O_RDWR | O_NOCTTY);
  if (!other.ok()) return NoTerminal(other.error());
  return Ok();
}

Result<Fd> OpenRoot() { return sys::Open("/", O_PATH | O_DIRECTORY); }

// The input of the layer in `stream`, unpacked; every byte that was read counts into `hash`.
class InflatedInput {
 public:
  explicit InflatedInput(int stream) : packed_(stream), buffer_(kInflatedBytes, '\0') {}

  Result<std::string_view> Next() {
    if (!inflater_) inflater_ = TRY(image::Inflater::Open([this] { return packed_.Next(); }));
    size_t n = TRY(inflater_->Read(buffer_));
    std::string_view bytes = std::string_view(buffer_).substr(0, n);
    hash_.Update(bytes);
    return bytes;
  }
  std::string TakeDigest() { return "sha256:" + hash_.Hex(); }

 private:
  StreamReader packed_;
  std::string buffer_;
  std::unique_ptr<image::Inflater> inflater_;
  codec::Sha256 hash_;
};

}  // namespace

Helper::Work TakeFiles(const sandbox::SandboxPlan& plan, TransferRequest request) {
  return [&plan, request](const std::vector<Fd>& given) -> Result<std::string> {
    Fd root = TRY(OpenRoot());
    if (request.archive) {
      Landing into = TRY(FindLanding(root.get(), request.path + "/", "archive", request.path));
      StreamReader input(given[0].get());
      TRY(ReceiveTree([&] { return input.Next(); }, into.parent.get(),
                      LimitsOf(plan.limits.disk_bytes)));
      return std::string();
    }
    Landing landing = TRY(FindLanding(root.get(), request.path, request.name, request.path));
    TRY(ReceiveTransferred(given[0].get(), landing, LimitsOf(plan.limits.disk_bytes)));
    return std::string();
  };
}

Helper::Work SendFiles(TransferRequest request) {
  return [request](const std::vector<Fd>& given) -> Result<std::string> {
    Fd root = TRY(OpenRoot());
    Fd source = TRY(OpenSource(root.get(), request.path, request.path));
    Sent sent = TRY(request.archive ? SendTree(source, request.path, given[0].get())
                                    : SendTransferred(source, request.path, given[0].get()));
    return LeftOutText(sent);
  };
}

Helper::Work SendLayer(const sandbox::SandboxPlan& plan) {
  return [&plan](const std::vector<Fd>& given) -> Result<std::string> {
    TarWriter tar = WriterTo(given[0].get(), static_cast<int>(plan.inner_uid));
    TreeSender sender(tar, TreeSender::Kind::kLayer);
    sender.Limit(plan.limits.disk_bytes);  // What is more could not be restored.
    std::vector<SnapshotPlace> places = FindSnapshotPlaces(plan);
    // The run itself puts its own files there again; and places are in one another.
    for (const sandbox::WorkspaceFile& file : plan.workspace_files) {
      sender.Skip(plan.workdir.substr(1) + "/" + file.path);
    }
    for (const SnapshotPlace& place : places) sender.Skip(place.target.substr(1));
    for (const SnapshotPlace& place : places) {
      Result<Fd> layer = sys::OpenBeneath(given[1].get(), place.layer, O_RDONLY | O_DIRECTORY);
      if (!layer.ok() && sys::IsAbsent(layer.error())) continue;  // Nothing was written there.
      if (!layer.ok()) return std::move(layer).error();
      TRY(sender.Send(layer.value(), place.target.substr(1)));
    }
    TRY(tar.Finish());
    const Sent& sent = sender.sent();
    return wire::Write(sent.files, sent.bytes, sent.left_out, sent.first_left_out);
  };
}

Helper::Work TakeLayer(const sandbox::SandboxPlan& plan, RestoreRequest request,
                       int64_t bytes_max) {
  return [&plan, request, bytes_max](const std::vector<Fd>& given) -> Result<std::string> {
    Fd root = TRY(OpenRoot());
    std::vector<SnapshotPlace> places = FindSnapshotPlaces(plan);
    std::vector<Fd> opened;
    for (const SnapshotPlace& place : places) {
      opened.push_back(TRY(
          sys::OpenInRoot(root.get(), place.target, O_PATH | O_DIRECTORY).Context(place.target)));
    }
    auto route = [&](const std::string& path) -> std::optional<Spot> {
      std::optional<PlacedPath> placed = FindPlaceOf(places, request.facts.checkout, "/" + path);
      if (!placed) return std::nullopt;
      return Spot{opened[placed->place].get(), placed->rest};
    };
    InflatedInput input(given[0].get());
    image::TarReader tar([&] { return input.Next(); });
    TreeReceiver receiver(TreeReceiver::Kind::kLayer, LimitsOf(bytes_max), route);
    Status received = receiver.Receive(tar);
    if (!received.ok()) {
      Error error = std::move(received).error();
      if (error.code == Code::kUnsupported && bytes_max < plan.limits.disk_bytes) {
        error.what += " in memory in addition to what the sandbox holds";
        error.hint = "agentic-ci sandbox reset, which empties it";
      }
      return error;
    }
    std::string digest = input.TakeDigest();
    if (digest != request.diff_id) {
      return Error{Code::kInvalid,
                   "the layer has the digest " + digest + ", not " + request.diff_id};
    }
    return std::string();
  };
}

Helper::Work OpenTerminalInside(TerminalRequest request) {
  return [request](const std::vector<Fd>& given) -> Result<std::string> {
    TRY(TryOtherEnd());
    Fd master = TRY(OpenMaster());
    const std::string path = TRY(OtherEndOf(master));
    winsize size{request.rows, request.columns, 0, 0};
    if (::ioctl(master.get(), TIOCSWINSZ, &size) != 0) return Errno("sizing a terminal");
    TRY(sys::SendMessage(given[0].get(), "master", master.get()));
    return path;
  };
}

}  // namespace session
