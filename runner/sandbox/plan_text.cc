// SPDX-License-Identifier: Apache-2.0
// A plan as people read it.
#include <sstream>

#include "sandbox/plan.h"

namespace sandbox {
namespace {

using Kind = MountStep::Kind;

std::string_view Name(Kind kind) {
  switch (kind) {
    case Kind::kLayer:
      return "layer";
    case Kind::kImage:
      return "image";
    case Kind::kDirectory:
      return "directory";
    case Kind::kFile:
      return "file";
    case Kind::kUpperFile:
    case Kind::kOverFile:
      return "file";
    case Kind::kSymlink:
      return "link";
    case Kind::kBind:
    case Kind::kShown:
      return "read-only";
    case Kind::kDevice:
      return "device";
    case Kind::kOverlay:
      return "overlay";
    case Kind::kWorkspace:
      return "workspace";
    case Kind::kScratch:
      return "scratch";
    case Kind::kProc:
      return "proc";
    case Kind::kDevPts:
      return "devpts";
    case Kind::kEmpty:
      return "empty";
    case Kind::kMask:
      return "mask";
    case Kind::kWritable:
      return "writable";
    case Kind::kReadOnly:
      return "seal";
  }
  return "?";
}

}  // namespace

std::string RenderPlan(const SandboxPlan& plan) {
  std::ostringstream out;
  out << "user       " << plan.inner_uid << ":" << plan.inner_gid << " (host " << plan.host_uid
      << ":" << plan.host_gid << (plan.idmap_checkout ? ", checkout id-mapped" : "") << ")\n";
  for (const MountStep& step : plan.mounts) {
    out << "mount      " << Name(step.kind) << " " << step.target;
    if (!step.source.empty() && step.source != step.target) out << " from " << step.source;
    if (!step.content.empty()) out << " (" << step.content.size() << " bytes)";
    out << "\n";
  }
  for (const LandlockRule& rule : plan.landlock) {
    out << "landlock   " << (rule.writable ? "read-write " : "read-only  ") << rule.path << "\n";
  }
  for (const std::string& note : plan.notes) out << "note       " << note << "\n";
  for (const WorkspaceFile& file : plan.workspace_files) out << "replaced   " << file.path << "\n";
  out << "network    " << kProxyAddress << ":" << kProxyPort << " is the only way out\n";
  out << "limits     memory=" << plan.limits.memory_bytes << " pids=" << plan.limits.pids
      << " disk=" << plan.limits.disk_bytes << " cpus=";
  if (plan.limits.cpus > 0) {
    out << plan.limits.cpus << "\n";
  } else {
    out << "all\n";
  }
  for (const std::string& entry : plan.env) out << "env        " << entry << "\n";
  out << "exec      ";
  for (const std::string& word : plan.argv) out << " " << word;
  out << "\n";
  return out.str();
}

}  // namespace sandbox
