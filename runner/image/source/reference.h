// SPDX-License-Identifier: Apache-2.0
// The names that people give to images. Grammar: distribution/reference, with its bounds.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace image {

// True for "sha256:" and 64 lower-case hexadecimal digits, and nothing else: digests become file
// names and parts of URLs.
bool IsDigest(std::string_view text);

// Returns the digest of a document, so written.
std::string DigestOf(std::string_view bytes);

// True for [a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}.
bool IsTag(std::string_view text);

struct Reference {
  enum class Kind {
    kRegistry,   // [host[:port]/]repository[:tag][@digest]
    kLayout,     // oci:DIRECTORY[:tag][@digest]
    kArchive,    // docker-archive:FILE[:name:tag]
    kDirectory,  // dir:DIRECTORY: a root file system as it lies there, which nothing signs.
  };
  Kind kind = Kind::kRegistry;
  std::string host;        // With its port; "docker.io" when none was named.
  std::string repository;  // "library/debian".
  std::string path;        // kLayout, kArchive, kDirectory.
  std::string tag;         // "latest" for a registry when neither tag nor digest was named.
  std::string digest;      // Takes precedence over the tag.

  // Renders the reference as a person would write it, whole:
  // "docker.io/library/debian:12@sha256:...".
  std::string ToString() const;
  // Returns "host/repository", which trust policies match; for the other kinds "oci:path",
  // "docker-archive:path" and "dir:path".
  std::string Name() const;
};

// Fails with kInvalid, what is wrong and a hint.
Result<Reference> ParseReference(std::string_view text);

}  // namespace image
