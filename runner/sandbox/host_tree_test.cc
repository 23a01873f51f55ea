// SPDX-License-Identifier: Apache-2.0
#include "sandbox/host_tree.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

namespace sandbox {
namespace {

using Kind = MountStep::Kind;
using Paths = std::vector<std::string>;

// /opt with a mount two levels down, beside everything that can stand in a directory.
HostView MountedHost() {
  static const std::map<std::string, PathKind> kPaths = {
      {"/opt", PathKind::kDirectory},         {"/opt/tools", PathKind::kDirectory},
      {"/opt/file", PathKind::kFile},         {"/opt/link", PathKind::kSymlink},
      {"/opt/socket", PathKind::kOther},      {"/opt/data", PathKind::kDirectory},
      {"/opt/data/more", PathKind::kFile},    {"/opt/data/volume", PathKind::kDirectory},
      {"/opt/engine", PathKind::kDirectory},  {"/opt/engine/one", PathKind::kDirectory},
      {"/var", PathKind::kDirectory},         {"/var/tmp", PathKind::kDirectory},
      {"/opt/engine/a", PathKind::kDirectory}};
  HostView host;
  host.kind = [](const std::string& path) {
    auto found = kPaths.find(path);
    return found == kPaths.end() ? PathKind::kMissing : found->second;
  };
  host.link = [](const std::string&) { return std::string("file"); };
  host.list = [](const std::string& top) {
    Paths names;
    for (const auto& [path, kind] : kPaths) {
      size_t slash = path.rfind('/');
      if (path.substr(0, slash) == top) names.push_back(path.substr(slash + 1));
    }
    return names;
  };
  host.mounts = {"/", "/opt/data/volume", "/opt/engine/one"};
  return host;
}

// "kind target" of every step.
Paths Steps(const SandboxPlan& plan) {
  Paths steps;
  for (const MountStep& step : plan.namespaces().mounts) {
    const char* kind = step.kind == Kind::kShown       ? "shown "
                       : step.kind == Kind::kBind      ? "bind "
                       : step.kind == Kind::kSymlink   ? "link "
                       : step.kind == Kind::kScratch   ? "scratch "
                       : step.kind == Kind::kFile      ? "file "
                       : step.kind == Kind::kDirectory ? "directory "
                                                       : "? ";
    steps.push_back(kind + step.target);
  }
  return steps;
}

TEST_CASE("A directory is shown as one, above directories that are made once") {
  HostView host = MountedHost();
  SandboxPlan plan;
  const Paths none;
  HostTree tree(host, none, &plan);
  tree.Show("/opt/tools", {});
  tree.MakeParents("/opt/other/x");
  CHECK(Steps(plan) == Paths{"directory /opt", "directory /opt/tools", "shown /opt/tools",
                             "directory /opt/other"});
  CHECK(tree.IsShown("/opt/tools/x"));
  CHECK_FALSE(tree.IsShown("/opt"));
}

TEST_CASE("A directory with mounts in it is shown entry by entry, without sockets") {
  HostView host = MountedHost();
  SandboxPlan plan;
  Paths secrets = {"/opt/engine"};  // Taken apart, it would be a mount for each of its own.
  HostTree tree(host, secrets, &plan);
  tree.Keep("/opt/tools");
  tree.Show("/opt", {});
  CHECK(Steps(plan) == Paths{"directory /opt", "directory /opt/data", "file /opt/data/more",
                             "bind /opt/data/more", "directory /opt/data/volume",
                             "shown /opt/data/volume", "directory /opt/engine", "file /opt/file",
                             "bind /opt/file", "link /opt/link"});
}

TEST_CASE("The sandbox's own /var/tmp stays when /var is shown") {
  HostView host = MountedHost();
  SandboxPlan plan;
  const Paths none;
  HostTree tree(host, none, &plan);
  tree.Show("/var", {});
  CHECK(Steps(plan) == Paths{"directory /var", "shown /var", "scratch /var/tmp"});
}

}  // namespace
}  // namespace sandbox
