// SPDX-License-Identifier: Apache-2.0
// The layers of an image seen as the one tree that the sandbox will have for its root, before the
// sandbox exists: who its user is, where its programs are. Read by the runner, so nothing in it
// can lead outside of it, block, or be larger than said (CVE-2024-9676).
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "sandbox/host.h"

namespace sandbox {

class ImageRoot {
 public:
  // Opens the root of `layers`, as overlayfs lists them, the uppermost first. Fails with
  // kUnsupported if this host gives no namespaces.
  static Result<ImageRoot> Open(const std::vector<std::string>& layers);

  // Fails with kInvalid unless the sandbox's own directories and files can take their places: /tmp
  // may be missing or a directory, and lead to one; /proc, /dev and /etc may not be links.
  Status CheckPlaces() const;
  // Returns the kind of what stands at an absolute path, links followed inside the image.
  PathKind Kind(const std::string& path) const;
  // True for a regular file that any user may execute.
  bool IsProgram(const std::string& path) const;
  // Returns the whole of a regular file. Fails with kNotFound if there is none, with kInvalid if it
  // is something else, or larger than `bytes_max`.
  Result<std::string> Read(const std::string& path, size_t bytes_max) const;
  // Returns the path without links.
  Result<std::string> RealPath(const std::string& path) const;

 private:
  explicit ImageRoot(Fd root) : root_(std::move(root)) {}
  Fd root_;  // A mount that stands nowhere.
};

}  // namespace sandbox
