// SPDX-License-Identifier: Apache-2.0
// Snapshots of sandboxes on disk: images of one layer in an OCI layout (image/source/layout.h),
// whose configuration also holds the state of the shell. Other tools can copy, push and sign them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "image/source/source.h"
#include "session/client.h"

namespace session {

// Returns the layout of this user's own snapshots.
std::string DefaultSnapshots();

struct WrittenSnapshot {
  std::string digest;  // The digest of its manifest.
  int64_t packed_bytes = 0;
  SnapshotFacts facts;
};

// Takes a snapshot of the sandbox into the layout in `directory`, which is made when it is not
// there; other things in it stay. `tag` (may be empty) names it from now on, in place of an older
// one. Complete or absent, whatever is killed.
Result<WrittenSnapshot> WriteSnapshot(const Place& place, const std::string& sandbox,
                                      const std::string& directory, const std::string& tag);

// A snapshot that was found; nothing of its layer was read.
struct FoundSnapshot {
  std::string digest;
  RestoreRequest request;
  std::string state;
  std::string signer;  // Empty if no key was given.
  image::Descriptor layer;
  std::unique_ptr<image::Source> source;
};

// Finds a snapshot by `reference`: a tag or digest of DefaultSnapshots(), or
// oci:DIRECTORY[:tag][@digest]. With `key_file`, a PEM public key, the manifest must be signed by
// it (kRefused). Fails with kNotFound if there is no such snapshot, with kInvalid if it is another
// image, or none at all.
Result<FoundSnapshot> FindSnapshot(const std::string& reference, const std::string& key_file);

// Restores it in the sandbox, its layer verified on the way.
Result<SandboxState> RestoreSnapshot(const Place& place, const std::string& sandbox,
                                     FoundSnapshot& snapshot);

// Puts the sandbox `to` where the snapshot `from` is taken; waits while `to` is being started. What
// is in between lies in the directory of DefaultSnapshots(), without a name.
Result<SandboxState> CopyState(const Place& place, const AskedSnapshot& from,
                               const std::string& to);

}  // namespace session
