// SPDX-License-Identifier: Apache-2.0
#include "session/snapshot/layer_file.h"

#include <sys/stat.h>
#include <zstd.h>

#include <utility>

#include "base/sys.h"

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

LayerFile::LayerFile(PartFile file) : file_(std::move(file)), packer_(std::make_unique<Packer>()) {}

LayerFile::LayerFile(LayerFile&&) noexcept = default;

LayerFile::~LayerFile() = default;

Result<LayerFile> LayerFile::Open(int directory) {
  LayerFile layer(TRY(PartFile::Create(directory, 0600)));
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
    TRY(sys::WriteAll(file_.fd().get(), made).Context("writing the snapshot"));
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
  if (::fchmod(file_.fd().get(), 0644) != 0) return Errno("fchmod");
  return file_.Publish(digest_.substr(sizeof "sha256:" - 1));
}

}  // namespace session
