// SPDX-License-Identifier: Apache-2.0
#include "run/native/plan_text.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string_view>
#include <vector>

#include "codec/text/neutral.h"
#include "codec/text/quantity.h"
#include "policy/load/parse.h"
#include "policy/model/access.h"
#include "policy/model/protocol.h"
#include "sandbox/mask.h"

namespace run {
namespace {

using Kind = sandbox::MountStep::Kind;

constexpr size_t kBinariesShown = 4;
constexpr size_t kColumns = 100;
constexpr size_t kPlanLineBytesMax = 8192;

// Describes the requests that an endpoint lets pass.
std::string Opened(const policy::Endpoint& endpoint) {
  std::string text;
  if (endpoint.access != policy::Access::kNone) {
    text = policy::AccessName(endpoint.access);
  } else if (policy::JudgesRequests(endpoint.protocol)) {
    text =
        std::to_string(endpoint.rules.size()) + (endpoint.rules.size() == 1 ? " rule" : " rules");
  } else {
    text = "any traffic";
  }
  if (!endpoint.deny_rules.empty()) {
    text += ", denies " + std::to_string(endpoint.deny_rules.size());
  }
  if (!endpoint.path.empty()) text += ", " + endpoint.path;
  if (endpoint.protocol != policy::Protocol::kL4 && !endpoint.protocol_implied) {
    text += ", " + std::string(policy::ProtocolName(endpoint.protocol));
  }
  if (endpoint.tls == policy::TlsMode::kSkip) text += ", not inspected";
  if (endpoint.enforcement == policy::Enforcement::kAudit) text += ", recorded only";
  return text;
}

std::string NameBinaries(const std::vector<std::string>& binaries) {
  if (binaries.empty()) return "no programs";
  std::string text;
  for (size_t i = 0; i < binaries.size() && i < kBinariesShown; ++i) {
    text += (i == 0 ? "" : ", ") + binaries[i];
  }
  if (binaries.size() > kBinariesShown) {
    text += " and " + std::to_string(binaries.size() - kBinariesShown) + " more";
  }
  return text;
}

// The word for what a step does with a path of the host; empty for what is the sandbox's own.
std::string_view Word(const sandbox::MountStep& step) {
  switch (step.kind) {
    case Kind::kBind:
    case Kind::kShown:
    case Kind::kReadOnly:
      return "read-only";
    case Kind::kOverlay:
    case Kind::kWorkspace:
    case Kind::kWritable:
      return "read-write";
    case Kind::kScratch:
      return "scratch";
    case Kind::kEmpty:
      return "empty";
    case Kind::kMask:
      return "hidden";
    case Kind::kOverFile:
    case Kind::kUpperFile:
      return "replaced";
    default:
      return "";
  }
}

std::string RenderFiles(const sandbox::SandboxPlan& plan) {
  std::map<std::string, std::string> paths;
  size_t layers = 0;
  for (const sandbox::MountStep& step : plan.steps()) {
    if (step.kind == Kind::kLayer) ++layers;
    // Later steps stand over earlier ones. The seal of the root is about what is ours.
    std::string_view word = Word(step);
    if (word.empty() || step.target == "/") continue;
    paths[step.target] = word;
  }
  for (const sandbox::LandlockRule& rule : plan.landlock) {
    // In an image nothing is mounted for the policy's paths, nor inside the checkout.
    bool told = layers == 0 && !sandbox::Beneath(rule.path, plan.checkout);
    if (!told) paths.emplace(rule.path, rule.writable ? "read-write" : "read-only");
  }
  for (const sandbox::WorkspaceFile& file : plan.workspace_files) {
    paths[plan.checkout + "/" + file.path] = "replaced";
  }
  std::string text;
  if (layers > 0) {
    text += PlanLine("root",
                     "the image: " + std::to_string(layers) + (layers == 1 ? " layer" : " layers"));
  }
  for (const char* word : {"read-write", "read-only", "empty", "replaced", "hidden", "scratch"}) {
    for (const auto& [path, found] : paths) {
      if (found != word) continue;
      text += PlanLine(word, path == plan.checkout && found == "read-write"
                                 ? path + " (the checkout: changes become the patch)"
                                 : path);
    }
  }
  for (const std::string& note : plan.notes) text += PlanLine("note", note);
  return text;
}

// The names alone: most values are ours, and the rest may be long.
std::string RenderVariables(const std::vector<std::string>& env) {
  std::string text;
  std::string line;
  for (const std::string& entry : env) {
    std::string name = entry.substr(0, entry.find('='));
    if (line.size() + name.size() > kColumns - 13) {
      text += PlanLine(text.empty() ? "variables" : "", line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + name;
  }
  return text + PlanLine(text.empty() ? "variables" : "", line);
}

}  // namespace

std::string PlanLine(std::string_view what, std::string_view text) {
  std::string line(what);
  line.resize(std::max<size_t>(line.size(), 12), ' ');
  return line + codec::NeutralLine(text, kPlanLineBytesMax) + "\n";
}

std::string PlanLines(std::string_view what, std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    lines += PlanLine(what, line);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return lines;
}

std::string RenderEndpoints(const policy::Policy& policy) {
  std::string text;
  for (const policy::NetworkPolicy& network : policy.network) {
    for (const policy::Endpoint& endpoint : network.endpoints) {
      std::string ports;
      for (uint16_t port : endpoint.ports)
        ports += (ports.empty() ? ":" : ",") + std::to_string(port);
      text +=
          PlanLine("endpoint", (endpoint.host.empty() ? "any host" : endpoint.host) + ports + "  " +
                                   Opened(endpoint) + "  for " + NameBinaries(network.binaries));
    }
  }
  return text.empty() ? PlanLine("endpoint", "none: every connection is refused") : text;
}

std::string RenderSandbox(const sandbox::SandboxPlan& plan) {
  const sandbox::SandboxLimits& limits = plan.limits;
  char cpus[32] = "all";
  if (limits.cpus > 0) std::snprintf(cpus, sizeof cpus, "%g", limits.cpus);
  std::string text = RenderFiles(plan);
  text += PlanLine("limits", "memory " + codec::RenderSize(limits.memory_bytes) + ", disk " +
                                 codec::RenderSize(limits.disk_bytes) + ", processes " +
                                 std::to_string(limits.pids) + ", processors " + cpus);
  const auto* own = std::get_if<sandbox::NamespacePlan>(&plan.tier);
  text += PlanLine(
      "user", std::to_string(plan.inner_uid) + ":" + std::to_string(plan.inner_gid) + " (host " +
                  std::to_string(plan.host_uid) + ":" + std::to_string(plan.host_gid) +
                  (own != nullptr && own->idmap_checkout ? ", checkout id-mapped" : "") + ")");
  if (own != nullptr && !own->copy_reason.empty()) {
    text += PlanLine("checkout", "copied: " + own->copy_reason);
  }
  if (own != nullptr && own->layers_on_disk) {
    text += PlanLine("layers", "on a disk: memory cannot hold them on this kernel");
  }
  std::string command;
  for (const std::string& word : plan.argv) command += (command.empty() ? "" : " ") + word;
  return text + PlanLine("command", command) + RenderVariables(plan.env);
}

}  // namespace run
