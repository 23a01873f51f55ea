// SPDX-License-Identifier: Apache-2.0
#include "image/open_source.h"

#include "image/archive_source.h"
#include "image/registry/registry_source.h"
#include "image/source/layout.h"

namespace image {

Result<std::unique_ptr<Source>> OpenSource(const Reference& reference,
                                           const SourceOptions& options) {
  switch (reference.kind) {
    case Reference::Kind::kRegistry:
      return OpenRegistry(reference, options);
    case Reference::Kind::kLayout:
      return OpenLayout(reference.path, options);
    case Reference::Kind::kArchive:
      return OpenArchive(reference, options);
    case Reference::Kind::kDirectory:
      return Error{Code::kUnsupported,
                   "a directory has no manifest and no signature: only sandboxes of this machine "
                   "can be created from one",
                   "agentic-ci run --image " + reference.ToString()};
  }
  ENSURE(false);
}

}  // namespace image
