// SPDX-License-Identifier: Apache-2.0
// Between the files of a working tree and the blobs that git has of them: a patch is made of blobs,
// so that it fits a repository. Internal to change/.
#pragma once

#include <set>
#include <string>

#include "base/result.h"
#include "change/attributes.h"
#include "change/capture.h"
#include "change/memory_repository.h"
#include "change/tree_edit.h"

namespace change {

// The blobs of the checkout's files, as its index has them or would have them.
class CheckoutBlobs {
 public:
  // `repository` is borrowed.
  explicit CheckoutBlobs(const Repository& repository)
      : repository_(repository), attributes_(repository, AttributesOnDisk(repository)) {}

  // Returns the blob of the file at `path` with `bytes`. Fails with kUnsupported or kInvalid if it
  // cannot be known.
  Result<std::string> Of(const std::string& path, const std::string& bytes);
  // Returns the conversion of a file at `path` whose attributes are `attributes`: what they do not
  // say, and the checkout's own file shows, counts too. Fails as Of() does.
  Result<Conversion> ConversionOf(Attributes& attributes, const std::string& path) const;
  // Returns whether the text in the index has CRLF already (IsCrlfText()).
  bool CrlfInIndex(const Conversion& conversion, const std::string& path,
                   const std::string& bytes) const;

 private:
  const Repository& repository_;
  Attributes attributes_;
  std::set<std::string> crlf_;    // Files with CRLF, whose blobs have LF, for a reason outside.
  std::set<std::string> no_lfs_;  // Files that git-lfs should have, and the index has as they are.
};

// Puts blobs in place of the files of both states, of which `before` lies in the checkout. What
// cannot be converted is left out, and lost.
Status ConvertToBlobs(const Repository& repository, MemoryRepository& memory, TreeEntries& before,
                      TreeEntries& after, ChangeSet& changes);

// Puts the files of a working tree in place of the blobs that `edit` writes. `pointers` gives the
// bytes of a file by the pointer that git-lfs has of them.
Status ConvertToFiles(const Repository& repository, const CheckoutBlobs& blobs,
                      const std::map<std::string, std::string>& pointers, TreeEdit& edit);

}  // namespace change
