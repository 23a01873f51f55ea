// SPDX-License-Identifier: Apache-2.0
// From a reference to layers that may be run: first verified, then fetched and unpacked.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "image/progress.h"
#include "image/store.h"
#include "image/verify.h"

namespace image {

struct PullRequest {
  VerifyRequest verify;
  SourceOptions source;
  std::string store;  // Its directory; DefaultStore() unless it is given.
  UnpackLimits limits;
  ProgressLines* progress = nullptr;  // Told how far the layers are; borrowed, or null.
  // Returns whether the pull is to be aborted: called by several threads, with every piece that
  // arrives.
  std::function<bool()> cancelled;
};

struct PulledImage {
  VerifiedImage image;
  UnpackedImage unpacked;
};

// Pulls an image. Fails with kRefused or another code as ToError() says; then nothing was fetched
// but manifests and signatures. The verdict of an earlier, equal question (image, policy and
// trusted root the same to the byte) is kept in the store, which is its owner's alone; so a digest
// that was accepted before is accepted again without a network. A tag is always asked for.
Result<PulledImage> PullImage(const PullRequest& request, Deadline deadline);
// Does the same without the layers: another program fetches those, by `digest`.
Result<VerifiedImage> CheckImage(const PullRequest& request, Deadline deadline);

// Removes every kept verdict of the store `directory`: the next run asks again.
void ForgetVerdicts(const std::string& directory);

}  // namespace image
