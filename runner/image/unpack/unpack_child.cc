// SPDX-License-Identifier: Apache-2.0
#include "image/unpack/unpack_child.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/sys.h"
#include "base/thread.h"
#include "codec/data/digest.h"
#include "image/unpack/inflate.h"
#include "image/unpack/layer_listing.h"
#include "image/unpack/unpack_confinement.h"
#include "image/unpack/unpack_message.h"

namespace image {
namespace {

constexpr int64_t kRatioFrom = int64_t{64} << 20;
constexpr size_t kPackedBytes = 256 << 10;
constexpr size_t kPieceBytes = 256 << 10;
constexpr size_t kPieces = 8;

// Inflates on a thread of its own, a few pieces ahead of who takes them.
class InflatedStream {
 public:
  InflatedStream(int packed, int ratio_max, LayerBudget& budget)
      : packed_(packed), ratio_max_(ratio_max), budget_(budget), in_(kPackedBytes, '\0') {
    for (std::string& piece : pieces_) piece.resize(kPieceBytes);
  }
  // Once, before Next().
  Status Start() {
    thread_ = TRY(sys::StartThread([this] { Run(); }, Deadline::After({})));
    return Ok();
  }
  // The process ends soon: what the thread still does is of no interest, but it uses this.
  ~InflatedStream() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      abandoned_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  // The next piece, until the next call; empty at the end.
  Result<std::string_view> Next() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (taken_ > 0 && held_) {
      held_ = false;
      ++freed_;
      changed_.notify_all();
    }
    changed_.wait(lock, [this] { return taken_ < made_ || ended_; });
    if (taken_ == made_) {
      if (error_) return *error_;
      return std::string_view();
    }
    size_t slot = taken_++ % kPieces;
    held_ = true;
    return std::string_view(pieces_[slot]).substr(0, sizes_[slot]);
  }

 private:
  void Run() {
    Status status = Inflate();
    std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    if (!status.ok()) error_ = std::move(status).error();
    changed_.notify_all();
  }

  Result<std::string_view> ReadPacked() {
    for (;;) {
      ssize_t n = ::read(packed_, in_.data(), in_.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Errno("reading the layer");
      return std::string_view(in_).substr(0, static_cast<size_t>(n));
    }
  }

  Status Inflate() {
    std::unique_ptr<Inflater> inflater = TRY(Inflater::Open([this] { return ReadPacked(); }));
    int64_t total = 0;
    for (size_t slot = 0;; slot = (slot + 1) % kPieces) {
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return made_ - freed_ < kPieces || abandoned_; });
        if (abandoned_) return Ok();
      }
      // A piece is full but for the last: who takes it is woken seldom.
      size_t size = 0;
      bool more = true;
      while (more && size < kPieceBytes) {
        size_t n = TRY(inflater->Read(std::span(pieces_[slot]).subspan(size)));
        size += n;
        more = n > 0;
      }
      total += static_cast<int64_t>(size);
      TRY(budget_.TakeBytes(static_cast<int64_t>(size)));
      if (total > kRatioFrom && total / ratio_max_ > inflater->packed_bytes()) {
        return Error{Code::kInvalid, "a layer unpacks to more than " + std::to_string(ratio_max_) +
                                         " times its size"};
      }
      std::lock_guard<std::mutex> lock(mutex_);
      sizes_[slot] = size;
      if (size > 0) ++made_;
      changed_.notify_all();
      if (!more) return Ok();
    }
  }

  int packed_;
  int ratio_max_;
  LayerBudget& budget_;
  std::string in_;
  std::array<std::string, kPieces> pieces_;
  std::array<size_t, kPieces> sizes_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  // Counted from the start, under mutex_. Pieces from freed_ to made_ are full; the consumer holds
  // the one before taken_ while held_.
  size_t made_ = 0;
  size_t taken_ = 0;
  size_t freed_ = 0;
  bool held_ = false;
  bool ended_ = false;
  bool abandoned_ = false;
  std::optional<Error> error_;
  std::thread thread_;
};

// Asks the process outside, which can see the layers below.
class AskedLayers : public LowerLayers {
 public:
  explicit AskedLayers(int reports) : reports_(reports) {}

  Result<LowerEntry> Look(const std::string& path) override {
    TRY(sys::SendMessage(reports_, RenderReport(LookBelow{path})));
    sys::Message answer =
        TRY(sys::ReceiveMessage(reports_, kUnpackMessageBytesMax, Deadline::Never()));
    LowerEntry entry = TRY(ParseAnswer(answer.bytes));
    entry.file = std::move(answer.fd);
    return entry;
  }

 private:
  int reports_;
};

Result<UnpackedLayer> Unpack(UnpackResources& resources) {
  // The variables that CI put there are for the process that fetches and runs images, not for the
  // one that reads their bytes.
  sys::WipeEnvironment();
  sys::WipeArguments();
  sys::Message mapped =
      TRY(sys::ReceiveMessage(resources.reports.get(), kUnpackMessageBytesMax, Deadline::Never()));
  if (mapped.bytes.empty()) return Error{Code::kIo, "the parent process has exited"};
  sys::CloseAllExcept({resources.packed.get(), resources.reports.get(), resources.directory.get()});
  codec::Sha256 diff_id;
  std::vector<std::string> waivers = TRY(ConfineUnpacking(resources.directory.get()));
  resources.directory.Close();
  Fd root = TRY(sys::Open("/", O_RDONLY | O_DIRECTORY));

  InflatedStream stream(resources.packed.get(), resources.ratio_max, *resources.budget);
  TRY(stream.Start());
  TarReader tar([&]() -> Result<std::string_view> {
    std::string_view piece = TRY(stream.Next());
    diff_id.Update(piece);
    return piece;
  });
  AskedLayers lower(resources.reports.get());
  LayerWriter writer(std::move(root), resources.lowest ? nullptr : &lower, *resources.budget);
  TRY(writer.Write(tar));

  UnpackedLayer layer;
  layer.diff_id = "sha256:" + diff_id.Hex();
  LayerListing listing = TRY(ListLayer(writer.root(), &writer.content_hashes()));
  layer.listing_digest = listing.digest;
  layer.entries = listing.entries;
  layer.bytes = listing.bytes;
  layer.reached_below = writer.reached_below();
  char opaque = 0;
  layer.hides_below = ::fgetxattr(writer.root(), kOpaqueXattr, &opaque, 1) == 1;
  layer.warnings = writer.Warnings();
  layer.warnings.insert(layer.warnings.end(), waivers.begin(), waivers.end());
  return layer;
}

}  // namespace

void RunUnpacking(UnpackResources resources) {
  Result<UnpackedLayer> layer = Unpack(resources);
  UnpackReport report =
      layer.ok() ? UnpackReport(std::move(layer).value()) : UnpackReport(std::move(layer).error());
  (void)sys::SendMessage(resources.reports.get(), RenderReport(report));
  ::_exit(0);
}

}  // namespace image
