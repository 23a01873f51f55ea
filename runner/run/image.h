// SPDX-License-Identifier: Apache-2.0
// The image in which a run's agent lives: verified, unpacked, and its configuration read.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "image/pull.h"
#include "report/record.h"
#include "run/request.h"
#include "run/trusted/config.h"
#include "sandbox/image_root.h"
#include "sandbox/plan.h"

namespace run {

struct RunImage {
  image::PulledImage pulled;
  sandbox::ImageRoot root;
  // The user and group that the image wants its programs to run as; 0 is root, or nothing was said.
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<std::pair<std::string, std::string>> env;  // Without PATH.
  std::string search_path;                               // PATH, absolute places only.
  std::vector<std::string> command;                      // Its entrypoint and arguments.
  std::vector<std::string> warnings;
  // The directories that its package manager writes to, where `ecosystems` has one that installs
  // into the system: the agent may change them, and is the sandbox's root.
  std::vector<std::string> system_directories;
};

// Returns where images come from and who signs them, as the configuration and the command line say.
// `request` takes precedence over `config`, which must outlive the result. No program in
// `checkout`, the whole work tree, is started.
Result<image::PullRequest> PreparePull(const Request& request, const std::string& checkout,
                                       Config* config);

// Does what PullImage does, with lines about its progress on standard error, unless `quiet`.
Result<image::PulledImage> Pull(image::PullRequest pull, bool quiet);

// Verifies, fetches and unpacks `request.image`; logs what it does. Fails with kRefused for an
// image that is not trusted, of which nothing is unpacked then, with kTemporary for a registry that
// does not answer, and with kInvalid for one that names a user it does not have.
Result<RunImage> PrepareImage(const Request& request, const std::string& checkout, Config* config);

// An image that was verified for a backend that fetches images itself.
struct CheckedImage {
  // The reference by its digest alone, so that what is fetched is what was verified.
  std::string reference;
  report::ImageRecord record;
};
Result<CheckedImage> CheckImage(const Request& request, const std::string& checkout,
                                Config* config);

// Returns what the sandbox needs of the image, which must outlive the request.
sandbox::ImageRequest PlanImage(const RunImage& image);

report::ImageRecord Record(const RunImage& image);

// The policy that the image brings along: the least specific one. nullopt if it has none.
struct ImagePolicy {
  std::string path;
  std::string text;
};
Result<std::optional<ImagePolicy>> ReadImagePolicy(const RunImage& image);

}  // namespace run
