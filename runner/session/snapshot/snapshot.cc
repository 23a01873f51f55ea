// SPDX-License-Identifier: Apache-2.0
#include "session/snapshot/snapshot.h"

#include <fcntl.h>

#include <chrono>
#include <utility>
#include <variant>

#include "base/named_path.h"
#include "base/sys.h"
#include "codec/data/digest.h"
#include "image/open_source.h"
#include "image/source/layout.h"
#include "image/store.h"
#include "image/trust.h"
#include "image/verify.h"
#include "session/snapshot/layer_file.h"
#include "session/snapshot/layout_files.h"
#include "session/snapshot/part_file.h"
#include "session/snapshot/snapshot_document.h"
#include "session/transfer/stream.h"

namespace session {
namespace {

constexpr std::chrono::minutes kReadTime{10};

Result<DocumentOf> WriteBlob(int blobs, const std::string& text) {
  DocumentOf document{image::DigestOf(text), static_cast<int64_t>(text.size())};
  TRY(WriteWhole(blobs, document.digest.substr(sizeof "sha256:" - 1), text));
  return document;
}

// Under the layout's lock.
Status AddManifest(int layout, const DocumentOf& manifest, const std::string& tag) {
  RemoveLeftParts(layout);
  std::string index = TRY(ReadIndex(layout));
  return WriteIndex(layout, TRY(AddToIndex(index, manifest, tag)));
}

Result<image::Reference> ReferenceOf(const std::string& text) {
  if (text.starts_with("oci:")) return image::ParseReference(text);
  image::Reference reference;
  reference.kind = image::Reference::Kind::kLayout;
  reference.path = DefaultSnapshots();
  if (image::IsDigest(text)) {
    reference.digest = text;
  } else if (image::IsTag(text)) {
    reference.tag = text;
  } else {
    return Error{Code::kUsage, "'" + text + "' cannot name a snapshot",
                 "agentic-ci sandbox restore NAME oci:DIRECTORY"};
  }
  return reference;
}

struct Documents {
  std::string digest;
  std::string signer;
  std::string config;
  image::Manifest manifest;
};

Result<Documents> ReadSigned(image::Source& source, const image::VerifyRequest& request,
                             const std::string& key_file, Deadline deadline) {
  image::TrustOptions options;
  options.key_file = key_file;
  image::TrustPolicy trust = TRY(image::OverrideTrust({}, options));
  image::VerifyRequest wanted = request;
  wanted.trust = &trust;
  auto open = [](const image::Reference& other) { return image::OpenSource(other, {}); };
  image::ImageVerdict verdict = TRY(image::VerifyImage(source, open, wanted, deadline));
  if (const auto* refusal = std::get_if<image::ImageRefusal>(&verdict)) {
    return image::ToError(*refusal);
  }
  auto& verified = std::get<image::VerifiedImage>(verdict);
  return Documents{verified.manifest_digest, verified.signer, std::move(verified.config_bytes),
                   std::move(verified.manifest)};
}

Result<Documents> ReadDocuments(image::Source& source, const image::VerifyRequest& request,
                                Deadline deadline) {
  image::ResolvedManifest resolved = TRY(image::ResolveManifest(source, request, deadline));
  TRY(image::CheckRunnable(resolved.manifest));
  std::string config =
      TRY(source.FetchBlob(resolved.manifest.config, image::kConfigBytesMax, deadline));
  return Documents{resolved.leaf.digest, "", std::move(config), std::move(resolved.manifest)};
}

// Opens the layout, which is made where it is missing. This user's own may lie anywhere.
Result<Fd> OpenLayout(const std::string& directory) {
  if (directory != DefaultSnapshots()) return MakeNamedDirectory(directory, 0700);
  TRY(sys::MakeDirectories(directory, 0700));
  return sys::Open(directory, O_RDONLY | O_DIRECTORY);
}

// An open file that has no name any more, at its beginning: to be written, and to be read.
struct Spool {
  Fd writes;
  Fd reads;
};

Result<Spool> MakeSpool() {
  Fd layout = TRY(OpenLayout(DefaultSnapshots()).Context(DefaultSnapshots()));
  RemoveLeftParts(layout.get());
  PartFile part = TRY(PartFile::Create(layout.get(), 0600));
  const std::string path = "/proc/self/fd/" + std::to_string(part.fd().get());
  Fd writes = TRY(sys::Open(path, O_WRONLY));
  return Spool{std::move(writes), TRY(sys::Open(path, O_RDONLY))};
}

}  // namespace

std::string DefaultSnapshots() { return image::DefaultStore() + "/snapshots"; }

Result<WrittenSnapshot> WriteSnapshot(const Place& place, const std::string& sandbox,
                                      const std::string& directory, const std::string& tag) {
  if (!tag.empty() && !image::IsTag(tag)) {
    return Error{Code::kUsage, "'" + tag + "' cannot be the tag of a snapshot", "--tag ready"};
  }
  Fd layout = TRY(OpenLayout(directory).Context(directory));
  Fd blobs = TRY(OpenBlobs(layout.get()).Context(directory));
  RemoveLeftParts(blobs.get());
  LayerFile layer = TRY(LayerFile::Open(blobs.get()));
  AskedSnapshot asked = TRY(AskSnapshot(place, sandbox));
  TakenSnapshot taken =
      TRY(TakeSnapshot(asked, [&layer](std::string_view bytes) { return layer.Take(bytes); }));
  TRY(layer.Finish());
  // From here on, what removes unused blobs waits.
  TRY(LockLayout(layout.get()).Context(directory));
  TRY(layer.Publish());
  std::string text = TRY(RenderSnapshotConfig(taken, layer.diff_id()));
  DocumentOf config = TRY(WriteBlob(blobs.get(), text));
  DocumentOf manifest =
      TRY(WriteBlob(blobs.get(), RenderSnapshotManifest(config, {layer.digest(), layer.bytes()})));
  TRY(AddManifest(layout.get(), manifest, tag).Context(directory));
  return WrittenSnapshot{manifest.digest, layer.bytes(), std::move(taken.facts)};
}

Result<FoundSnapshot> FindSnapshot(const std::string& reference, const std::string& key_file) {
  Deadline deadline = Deadline::After(kReadTime);
  image::VerifyRequest request;
  request.reference = TRY(ReferenceOf(reference));
  if (request.reference.kind != image::Reference::Kind::kLayout) {
    return Error{Code::kUsage, "a snapshot is read from an OCI layout", "oci:DIRECTORY"};
  }
  FoundSnapshot found;
  Result<std::unique_ptr<image::Source>> source = image::OpenLayout(request.reference.path, {});
  if (!source.ok() && source.error().code == Code::kNotFound && !reference.starts_with("oci:")) {
    return Error{Code::kNotFound, "there is no snapshot '" + reference + "'",
                 "agentic-ci sandbox snapshot NAME --tag " + reference};
  }
  found.source = TRY(std::move(source));
  Documents documents =
      TRY((key_file.empty() ? ReadDocuments(*found.source, request, deadline)
                            : ReadSigned(*found.source, request, key_file, deadline))
              .Context("snapshot " + reference));
  SnapshotConfig config = TRY(ParseSnapshotConfig(documents.config).Context(reference));
  if (documents.manifest.layers.size() != 1) {
    return Error{Code::kInvalid,
                 reference + " is not a snapshot: it does not have exactly one layer"};
  }
  found.digest = documents.digest;
  found.signer = documents.signer;
  found.layer = documents.manifest.layers.front();
  found.request = std::move(config.request);
  found.state = std::move(config.state);
  return found;
}

Result<SandboxState> RestoreSnapshot(const Place& place, const std::string& sandbox,
                                     FoundSnapshot& snapshot) {
  auto stream = [&snapshot](int fd) -> Status {
    auto sink = [fd](std::string_view bytes) { return sys::WriteAll(fd, bytes); };
    auto restart = []() -> Status { return Error{Code::kIo, "the layer cannot be read again"}; };
    return snapshot.source->StreamBlob(snapshot.layer, sink, restart, Deadline::After(kReadTime));
  };
  return Restore(place, sandbox, snapshot.request, snapshot.state, stream);
}

Result<SandboxState> CopyState(const Place& place, const AskedSnapshot& from,
                               const std::string& to) {
  Spool spool = TRY(MakeSpool());
  codec::Sha256 hash;
  TakenSnapshot taken = TRY(TakeSnapshot(from, [&](std::string_view bytes) {
    hash.Update(bytes);
    return sys::WriteAll(spool.writes.get(), bytes).Context("keeping the state");
  }));
  TRY(AskState(place, to, Deadline::Never()));
  const RestoreRequest request{std::move(taken.facts), "sha256:" + hash.Hex()};
  return Restore(place, to, request, taken.state, [&spool](int fd) -> Status {
    StreamReader layer(spool.reads.get());
    for (;;) {
      std::string_view bytes = TRY(layer.Next());
      if (bytes.empty()) return Ok();
      TRY(sys::WriteAll(fd, bytes));
    }
  });
}

}  // namespace session
