// SPDX-License-Identifier: Apache-2.0
#include "sandbox/plan_landlock.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

namespace sandbox {
namespace {

// A host that is a table.
struct Host {
  std::map<std::string, PathKind> paths = {{"/usr", PathKind::kDirectory},
                                           {"/usr/bin", PathKind::kDirectory},
                                           {"/etc", PathKind::kDirectory},
                                           {"/etc/hosts", PathKind::kFile},
                                           {"/etc/ssl", PathKind::kDirectory},
                                           {"/etc/ssl/certs", PathKind::kDirectory},
                                           {"/etc/ssl/private", PathKind::kDirectory},
                                           {"/etc/shadow", PathKind::kFile},
                                           {"/srv", PathKind::kDirectory},
                                           {"/srv/data", PathKind::kDirectory},
                                           {"/work", PathKind::kDirectory},
                                           {"/work/checkout", PathKind::kDirectory}};

  HostView View() const {
    HostView view;
    view.uid = view.gid = 1000;
    view.kind = [this](const std::string& path) {
      auto found = paths.find(path);
      return found == paths.end() ? PathKind::kMissing : found->second;
    };
    view.link = [](const std::string&) { return std::string(); };
    view.real = [this](const std::string& path) { return paths.contains(path) ? path : ""; };
    view.list = [this](const std::string& top) {
      std::vector<std::string> names;
      for (const auto& [path, kind] : paths) {
        bool inside = path.starts_with(top + "/");
        if (inside && path.find('/', top.size() + 1) == std::string::npos) {
          names.push_back(path.substr(top.size() + 1));
        }
      }
      return names;
    };
    return view;
  }
};

SandboxRequest Request() {
  SandboxRequest request;
  request.isolation = Isolation::kLandlock;
  request.scratch = "/var/tmp/run";
  request.checkout = "/work/checkout";
  request.argv = {"/bin/true"};
  return request;
}

SandboxPlan Plan(const SandboxRequest& request, const HostView& host) {
  Result<SandboxPlan> plan = PlanSandbox(request, host);
  REQUIRE(plan.ok());
  return std::move(plan).value();
}

// "r", "w", "l", or "" for a path that no rule is for.
std::string RuleFor(const SandboxPlan& plan, const std::string& path) {
  for (const LandlockRule& rule : plan.landlock) {
    if (rule.path == path) return rule.writable ? "w" : rule.listed ? "l" : "r";
  }
  return "";
}

TEST_CASE("Of a directory that holds a secret, all that is beside it can be read") {
  Host host;
  SandboxPlan plan = Plan(Request(), host.View());
  CHECK(RuleFor(plan, "/usr") == "r");
  CHECK(RuleFor(plan, "/etc") == "l");
  CHECK(RuleFor(plan, "/etc/hosts") == "r");
  CHECK(RuleFor(plan, "/etc/ssl") == "l");
  CHECK(RuleFor(plan, "/etc/ssl/certs") == "r");
  CHECK(RuleFor(plan, "/etc/ssl/private") == "");
  CHECK(RuleFor(plan, "/etc/shadow") == "");
}

TEST_CASE("Only the run's own directory is written, and the checkout is a copy in it") {
  Host host;
  SandboxRequest request = Request();
  request.policy.filesystem.read_write = {"/srv/data", "/tmp"};
  SandboxPlan plan = Plan(request, host.View());
  for (const LandlockRule& rule : plan.landlock) {
    INFO(rule.path);
    CHECK((!rule.writable || rule.path.starts_with("/var/tmp/run/") ||
           rule.path.starts_with("/dev/")));
  }
  CHECK(RuleFor(plan, "/srv/data") == "r");
  CHECK(plan.notes.size() == 1);
  CHECK(RuleFor(plan, "/work/checkout") == "");
  CHECK(RuleFor(plan, "/var/tmp/run/checkout") == "w");
  CHECK(plan.workdir == "/var/tmp/run/checkout");

  request.policy.filesystem.include_workdir = false;
  CHECK_FALSE(Plan(request, host.View()).shared_host().copies_checkout);
  request.policy.filesystem.read_only = {"/work/checkout/docs"};
  plan = Plan(request, host.View());
  CHECK(plan.shared_host().copies_checkout);
  CHECK(RuleFor(plan, "/var/tmp/run/checkout") == "");
  CHECK(RuleFor(plan, "/var/tmp/run/checkout/docs") == "r");
  // A directory that holds the checkout: the original has no rule, whatever the copy has.
  request.policy.filesystem.read_only = {"/work"};
  plan = Plan(request, host.View());
  CHECK(RuleFor(plan, "/work") == "l");
  CHECK(RuleFor(plan, "/work/checkout") == "");
  CHECK(RuleFor(plan, "/var/tmp/run/checkout") == "r");
}

TEST_CASE("Beside the scratch of runs, what the policy names is shown") {
  Host host;
  for (const char* path :
       {"/var", "/var/log", "/var/tmp", "/var/tmp/data", "/var/tmp/agentic-ci-scratch.other"}) {
    host.paths[path] = PathKind::kDirectory;
  }
  SandboxRequest request = Request();
  request.policy.filesystem.read_only = {"/var/tmp/data", "/var/tmp/agentic-ci-scratch.other"};
  SandboxPlan plan = Plan(request, host.View());
  CHECK(RuleFor(plan, "/var/tmp/data") == "r");
  CHECK(RuleFor(plan, "/var/tmp/agentic-ci-scratch.other") == "");
  request.policy.filesystem.read_only = {"/var"};
  CHECK(Plan(request, host.View()).notes.empty());
  request.policy.filesystem.read_only = {"/var/tmp"};
  CHECK(Plan(request, host.View()).notes.size() == 1);
  request.policy.filesystem.read_only = {"/usr"};
  request.policy.filesystem.read_write = {"/var/tmp"};
  CHECK(Plan(request, host.View()).notes ==
        std::vector<std::string>{"/var/tmp: not exposed: it holds the scratch directories of runs; "
                                 "name a path in it instead"});
  request.policy.filesystem.read_write.clear();
  for (const char* above : {"/var/tmp", "/var"}) {
    request.policy.filesystem.read_only = {above};
    plan = Plan(request, host.View());
    CHECK(RuleFor(plan, "/var/tmp") == "");
    CHECK(RuleFor(plan, "/var/tmp/data") == "");
  }
  CHECK(RuleFor(plan, "/var") == "l");
  CHECK(RuleFor(plan, "/var/log") == "r");
}

TEST_CASE("A policy path that the agent does not get is noted") {
  Host host;
  SandboxRequest request = Request();
  request.policy.filesystem.read_only = {"/usr", "/sys", "/nowhere", "/dev/null"};
  request.policy.filesystem.read_write = {"/tmp", "/tmp/cache", "/absent"};
  CHECK(Plan(request, host.View()).notes ==
        std::vector<std::string>{
            "/sys: not exposed: /sys is the sandbox's own, and never the host's",
            "/nowhere: not on this host",
            "/tmp/cache: not exposed: /tmp is the sandbox's own, and never the host's",
            "/absent: not on this host"});
}

TEST_CASE("Root's agent has ids of its own, and then all terminals of that user") {
  Host host;
  HostView view = host.View();
  SandboxPlan plan = Plan(Request(), view);
  CHECK_FALSE(plan.as_root);
  CHECK(plan.host_uid == 1000);
  CHECK(RuleFor(plan, "/dev/ptmx") == "w");
  CHECK(RuleFor(plan, "/dev/pts") == "");
  view.uid = view.gid = 0;
  view.free_id = 1'900'000'000;
  plan = Plan(Request(), view);
  CHECK(plan.as_root);
  CHECK(plan.host_uid == 1'900'000'000);
  CHECK(RuleFor(plan, "/dev/pts") == "w");
}

}  // namespace
}  // namespace sandbox
