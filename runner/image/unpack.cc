// SPDX-License-Identifier: Apache-2.0
#include "image/unpack.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <set>
#include <thread>

#include "base/sys.h"
#include "base/thread.h"
#include "codec/data/digest.h"
#include "image/source/reference.h"
#include "image/unpack/layer_stack.h"
#include "image/unpack/unpack_process.h"

namespace image {
namespace {

// Two are inflated while the third is fetched, or listed at its end.
constexpr unsigned kParallelMin = 3;
constexpr unsigned kParallelMax = 4;
// Processes wait for their turn from the start, since they are made while there is one thread; each
// costs a handful of descriptors.
constexpr size_t kWaveMax = 32;

// A pipe whose reader is gone is an error to look at, here and in all threads started from here.
class BrokenPipesAreErrors {
 public:
  BrokenPipesAreErrors() {
    sigset_t pipe = Set();
    ENSURE(::pthread_sigmask(SIG_BLOCK, &pipe, &before_) == 0);
  }
  BrokenPipesAreErrors(const BrokenPipesAreErrors&) = delete;
  BrokenPipesAreErrors& operator=(const BrokenPipesAreErrors&) = delete;
  ~BrokenPipesAreErrors() {
    sigset_t pipe = Set();
    timespec now{};
    while (::sigtimedwait(&pipe, nullptr, &now) > 0) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  static sigset_t Set() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGPIPE);
    return set;
  }
  sigset_t before_;
};

// Memory that children share.
class SharedBudget {
 public:
  static Result<SharedBudget> Map(int64_t bytes, int64_t entries) {
    void* memory = ::mmap(nullptr, sizeof(LayerBudget), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return Errno("mmap");
    return SharedBudget(new (memory) LayerBudget{bytes, entries});
  }
  LayerBudget& operator*() { return *budget_; }

 private:
  struct Unmap {
    void operator()(LayerBudget* budget) const { ::munmap(budget, sizeof(LayerBudget)); }
  };
  explicit SharedBudget(LayerBudget* budget) : budget_(budget) {}
  std::unique_ptr<LayerBudget, Unmap> budget_;
};

struct Layer {
  Descriptor blob;
  std::string diff_id;
  std::string chain;  // The chain of this layer and all below: 64 hexadecimal digits.
  std::optional<StoredLayer> stored;
};

// The needs of one thread that unpacks one layer.
struct Job {
  size_t layer;
  StagedLayer staged;
  UnpackProcess process;
};

class ImageUnpacker {
 public:
  ImageUnpacker(StoreDirectory& store, Source& source, const UnpackLimits& limits,
                Deadline deadline)
      : store_(store), source_(source), limits_(limits), deadline_(deadline) {}

  Result<UnpackedImage> Unpack(const Manifest& manifest, const ImageConfig& config);

 private:
  Status ListLayers(const Manifest& manifest, const ImageConfig& config);
  Result<std::optional<StoredLayer>> Find(const Layer& layer);
  Status RunWave(const std::vector<size_t>& wave, LayerBudget& budget);
  void Work(std::vector<Job>& jobs);
  Result<StoredLayer> UnpackLayer(Job& job);
  Result<UnpackedLayer> Stream(Job& job);
  Result<LayerStack> AwaitBelow(size_t layer);
  UnpackedImage Finish();

  StoreDirectory& store_;
  Source& source_;
  const UnpackLimits& limits_;
  Deadline deadline_;
  std::vector<Layer> layers_;  // The lowest first.

  std::atomic<size_t> next_job_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // Guards what follows, and Layer::stored while threads run.
  std::condition_variable changed_;
  std::optional<Error> error_;
};

// image-spec config.md, "Layer ChainID".
Status ImageUnpacker::ListLayers(const Manifest& manifest, const ImageConfig& config) {
  if (manifest.layers.size() != config.diff_ids.size()) {
    return Error{Code::kInvalid, "the image has " + std::to_string(manifest.layers.size()) +
                                     " layers but " + std::to_string(config.diff_ids.size()) +
                                     " diff_ids"};
  }
  if (manifest.layers.empty()) return Error{Code::kInvalid, "the image has no layers"};
  std::string chain;
  for (size_t i = 0; i < manifest.layers.size(); ++i) {
    const std::string& diff_id = config.diff_ids[i];
    if (!IsDigest(diff_id)) return Error{Code::kInvalid, "a diff_id is not a digest"};
    std::string hex = diff_id.substr(sizeof "sha256:" - 1);
    chain = chain.empty() ? hex : codec::Sha256Hex("sha256:" + chain + " " + diff_id);
    layers_.push_back({manifest.layers[i], diff_id, chain, std::nullopt});
  }
  return Ok();
}

Result<std::optional<StoredLayer>> ImageUnpacker::Find(const Layer& layer) {
  std::string hex = layer.diff_id.substr(sizeof "sha256:" - 1);
  std::optional<StoredLayer> found = TRY(store_.Find("diff-" + hex));
  if (found) return found;
  return store_.Find("chain-" + layer.chain);
}

Result<UnpackedImage> ImageUnpacker::Unpack(const Manifest& manifest, const ImageConfig& config) {
  TRY(ListLayers(manifest, config));
  int64_t bytes_left = limits_.bytes_max;
  int64_t entries_left = limits_.entries_max;
  std::vector<size_t> missing;
  for (size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].stored = TRY(Find(layers_[i]));
    if (!layers_[i].stored) {
      missing.push_back(i);
      continue;
    }
    bytes_left -= layers_[i].stored->record.bytes;
    entries_left -= layers_[i].stored->record.entries;
  }
  if (bytes_left < 0) return Error{Code::kInvalid, "the unpacked image exceeds the size limit"};
  if (entries_left < 0) return Error{Code::kInvalid, "the image exceeds the limit on entries"};
  if (missing.empty()) return Finish();

  TRY(store_.Sweep());
  SharedBudget budget = TRY(SharedBudget::Map(bytes_left, entries_left));
  BrokenPipesAreErrors guard;
  for (size_t at = 0; at < missing.size(); at += kWaveMax) {
    size_t end = std::min(missing.size(), at + kWaveMax);
    std::vector<size_t> wave(missing.begin() + static_cast<ptrdiff_t>(at),
                             missing.begin() + static_cast<ptrdiff_t>(end));
    TRY(RunWave(wave, *budget));
  }
  UnpackedImage image = Finish();
  image.fresh = true;
  return image;
}

Status ImageUnpacker::RunWave(const std::vector<size_t>& wave, LayerBudget& budget) {
  std::vector<Job> jobs;
  for (size_t layer : wave) {
    StagedLayer staged = TRY(store_.Stage());
    UnpackProcess process = TRY(UnpackProcess::Start(staged.root, layer == 0, limits_.ratio_max,
                                                     budget, store_.owner(), store_.group()));
    jobs.push_back({layer, std::move(staged), std::move(process)});
  }
  next_job_ = 0;
  unsigned parallel = std::clamp(std::thread::hardware_concurrency(), kParallelMin, kParallelMax);
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < parallel && i < jobs.size(); ++i) {
    Result<std::thread> thread = sys::StartThread([&] { Work(jobs); }, Deadline::After({}));
    if (!thread.ok()) break;  // Those that there are take the jobs.
    threads.push_back(std::move(thread).value());
  }
  Work(jobs);
  for (std::thread& thread : threads) thread.join();
  if (error_) return *error_;
  return Ok();
}

// Takes one job after the other, the lowest layer first, so that a job that waits for lower layers
// waits for work that is already in progress.
void ImageUnpacker::Work(std::vector<Job>& jobs) {
  for (size_t i = next_job_++; i < jobs.size() && !failed_; i = next_job_++) {
    Layer& layer = layers_[jobs[i].layer];
    Result<StoredLayer> stored = UnpackLayer(jobs[i]);
    std::lock_guard<std::mutex> lock(mutex_);
    if (stored.ok()) {
      layer.stored = std::move(stored).value();
    } else {
      failed_ = true;
      if (!error_) error_ = About("layer ", layer.blob.digest, std::move(stored).error());
    }
    changed_.notify_all();
  }
}

Result<StoredLayer> ImageUnpacker::UnpackLayer(Job& job) {
  Layer& layer = layers_[job.layer];
  ChainLock lock = TRY(store_.LockChain(layer.chain, deadline_, [this] { return failed_.load(); }));
  // Another run may have made it since we looked.
  std::optional<StoredLayer> there = TRY(Find(layer));
  if (there) return std::move(*there);
  UnpackedLayer unpacked = TRY(Stream(job));
  if (unpacked.diff_id != layer.diff_id) {
    return Error{Code::kInvalid,
                 "unpacks to " + unpacked.diff_id + ", but its image says " + layer.diff_id};
  }
  LayerRecord record{BootId(),       unpacked.listing_digest, unpacked.entries,
                     unpacked.bytes, unpacked.hides_below,    unpacked.warnings};
  std::string id = unpacked.reached_below ? "chain-" + layer.chain
                                          : "diff-" + layer.diff_id.substr(sizeof "sha256:" - 1);
  return store_.Publish(std::move(job.staged), id, record);
}

Result<UnpackedLayer> ImageUnpacker::Stream(Job& job) {
  std::optional<LayerStack> below;
  auto look = [&](const std::string& path) -> Result<LowerEntry> {
    if (!below) below = TRY(AwaitBelow(job.layer));
    return below->Look(path);
  };
  int64_t fed = 0;     // The bytes that the child has had.
  int64_t passed = 0;  // The bytes that this transfer has brought.
  std::optional<Error> own;
  auto sink = [&](std::string_view bytes) -> Status {
    if (failed_) return Error{Code::kTemporary, "another layer failed"};
    // A transfer that starts again brings the same bytes, or the diff_id will be wrong.
    int64_t known = std::min(fed - passed, static_cast<int64_t>(bytes.size()));
    passed += static_cast<int64_t>(bytes.size());
    bytes.remove_prefix(static_cast<size_t>(known));
    fed += static_cast<int64_t>(bytes.size());
    Status status = job.process.Feed(bytes, look, deadline_);
    if (!status.ok()) own = status.error();
    return status;
  };
  auto restart = [&]() -> Status {
    passed = 0;
    return Ok();
  };
  Status streamed = source_.StreamBlob(layers_[job.layer].blob, sink, restart, deadline_);
  if (own) return *own;
  if (!streamed.ok()) return std::move(streamed).error();
  return job.process.Finish(look, deadline_);
}

Result<LayerStack> ImageUnpacker::AwaitBelow(size_t layer) {
  std::unique_lock<std::mutex> lock(mutex_);
  auto ready = [&] {
    return failed_ || std::all_of(layers_.begin(), layers_.begin() + static_cast<ptrdiff_t>(layer),
                                  [](const Layer& lower) { return lower.stored.has_value(); });
  };
  if (deadline_.never()) {
    changed_.wait(lock, ready);
  } else if (!changed_.wait_until(lock, deadline_.at(), ready)) {
    return Error{Code::kTemporary, "unpacking the image timed out"};
  }
  if (failed_) return Error{Code::kTemporary, "another layer failed"};
  std::vector<Fd> roots;
  for (size_t i = layer; i-- > 0;) {
    Fd root = TRY(sys::OpenAt(layers_[i].stored->root.get(), ".", O_RDONLY | O_DIRECTORY));
    roots.push_back(std::move(root));
  }
  return LayerStack(std::move(roots));
}

UnpackedImage ImageUnpacker::Finish() {
  UnpackedImage image;
  image.owner_uid = store_.owner();
  image.owner_gid = store_.group();
  std::set<std::string> listed;
  for (size_t i = layers_.size(); i-- > 0;) {
    StoredLayer& layer = *layers_[i].stored;
    // All that a layer shows, it shows where it is applied last.
    if (!listed.insert(layer.path).second) continue;
    image.layers.push_back(layer.path);
    for (const std::string& warning : layer.record.warnings) {
      if (std::find(image.warnings.begin(), image.warnings.end(), warning) ==
          image.warnings.end()) {
        image.warnings.push_back(warning);
      }
    }
    image.locks.push_back(std::move(layer.lock));
    if (layer.record.hides_below) break;
  }
  return image;
}

}  // namespace

Result<UnpackedImage> UnpackImage(StoreDirectory& directory, Source& source,
                                  const Manifest& manifest, const ImageConfig& config,
                                  const UnpackLimits& limits, Deadline deadline) {
  return ImageUnpacker(directory, source, limits, deadline).Unpack(manifest, config);
}

}  // namespace image
