// SPDX-License-Identifier: Apache-2.0
#include "session/snapshot/layer_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <zstd.h>

#include <utility>

#include "base/sys.h"
#include "session/shell.h"

namespace session {
namespace {

// Half the time of zstd's default, for little more space: what is restored soon is not kept long.
constexpr int kLevel = 1;

}  // namespace

struct LayerFile::Packer {
  Packer() : context(ZSTD_createCCtx()), out(ZSTD_CStreamOutSize(), '\0') {}
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;
  ~Packer() { ZSTD_freeCCtx(context); }

  ZSTD_CCtx* context;
  std::string out;
};

LayerFile::LayerFile(int directory, Fd file, std::string name)
    : directory_(directory),
      file_(std::move(file)),
      name_(std::move(name)),
      packer_(std::make_unique<Packer>()) {}

LayerFile::LayerFile(LayerFile&& other) noexcept
    : directory_(other.directory_),
      file_(std::move(other.file_)),
      name_(std::exchange(other.name_, {})),
      packer_(std::move(other.packer_)),
      packed_(std::move(other.packed_)),
      unpacked_(std::move(other.unpacked_)),
      digest_(std::move(other.digest_)),
      diff_id_(std::move(other.diff_id_)),
      bytes_(other.bytes_) {}

LayerFile::~LayerFile() {
  if (!name_.empty()) (void)::unlinkat(directory_, name_.c_str(), 0);
}

Result<LayerFile> LayerFile::Open(int directory) {
  std::string name = ".snapshot-" + MakeNonce();
  Fd file = TRY(sys::OpenAt(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  LayerFile layer(directory, std::move(file), std::move(name));
  ENSURE(layer.packer_->context != nullptr);
  ZSTD_CCtx_setParameter(layer.packer_->context, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(layer.packer_->context, ZSTD_c_checksumFlag, 1);
  return layer;
}

Status LayerFile::Pack(std::string_view bytes, bool last) {
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  for (;;) {
    ZSTD_outBuffer out{packer_->out.data(), packer_->out.size(), 0};
    size_t left =
        ZSTD_compressStream2(packer_->context, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(left) != 0) {
      return Error{Code::kIo, std::string("packing the layer: ") + ZSTD_getErrorName(left)};
    }
    std::string_view made = std::string_view(packer_->out).substr(0, out.pos);
    packed_.Update(made);
    bytes_ += static_cast<int64_t>(made.size());
    TRY(sys::WriteAll(file_.get(), made).Context("writing the snapshot"));
    if (last ? left == 0 : in.pos == in.size) return Ok();
  }
}

Status LayerFile::Take(std::string_view bytes) {
  unpacked_.Update(bytes);
  return Pack(bytes, false);
}

Status LayerFile::Finish() {
  TRY(Pack({}, true));
  digest_ = "sha256:" + packed_.Hex();
  diff_id_ = "sha256:" + unpacked_.Hex();
  return Ok();
}

Status LayerFile::Publish() {
  std::string name = digest_.substr(sizeof "sha256:" - 1);
  if (::fchmod(file_.get(), 0644) != 0) return Errno("fchmod");
  if (::renameat(directory_, name_.c_str(), directory_, name.c_str()) != 0) {
    return Errno("naming the snapshot's layer");
  }
  name_.clear();
  return Ok();
}

}  // namespace session
