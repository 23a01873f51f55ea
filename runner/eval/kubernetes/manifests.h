// SPDX-License-Identifier: Apache-2.0
// The manifests that run an evaluation in a cluster of Kubernetes: its files, a volume for the
// results, a Job with an index for each shard, and one that merges. policies/kubernetes.yaml is
// their text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace eval {

// Where the pods have the files of an evaluation.
inline constexpr std::string_view kClusterFiles = "/evaluation/";
inline constexpr size_t kClusterNameBytesMax = 50;  // A pod's name has a suffix, and 63.

struct ClusterFile {
  std::string path;  // Beneath kClusterFiles, in a directory there.
  std::string text;  // Any bytes.
};

// A token of the pods' service account, which Kubernetes writes and renews.
struct ClusterToken {
  std::string directory;  // Absolute; it has nothing else.
  std::string file;       // A name in it.
  std::string audience;
};

struct ClusterRun {
  std::string name;   // The name of every object; see IsClusterName().
  std::string image;  // With its digest.
  uint32_t shards = 1;
  size_t cells = 0;
  // The resources of each shard's pod.
  double cpus = 1;
  int64_t memory_bytes = 0;
  int64_t disk_bytes = 0;
  std::vector<std::string> options;        // For `eval run`: "--agent=pi".
  std::vector<std::string> merge_options;  // For `eval merge`.
  std::vector<std::string> variables;      // Those that may hold a credential.
  std::vector<ClusterToken> tokens;
  std::vector<ClusterFile> files;  // The suite, then what it and the options name.
};

// Returns whether every object can be called so: a label of DNS (RFC 1123) that leaves room for
// what Kubernetes appends.
bool IsClusterName(std::string_view name);

// Renders them as YAML. Fails with kInvalid if the files are more than a ConfigMap holds, or have a
// path that cannot be in one. Pure.
Result<std::string> RenderManifests(const ClusterRun& run);

}  // namespace eval
