// SPDX-License-Identifier: Apache-2.0
#include "run/policy_source.h"

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "codec/data/digest.h"
#include "codec/data/yaml.h"
#include "run/trusted/trusted_file.h"

namespace run {
namespace {

// The least specific source: the author of the image knows what its programs need, not what this
// repository allows.
Status TakeImagePolicy(const RunImage& image, PolicySource* source) {
  std::optional<ImagePolicy> policy =
      TRY(ReadImagePolicy(image).Context("reading the image's policy"));
  if (!policy) return Ok();
  source->text = std::move(policy->text);
  source->file = policy->path;
  source->record = {.source = "image", .path = policy->path, .ref = {}, .commit = {}, .sha256 = {}};
  return Ok();
}

// Returns nothing where the policy was not replaced.
Result<std::optional<std::string>> ReadReplacedPolicy(const Request& request) {
  if (request.replaced_policy.empty()) return std::optional<std::string>();
  Result<std::string> text = sys::ReadFile(request.replaced_policy, policy::kPolicyBytesMax);
  if (!text.ok() && sys::IsAbsent(text.error())) return std::optional<std::string>();
  return std::optional(TRY(std::move(text).Context("reading the policy")));
}

}  // namespace

// A policy names /usr/bin/python3; the kernel says /usr/bin/python3.11. Both are meant.
void AddResolvedBinaries(const RunImage* image, policy::Policy* policy) {
  for (policy::NetworkPolicy& network : policy->network) {
    std::vector<std::string> resolved;
    for (const std::string& path : network.binaries) {
      if (!path.starts_with('/') || path.find('*') != std::string::npos) continue;
      Result<std::string> real =
          image != nullptr ? image->root.RealPath(path) : sys::RealPath(path);
      if (real.ok() && real.value() != path) resolved.push_back(std::move(real).value());
    }
    for (std::string& path : resolved) {
      if (std::find(network.binaries.begin(), network.binaries.end(), path) ==
          network.binaries.end()) {
        network.binaries.push_back(std::move(path));
      }
    }
  }
}

Result<PolicySource> FindPolicy(const Request& request, const change::Repository* repository,
                                const std::string& checkout, const TrustedRef& ref) {
  PolicySource source;
  if (!request.policy_file.empty()) {
    source.file = request.policy_file;
    source.record = {
        .source = "file", .path = request.policy_file, .ref = {}, .commit = {}, .sha256 = {}};
    source.text = TRY(ReadReplacedPolicy(request));
    if (source.text) return source;
    source.text = TRY(
        ReadNamedFile(request.policy_file, policy::kPolicyBytesMax).Context("reading the policy"));
    return source;
  }
  if (repository == nullptr && !ref.assumed && ref.ref != kWorktree) {
    return Error{Code::kSetup,
                 checkout + " is not in a git checkout, so its policy cannot be read at " + ref.ref,
                 "--workdir DIR, or --policy FILE"};
  }
  const std::string path = request.policy_path.empty() ? kPolicyPath : request.policy_path;
  source.file = path;
  source.record.source = "repository";
  source.record.path = path;
  source.record.ref = ref.ref;
  TrustedFile file = TRY(ReadTrustedFile(repository, checkout, ref, path, policy::kPolicyBytesMax));
  if (file.worktree_differs) {
    logging::Warn("worktree policy ignored: commit it, or use --policy-ref worktree",
                  {{"file", path}});
  }
  if (!file.text && path != kPolicyPath) {
    return Error{Code::kNotFound, "the task's policy " + path + " is not at " + ref.ref};
  }
  if (!file.text) TRY(CheckSpelling(repository, checkout, ref, path, {"policy", "openshell"}));
  source.record.commit = std::move(file.commit);
  source.text = std::move(file.text);
  return source;
}

Result<LoadedPolicy> LoadPolicy(PolicySource source, const policy::ParseContext& context,
                                const RunImage* image) {
  if (!source.text && image != nullptr) TRY(TakeImagePolicy(*image, &source));
  LoadedPolicy loaded;
  loaded.record = std::move(source.record);
  if (source.text) {
    policy::ParseContext named = context;
    named.file = source.file;
    loaded.parsed = TRY(policy::ParsePolicy(*source.text, named));
    loaded.file = source.file;
    loaded.record.sha256 = codec::Sha256Hex(*source.text);
  } else {
    loaded.parsed.policy = policy::DefaultPolicy(context);
    loaded.file = "default policy";
    loaded.record = {.source = "default",
                     .path = {},
                     .ref = loaded.record.ref,
                     .commit = loaded.record.commit,
                     .sha256 = {}};
  }
  // If no paths are listed, all of an image may be read: it contains nothing of the host's.
  bool unlisted = !source.text || loaded.parsed.short_form;
  if (image != nullptr && unlisted) loaded.parsed.policy.filesystem.read_only.push_back("/");
  return loaded;
}

Result<LoadedPolicy> LoadPolicyText(std::string text, const std::string& shown,
                                    const policy::ParseContext& context, const RunImage* image) {
  PolicySource source{std::move(text),
                      shown,
                      {.source = "file", .path = shown, .ref = {}, .commit = {}, .sha256 = {}}};
  return LoadPolicy(std::move(source), context, image);
}

Error PolicyDoesNotChange() {
  return {Code::kUsage,
          "the policy of this sandbox does not change: it was created without a policy file, or it "
          "only reads",
          "agentic-ci sandbox create --policy FILE"};
}

void AddNetwork(const std::vector<policy::NetworkPolicy>& added, policy::Policy* policy) {
  policy->network.insert(policy->network.end(), added.begin(), added.end());
  std::sort(
      policy->network.begin(), policy->network.end(),
      [](const policy::NetworkPolicy& a, const policy::NetworkPolicy& b) { return a.key < b.key; });
}

void WarnOfAnyName(const LoadedPolicy& policy) {
  for (const policy::NetworkPolicy& network : policy.parsed.policy.network) {
    for (const policy::Endpoint& endpoint : network.endpoints) {
      if (!endpoint.host.empty()) continue;
      logging::Warn(
          "an endpoint without a host: each name that the agent asks for is looked up, so it can "
          "tell any name server something",
          {{"at", codec::LocateIn(policy.file, endpoint.at)}});
    }
  }
}

}  // namespace run
