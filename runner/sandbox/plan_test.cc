// SPDX-License-Identifier: Apache-2.0
#include "sandbox/plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

namespace sandbox {
namespace {

using Kind = MountStep::Kind;

// A host that is a table: path -> kind, with the text of links beside it.
struct FakeHost {
  std::map<std::string, PathKind> paths = {{"/usr", PathKind::kDirectory},
                                           {"/etc", PathKind::kDirectory},
                                           {"/var", PathKind::kDirectory},
                                           {"/var/log", PathKind::kDirectory},
                                           {"/root", PathKind::kDirectory},
                                           {"/home", PathKind::kDirectory},
                                           {"/home/alice", PathKind::kDirectory},
                                           {"/home/alice/.ssh", PathKind::kDirectory},
                                           {"/root/.netrc", PathKind::kFile},
                                           {"/opt", PathKind::kDirectory},
                                           {"/run", PathKind::kDirectory},
                                           {"/tmp", PathKind::kDirectory},
                                           {"/proc", PathKind::kDirectory},
                                           {"/dev", PathKind::kDirectory},
                                           {"/dev/null", PathKind::kOther},
                                           {"/dev/tty", PathKind::kOther},
                                           {"/etc/shadow", PathKind::kFile},
                                           {"/etc/hosts", PathKind::kFile},
                                           {"/etc/alternatives", PathKind::kDirectory},
                                           {"/bin", PathKind::kSymlink},
                                           {"/lib", PathKind::kSymlink},
                                           {"/etc/localtime", PathKind::kSymlink},
                                           {"/etc/ssl/certs/ca-certificates.crt", PathKind::kFile}};
  std::map<std::string, std::string> links = {
      {"/bin", "usr/bin"}, {"/lib", "usr/lib"}, {"/etc/localtime", "/usr/share/zoneinfo/UTC"}};
  std::vector<std::string> mounts = {"/", "/proc"};
  std::set<std::string> roots = {};  // The paths that belong to root.
  bool root = false;
  uid_t uid = 1000;
  gid_t gid = 1000;
  uid_t checkout_uid = 1000;
  gid_t checkout_gid = 1000;

  HostView View() const {
    HostView view;
    view.root = root;
    view.uid = uid;
    view.gid = gid;
    view.checkout_uid = checkout_uid;
    view.checkout_gid = checkout_gid;
    view.mounts = mounts;
    view.kind = [this](const std::string& path) {
      auto found = paths.find(path);
      return found == paths.end() ? PathKind::kMissing : found->second;
    };
    view.link = [this](const std::string& path) {
      auto found = links.find(path);
      return found == links.end() ? std::string() : found->second;
    };
    view.real = [this](const std::string& path) { return paths.contains(path) ? path : ""; };
    view.owner = [this](const std::string& path) { return roots.contains(path) ? 0 : 1000; };
    view.mode = [](const std::string&) { return 0755; };
    view.list = [this](const std::string& top) {
      std::vector<std::string> names;
      std::string prefix = top == "/" ? "/" : top + "/";
      for (const auto& [path, kind] : paths) {
        if (!path.starts_with(prefix) || path.size() == prefix.size()) continue;
        std::string name = path.substr(prefix.size());
        if (name.find('/') == std::string::npos) names.push_back(name);
      }
      return names;
    };
    return view;
  }
};

SandboxRequest Request() {
  SandboxRequest request;
  request.checkout = "/home/alice/work";
  request.argv = {"true"};
  request.policy.filesystem.include_workdir = true;
  request.ca_pem = "ours";
  request.ca_bundle = "theirs\nours";
  return request;
}

SandboxPlan Plan(const SandboxRequest& request, const FakeHost& host) {
  Result<SandboxPlan> plan = PlanSandbox(request, host.View());
  REQUIRE(plan.ok());
  return std::move(plan).value();
}

Error Refusal(const SandboxRequest& request, const FakeHost& host) {
  Result<SandboxPlan> plan = PlanSandbox(request, host.View());
  REQUIRE_FALSE(plan.ok());
  return std::move(plan).error();
}

const MountStep* Find(const SandboxPlan& plan, Kind kind, const std::string& target) {
  for (const MountStep& step : plan.namespaces().mounts) {
    if (step.kind == kind && step.target == target) return &step;
  }
  return nullptr;
}

size_t Place(const SandboxPlan& plan, Kind kind, const std::string& target) {
  for (size_t i = 0; i < plan.namespaces().mounts.size(); ++i) {
    if (plan.namespaces().mounts[i].kind == kind && plan.namespaces().mounts[i].target == target)
      return i;
  }
  FAIL("no step for " << target);
  return 0;
}

bool Shows(const SandboxPlan& plan, const std::string& path) {
  return Find(plan, Kind::kBind, path) != nullptr || Find(plan, Kind::kShown, path) != nullptr ||
         Find(plan, Kind::kOverlay, path) != nullptr;
}

bool Permits(const SandboxPlan& plan, const std::string& path, bool writable) {
  return std::any_of(plan.landlock.begin(), plan.landlock.end(), [&](const LandlockRule& rule) {
    return rule.path == path && rule.writable == writable;
  });
}

TEST_CASE("A plan shows /usr read-only and the links of a merged-usr host as links") {
  SandboxPlan plan = Plan(Request(), FakeHost());
  CHECK(Find(plan, Kind::kShown, "/usr") != nullptr);
  REQUIRE(Find(plan, Kind::kSymlink, "/bin") != nullptr);
  CHECK(Find(plan, Kind::kSymlink, "/bin")->source == "usr/bin");
}

TEST_CASE("A plan shows /bin and /lib as directories where they are directories") {
  FakeHost host;
  host.paths["/bin"] = PathKind::kDirectory;
  host.paths["/lib"] = PathKind::kDirectory;
  SandboxPlan plan = Plan(Request(), host);
  CHECK(Find(plan, Kind::kShown, "/bin") != nullptr);
  CHECK(Find(plan, Kind::kShown, "/lib") != nullptr);
  CHECK(Find(plan, Kind::kSymlink, "/bin") == nullptr);
}

TEST_CASE("A plan leaves homes, sockets and unnamed directories of the host out") {
  SandboxPlan plan = Plan(Request(), FakeHost());
  for (const char* path : {"/root", "/home", "/opt", "/run", "/var", "/home/alice"}) {
    INFO(path);
    CHECK_FALSE(Shows(plan, path));
  }
}

TEST_CASE(
    "Files for the agent's program lie in its home, under their directories, and can change") {
  SandboxRequest request = Request();
  request.home_files = {{".tool/rc", "a"}, {".tool/deep/er", "b"}};
  SandboxPlan plan = Plan(request, FakeHost());
  const MountStep* file = Find(plan, Kind::kFile, "/sandbox/.tool/deep/er");
  REQUIRE(file != nullptr);
  CHECK(file->content == "b");
  CHECK(Find(plan, Kind::kFile, "/sandbox/.tool/rc") != nullptr);
  const size_t home = Place(plan, Kind::kScratch, "/sandbox");
  const size_t directory = Place(plan, Kind::kDirectory, "/sandbox/.tool");
  CHECK(home < directory);
  CHECK(directory < Place(plan, Kind::kDirectory, "/sandbox/.tool/deep"));
  CHECK(Place(plan, Kind::kDirectory, "/sandbox/.tool/deep") <
        Place(plan, Kind::kFile, "/sandbox/.tool/deep/er"));
  CHECK(Find(plan, Kind::kReadOnly, "/sandbox") == nullptr);
}

TEST_CASE("A policy path becomes a mount and a Landlock rule") {
  SandboxRequest request = Request();
  request.policy.filesystem.read_only = {"/opt"};
  request.policy.filesystem.read_write = {"/var/log"};
  SandboxPlan plan = Plan(request, FakeHost());
  CHECK(Find(plan, Kind::kShown, "/opt") != nullptr);
  CHECK(Permits(plan, "/opt", false));
  CHECK(Find(plan, Kind::kOverlay, "/var/log") != nullptr);
  CHECK(Permits(plan, "/var/log", true));
}

TEST_CASE("A policy path that does not exist is noted, or refused where Landlock is required") {
  SandboxRequest request = Request();
  request.policy.filesystem.read_only = {"/nowhere"};
  SandboxPlan plan = Plan(request, FakeHost());
  CHECK(std::count(plan.notes.begin(), plan.notes.end(), "/nowhere: not on this host") == 1);

  request.policy.landlock = policy::LandlockMode::kHardRequirement;
  CHECK(Refusal(request, FakeHost()).code == Code::kInvalid);
}

TEST_CASE("A policy path in the sandbox's own places is noted, but for what every sandbox has") {
  SandboxRequest request = Request();
  request.policy.filesystem.read_only = {"/sys", "/dev/urandom", "/proc", "/tmp/of-the-host"};
  request.policy.filesystem.read_write = {"/tmp", "/run/docker.sock"};
  SandboxPlan plan = Plan(request, FakeHost());
  CHECK(plan.notes ==
        std::vector<std::string>{
            "/sys: not exposed: /sys is the sandbox's own, and never the host's",
            "/tmp/of-the-host: not exposed: /tmp is the sandbox's own, and never the host's",
            "/run/docker.sock: not exposed: /run is the sandbox's own, and never the host's"});
}

TEST_CASE("The names in all directories may be read, but not where rules alone hide the checkout") {
  auto lists_root = [](const SandboxPlan& plan) {
    return std::any_of(plan.landlock.begin(), plan.landlock.end(), [](const LandlockRule& rule) {
      return rule.path == "/" && rule.listed && !rule.writable;
    });
  };
  SandboxRequest request = Request();
  CHECK(lists_root(Plan(request, FakeHost())));
  request.policy.filesystem.include_workdir = false;
  CHECK(lists_root(Plan(request, FakeHost())));
  request.policy.filesystem.read_only = {request.checkout + "/part"};
  CHECK_FALSE(lists_root(Plan(request, FakeHost())));
}

TEST_CASE("What tells runtimes about the processors is shown, unless it has mounts in it") {
  FakeHost host;
  host.paths[kProcessors] = PathKind::kDirectory;
  SandboxPlan plan = Plan(Request(), host);
  CHECK(Find(plan, Kind::kShown, kProcessors) != nullptr);
  CHECK(Permits(plan, kProcessors, false));
  host.mounts.push_back(std::string(kProcessors) + "/cpu0/thermal_throttle");
  CHECK(Find(Plan(Request(), host), Kind::kShown, kProcessors) == nullptr);
}

TEST_CASE("A policy that opens / opens neither homes nor our own places") {
  SandboxRequest request = Request();
  request.policy.filesystem.read_only = {"/"};
  SandboxPlan plan = Plan(request, FakeHost());
  CHECK(Shows(plan, "/opt"));
  CHECK(Shows(plan, "/var"));
  for (const char* path : {"/root", "/home", "/run", "/tmp", "/dev", "/proc"}) {
    INFO(path);
    CHECK_FALSE(Shows(plan, path));
  }
}

TEST_CASE("A policy cannot bring the host's private places in") {
  SandboxRequest request = Request();
  request.policy.filesystem.read_only = {"/run/docker.sock", "/sys", "/dev/mem", "/var/run"};
  request.policy.filesystem.read_write = {"/tmp/shared", "/proc/sys"};
  SandboxPlan plan = Plan(request, FakeHost());
  for (const MountStep& step : plan.namespaces().mounts) {
    if (step.kind != Kind::kBind && step.kind != Kind::kShown && step.kind != Kind::kOverlay)
      continue;
    INFO(step.target);
    CHECK((step.target == "/usr" || step.target == "/etc" || step.target == "/var/log"));
  }
}

TEST_CASE("A secret beneath a shown directory is masked after it is mounted") {
  SandboxRequest request = Request();
  request.checkout = "/srv/work";
  request.policy.filesystem.read_only = {"/home"};
  SandboxPlan plan = Plan(request, FakeHost());
  CHECK(Place(plan, Kind::kMask, "/home/alice/.ssh") > Place(plan, Kind::kShown, "/home"));
  CHECK(Find(plan, Kind::kMask, "/home/alice/.ssh")->is_directory);
  CHECK(Place(plan, Kind::kMask, "/etc/shadow") > Place(plan, Kind::kOverlay, "/etc"));
  CHECK_FALSE(Find(plan, Kind::kMask, "/etc/shadow")->is_directory);
}

TEST_CASE(
    "A directory that is not the agent's to see is empty, above the checkout, and only there") {
  SandboxRequest request = Request();
  request.shown_empty = {"/home/alice/work/report", "/home/alice/work", "/elsewhere"};
  SandboxPlan plan = Plan(request, FakeHost());
  CHECK(Place(plan, Kind::kEmpty, "/home/alice/work/report") >
        Place(plan, Kind::kWorkspace, "/home/alice/work"));
  CHECK(Find(plan, Kind::kEmpty, "/home/alice/work") == nullptr);
  CHECK(Find(plan, Kind::kEmpty, "/elsewhere") == nullptr);
}

TEST_CASE("A copy of the checkout is shown at the checkout's own path") {
  SandboxRequest request = Request();
  request.copied_to = "/var/tmp/copy";
  SandboxPlan plan = Plan(request, FakeHost());
  CHECK(Find(plan, Kind::kWorkspace, "/home/alice/work")->source == "/var/tmp/copy");
  CHECK(plan.workdir == "/home/alice/work");
}

TEST_CASE(
    "An agent installed beneath /tmp is shown there, and a policy's path beneath /tmp is not") {
  FakeHost host;
  host.paths["/tmp/agents/node_modules"] = PathKind::kDirectory;
  host.paths["/tmp/other"] = PathKind::kDirectory;
  SandboxRequest request = Request();
  request.extra_read_only = {"/tmp/agents/node_modules"};
  request.policy.filesystem.read_only = {"/tmp/other"};
  SandboxPlan plan = Plan(request, host);
  CHECK(Place(plan, Kind::kShown, "/tmp/agents/node_modules") >
        Place(plan, Kind::kScratch, "/tmp"));
  CHECK_FALSE(Shows(plan, "/tmp/other"));
}

TEST_CASE("The checkout comes after the masks and the seal of the root last") {
  SandboxPlan plan = Plan(Request(), FakeHost());
  size_t workspace = Place(plan, Kind::kWorkspace, "/home/alice/work");
  CHECK(workspace > Place(plan, Kind::kMask, "/etc/shadow"));
  CHECK(plan.namespaces().mounts.back().kind == Kind::kReadOnly);
  CHECK(plan.namespaces().mounts.back().target == "/");
}

TEST_CASE("Directories above the checkout are made, not shown") {
  SandboxPlan plan = Plan(Request(), FakeHost());
  CHECK(Find(plan, Kind::kDirectory, "/home") != nullptr);
  CHECK(Find(plan, Kind::kDirectory, "/home/alice") != nullptr);
}

TEST_CASE("/etc is one layer, and entry by entry where something is mounted in it") {
  SandboxPlan layered = Plan(Request(), FakeHost());
  CHECK(Find(layered, Kind::kOverlay, "/etc") != nullptr);
  CHECK(Find(layered, Kind::kUpperFile, "/etc/hosts") != nullptr);

  FakeHost container;
  container.mounts.push_back("/etc/hosts");
  SandboxPlan plan = Plan(Request(), container);
  CHECK(Find(plan, Kind::kOverlay, "/etc") == nullptr);
  CHECK(Find(plan, Kind::kShown, "/etc/alternatives") != nullptr);
  CHECK(Find(plan, Kind::kSymlink, "/etc/localtime") != nullptr);
  // Ours stands where the container's would be, and the mask still lies over the host's secret.
  REQUIRE(Find(plan, Kind::kFile, "/etc/hosts") != nullptr);
  CHECK(Find(plan, Kind::kFile, "/etc/hosts")->content.get().starts_with("127.0.0.1"));
  CHECK(Find(plan, Kind::kBind, "/etc/hosts") == nullptr);
  CHECK(Place(plan, Kind::kMask, "/etc/shadow") > Place(plan, Kind::kBind, "/etc/shadow"));
}

TEST_CASE("The sandbox's bundle holds the host's authorities and ours") {
  SandboxPlan plan = Plan(Request(), FakeHost());
  for (const char* path : {kCaBundleFile, "/etc/ssl/certs/ca-certificates.crt"}) {
    const MountStep* file = Find(plan, Kind::kUpperFile, path);
    REQUIRE(file != nullptr);
    CHECK(file->content == "theirs\nours");
  }
}

TEST_CASE("An ordinary user's sandbox maps that user alone") {
  SandboxPlan plan = Plan(Request(), FakeHost());
  CHECK(plan.host_uid == 1000);
  CHECK_FALSE(plan.namespaces().idmap_checkout);
  CHECK_FALSE(plan.as_root);
}

TEST_CASE("A checkout that one mapped id does not cover is copied") {
  FakeHost host;
  CHECK(Plan(Request(), host).namespaces().copy_reason.empty());
  SECTION("another user's") { host.checkout_uid = 0; }
  SECTION("another group's") { host.checkout_gid = 100; }
  SECTION("with mounts in it") { host.mounts.push_back("/home/alice/work/volume"); }
  SECTION("a user's and root's group's, given by root") {
    host.root = true;
    host.uid = host.gid = host.checkout_gid = 0;
  }
  SECTION("root's and a user's group's, given by root") {
    host.root = true;
    host.uid = host.gid = host.checkout_uid = 0;
    CHECK_FALSE(Plan(Request(), host).namespaces().idmap_checkout);
  }
  CHECK_FALSE(Plan(Request(), host).namespaces().copy_reason.empty());
}

TEST_CASE("A checkout in which something belongs to others is copied") {
  FakeHost host;
  SandboxRequest request = Request();
  SECTION("for an ordinary user") {}
  SECTION("for root, whose it is") {
    host.root = true;
    host.uid = host.gid = host.checkout_uid = host.checkout_gid = 0;
  }
  SECTION("for root, who hands it over") {
    host.root = true;
    host.uid = host.gid = 0;
  }
  CHECK(Plan(request, host).namespaces().copy_reason.empty());  // The control.
  request.foreign = "node_modules belongs to 0:0";
  const SandboxPlan plan = Plan(request, host);
  CHECK(plan.namespaces().copy_reason == "node_modules belongs to 0:0");
  CHECK_FALSE(plan.namespaces().idmap_checkout);
}

TEST_CASE("Mounts beside a checkout are no reason to copy it") {
  FakeHost host;
  host.mounts.push_back("/home/alice/work-volume");
  host.mounts.push_back("/home/alice/work");
  CHECK(Plan(Request(), host).namespaces().copy_reason.empty());
  host.mounts.push_back("/home/alice/work/volume");
  host.root = true;
  host.uid = host.gid = 0;
  CHECK(Plan(Request(), host).namespaces().copy_reason.empty());  // Root hands it over without.
}

TEST_CASE("Layers lie on a disk where memory cannot hold them") {
  FakeHost host;
  CHECK_FALSE(Plan(Request(), host).namespaces().layers_on_disk);
  HostView view = host.View();
  view.layers_in_memory = false;
  view.scratch_places = {"/var/tmp"};
  Result<SandboxPlan> plan = PlanSandbox(Request(), view);
  REQUIRE(plan.ok());
  CHECK(plan.value().namespaces().layers_on_disk);
  CHECK(plan.value().namespaces().scratch_places == std::vector<std::string>{"/var/tmp"});
}

TEST_CASE("The files of a lasting sandbox leave room in memory") {
  FakeHost host;
  SandboxRequest request = Request();
  request.limits.memory_bytes = 64 << 20;
  request.limits.disk_bytes = 80 << 20;
  auto disk_bytes = [&](const HostView& view) {
    Result<SandboxPlan> plan = PlanSandbox(request, view);
    REQUIRE(plan.ok());
    return plan.value().limits.disk_bytes;
  };
  HostView view = host.View();
  CHECK(disk_bytes(view) == 80 << 20);
  request.limits.lasting = true;
  CHECK(disk_bytes(view) == 48 << 20);
  request.limits.disk_bytes = 16 << 20;
  CHECK(disk_bytes(view) == 16 << 20);
  request.limits.disk_bytes = 80 << 20;
  request.limits.memory_bytes = 0;
  CHECK(disk_bytes(view) == 80 << 20);
  request.limits.memory_bytes = 64 << 20;
  view.layers_in_memory = false;
  CHECK(disk_bytes(view) == 80 << 20);
}

TEST_CASE("Root never runs the agent as root") {
  FakeHost host;
  host.root = true;
  host.uid = host.gid = 0;
  SECTION("a checkout of root's is id-mapped to nobody in particular") {
    host.checkout_uid = host.checkout_gid = 0;
    SandboxPlan plan = Plan(Request(), host);
    CHECK(plan.namespaces().idmap_checkout);
    CHECK(plan.host_uid > 65535);
    CHECK(plan.host_gid > 65535);
  }
  SECTION("a checkout of a user's is that user's") {
    SandboxPlan plan = Plan(Request(), host);
    CHECK_FALSE(plan.namespaces().idmap_checkout);
    CHECK(plan.host_uid == 1000);
    CHECK(plan.host_gid == 1000);
  }
  SECTION("a checkout of root's group is not") {
    host.checkout_gid = 0;
    SandboxPlan plan = Plan(Request(), host);
    CHECK(plan.host_gid == 1000);
  }
}

TEST_CASE("Root of a user namespace of its own is an ordinary user under another number") {
  FakeHost host;
  host.uid = host.gid = 0;
  CHECK_FALSE(Plan(Request(), host).namespaces().copy_reason.empty());
  host.checkout_uid = host.checkout_gid = 0;
  SandboxPlan plan = Plan(Request(), host);
  CHECK(plan.namespaces().copy_reason.empty());
  CHECK_FALSE(plan.as_root);
  CHECK_FALSE(plan.namespaces().idmap_checkout);
}

TEST_CASE("The policy names the ids inside") {
  SandboxRequest request = Request();
  request.policy.process.run_as_user = "2000";
  request.policy.process.run_as_group = "3000";
  SandboxPlan plan = Plan(request, FakeHost());
  CHECK(plan.inner_uid == 2000);
  CHECK(plan.inner_gid == 3000);
  request.policy.process.run_as_user = "sandbox";
  CHECK(Plan(request, FakeHost()).inner_uid == 1000);
}

TEST_CASE("What has mounts in it cannot be made writable by an ordinary user") {
  FakeHost host;
  SandboxRequest request = Request();
  request.policy.filesystem.read_write = {"/opt"};
  CHECK(PlanSandbox(request, host.View()).ok());
  host.mounts.push_back("/opt/volume");
  Error error = Refusal(request, host);
  CHECK(error.code == Code::kUnsupported);
  CHECK(error.hint == "umount /opt/volume");
}

TEST_CASE("A workdir that the policy leaves out gets no Landlock rule") {
  SandboxRequest request = Request();
  CHECK(Permits(Plan(request, FakeHost()), request.checkout, true));
  request.policy.filesystem.include_workdir = false;
  CHECK_FALSE(Permits(Plan(request, FakeHost()), request.checkout, true));
}

TEST_CASE("A workdir that the policy leaves out is shown empty, below a writable /tmp too") {
  SandboxRequest request = Request();
  auto steps = [&](const std::string& checkout) {
    request.checkout = checkout;
    request.shown_empty = {checkout + "/report"};
    std::vector<Kind> kinds;
    const SandboxPlan plan = Plan(request, FakeHost());
    for (const MountStep& step : plan.steps()) {
      if (step.target.starts_with(checkout)) kinds.push_back(step.kind);
    }
    return kinds;
  };
  using Kinds = std::vector<Kind>;
  const Kinds open = {Kind::kDirectory, Kind::kWorkspace, Kind::kEmpty};
  const Kinds closed = open;  // The last one is the checkout's, not the report's.
  request.policy.filesystem.read_write = {"/tmp", "/var/tmp"};
  CHECK(steps("/tmp/work") == open);
  request.policy.filesystem.include_workdir = false;
  for (const char* checkout : {"/tmp/work", "/var/tmp/work", "/home/alice/work"}) {
    INFO(checkout);
    CHECK(steps(checkout) == closed);
    CHECK(Plan(request, FakeHost()).namespaces().mounts.rbegin()[1].target == checkout);
  }
  request.policy.filesystem.read_only = {"/tmp/work"};
  CHECK(steps("/tmp/work") ==
        Kinds{Kind::kDirectory, Kind::kWorkspace, Kind::kReadOnly, Kind::kEmpty});
  request.policy.filesystem.read_only = {"/tmp/work/docs"};
  CHECK(Refusal(request, FakeHost()).code == Code::kInvalid);
  request.policy.filesystem.read_write = {"/tmp/work"};
  CHECK(steps("/tmp/work") == open);
}

}  // namespace
namespace {

// An image that is a table, with two layers.
ImageRequest Image() {
  ImageRequest image;
  image.layers = {"/store/upper", "/store/lower"};
  image.owner = 1'879'048'192;
  image.kind = [](const std::string& path) {
    static const std::map<std::string, PathKind> kPaths = {{"/bin", PathKind::kDirectory},
                                                           {"/etc", PathKind::kDirectory},
                                                           {"/opt", PathKind::kDirectory},
                                                           {"/etc/ssl/cert.pem", PathKind::kFile}};
    auto found = kPaths.find(path);
    return found == kPaths.end() ? PathKind::kMissing : found->second;
  };
  return image;
}

bool HasRule(const SandboxPlan& plan, const std::string& path, bool writable) {
  return std::any_of(plan.landlock.begin(), plan.landlock.end(), [&](const LandlockRule& rule) {
    return rule.path == path && rule.writable == writable;
  });
}

}  // namespace

TEST_CASE("In an image nothing of the host's is mounted but devices and the checkout") {
  SandboxRequest request = Request();
  request.image = Image();
  request.policy.filesystem.read_only = {"/usr", "/home", "/root"};
  SandboxPlan plan = Plan(request, FakeHost());
  CHECK(plan.namespaces().mounts[0].kind == Kind::kLayer);
  CHECK(plan.namespaces().mounts[0].source == "/store/upper");
  CHECK(plan.namespaces().mounts[1].source == "/store/lower");
  CHECK(plan.namespaces().mounts[2].kind == Kind::kImage);
  for (const MountStep& step : plan.namespaces().mounts) {
    bool of_the_host =
        step.kind == Kind::kBind || step.kind == Kind::kShown || step.kind == Kind::kOverlay;
    CHECK_FALSE(of_the_host);
    CHECK((step.kind != Kind::kMask || step.target.starts_with("/proc/key")));
  }
  CHECK(plan.namespaces().mounts.back().kind == Kind::kReadOnly);
  CHECK(plan.namespaces().mounts.back().target == "/");
  // Ours over the bundle that the image has, and over none that it has not.
  REQUIRE(Find(plan, Kind::kFile, "/etc/ssl/cert.pem") != nullptr);
  CHECK(Find(plan, Kind::kFile, "/etc/ssl/cert.pem")->content.get().find("ours") !=
        std::string::npos);
  CHECK(Find(plan, Kind::kFile, "/etc/ssl/certs/ca-certificates.crt") == nullptr);
  CHECK(Place(plan, Kind::kReadOnly, "/dev") > Place(plan, Kind::kDevice, "/dev/null"));
  CHECK(HasRule(plan, "/bin", false));  // Not under /usr there.
  CHECK_FALSE(HasRule(plan, "/lib", false));
}

TEST_CASE("A policy's writable directories of an image stay so when its root is sealed") {
  SandboxRequest request = Request();
  request.image = Image();
  request.policy.filesystem.read_write = {"/opt", "/tmp", "/missing"};
  SandboxPlan plan = Plan(request, FakeHost());
  CHECK(Find(plan, Kind::kWritable, "/opt") != nullptr);
  CHECK(Find(plan, Kind::kWritable, "/tmp") == nullptr);  // The sandbox's own.
  CHECK(Find(plan, Kind::kWritable, "/missing") == nullptr);
  CHECK(plan.notes == std::vector<std::string>{"/missing: not in the image"});
  CHECK(Place(plan, Kind::kWritable, "/opt") < Place(plan, Kind::kWorkspace, "/home/alice/work"));
  request.policy.landlock = policy::LandlockMode::kHardRequirement;
  request.policy.filesystem.read_only = {"/missing"};
  CHECK(Refusal(request, FakeHost()).what.find("does not exist in the image") != std::string::npos);
}

TEST_CASE("The agent is the image's user, unless the policy names one, and never root") {
  SandboxRequest request = Request();
  request.image = Image();
  CHECK(Plan(request, FakeHost()).inner_uid == 1000);
  request.image->uid = 1234;
  request.image->gid = 1235;
  CHECK(Plan(request, FakeHost()).inner_uid == 1234);
  CHECK(Plan(request, FakeHost()).inner_gid == 1235);
  request.policy.process.run_as_user = "77";
  CHECK(Plan(request, FakeHost()).inner_uid == 77);
}

TEST_CASE("Root hands an image's layers to whoever the agent is on the host") {
  SandboxRequest request = Request();
  request.image = Image();
  FakeHost host;
  CHECK(Plan(request, host).namespaces().mounts[0].from == MountStep::Source::kPath);
  host.root = true;
  host.uid = host.gid = 0;
  SandboxPlan mapped = Plan(request, host);  // The checkout belongs to another user.
  CHECK(mapped.namespaces().mounts[0].from == MountStep::Source::kMapped);
  CHECK(mapped.namespaces().mounts[0].owner == 1'879'048'192);
  host.checkout_uid = host.checkout_gid = 0;
  CHECK(Plan(request, host).namespaces().mounts[0].from == MountStep::Source::kOpened);
}

TEST_CASE("What belongs to root on the host is handed over where the agent has to get at it") {
  SandboxRequest request = Request();
  request.policy.filesystem.read_write = {"/opt", "/usr"};
  request.extra_read_only = {"/root"};
  FakeHost host;
  host.roots = {"/opt", "/root"};
  CHECK(Find(Plan(request, host), Kind::kOverlay, "/opt")->from == MountStep::Source::kPath);
  host.root = true;
  host.uid = host.gid = host.checkout_uid = host.checkout_gid = 0;
  SandboxPlan plan = Plan(request, host);
  CHECK(Find(plan, Kind::kOverlay, "/opt")->from == MountStep::Source::kMapped);
  CHECK(Find(plan, Kind::kOverlay, "/usr")->from == MountStep::Source::kPath);
  CHECK(Find(plan, Kind::kShown, "/root")->from == MountStep::Source::kMapped);
}

}  // namespace sandbox
