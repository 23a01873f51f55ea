// SPDX-License-Identifier: Apache-2.0
#include "sandbox/plan.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "policy/model/own_places.h"
#include "sandbox/etc_files.h"
#include "sandbox/host_tree.h"
#include "sandbox/mask.h"
#include "sandbox/plan_landlock.h"
#include "sandbox/workdir.h"

namespace sandbox {
namespace {

using Kind = MountStep::Kind;
using Source = MountStep::Source;

// Root's checkout is handed to this uid through an id-mapped mount. Far from any real account and
// from the ranges that subordinate ids are given from.
constexpr uid_t kUnprivilegedUid = 1'879'048'192;

// The policy parser has already held it to 1 ... 4294967294.
uint32_t ParseId(const std::string& text) {
  uint32_t id = 0;
  ENSURE(std::from_chars(text.data(), text.data() + text.size(), id).ec == std::errc());
  return id;
}

// 53 is where a name server is asked over TCP.
std::vector<uint16_t> CapturedPorts(const policy::Policy& policy) {
  std::set<uint16_t> ports = {53, 80, 443};
  for (const policy::NetworkPolicy& entry : policy.network) {
    for (const policy::Endpoint& endpoint : entry.endpoints) {
      ports.insert(endpoint.ports.begin(), endpoint.ports.end());
    }
  }
  std::vector<uint16_t> first(ports.begin(), ports.end());
  first.resize(std::min(first.size(), kCapturedPortsMax));
  return first;
}

constexpr char kSystemBundle[] = "/etc/ssl/certs/ca-certificates.crt";
// The bundles that distributions' programs read which know no variable: Debian's and Alpine's,
// Fedora's, SUSE's.
constexpr const char* kImageBundles[] = {
    kSystemBundle, "/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/ca-bundle.pem"};

// Collects the tree, parents before children, each path once.
class Tree {
 public:
  Tree(const SandboxRequest& request, const HostView& host)
      : request_(request),
        host_(host),
        secrets_(SecretPaths({"/"}, host, request.host_secrets)),
        tree_(host, secrets_, &plan_) {}

  Result<SandboxPlan> Plan();

 private:
  void PlanIds();
  void PlanBase();
  void PlanHome();
  void PlanImage();
  Status PlanImagePaths();
  void PlanEtc();
  void PlanDevices();
  Status PlanWorkspace();
  Status PlanPolicyPaths();
  void PlanLandlock(const std::set<std::string>& read_only,
                    const std::set<std::string>& read_write);
  Status PlanTopLevelLinks();
  void ShowProcessors(std::set<std::string>* read_only);
  Status RefuseMountsBeneath(const std::string& path) const;
  Status Show(const std::string& path, bool writable);
  HostTree::Origin OriginOf(const std::string& path) const;
  void Masks();

  void Add(MountStep step) { plan_.namespaces().mounts.push_back(std::move(step)); }

  const SandboxRequest& request_;
  const HostView& host_;
  SandboxPlan plan_;
  std::vector<std::string> secrets_;  // All that the host has, shown or not.
  HostTree tree_;
  std::set<std::string> installed_;  // The paths that run the agent and what it starts.
};

void Tree::PlanIds() {
  // The policy takes precedence over the image. No agent is root, but where it installs packages.
  if (request_.image && request_.image->uid != 0) plan_.inner_uid = request_.image->uid;
  if (request_.image && request_.image->gid != 0) plan_.inner_gid = request_.image->gid;
  const bool installs = request_.image && !request_.image->system_directories.empty();
  if (installs) plan_.inner_uid = plan_.inner_gid = 0;
  if (request_.policy.process.run_as_user && *request_.policy.process.run_as_user != "sandbox") {
    plan_.inner_uid = ParseId(*request_.policy.process.run_as_user);
  }
  if (request_.policy.process.run_as_group && *request_.policy.process.run_as_group != "sandbox") {
    plan_.inner_gid = ParseId(*request_.policy.process.run_as_group);
  }
  plan_.namespaces().owns_system = installs && plan_.inner_uid == 0;
  if (installs && !plan_.namespaces().owns_system) {
    plan_.notes.push_back("packages cannot be installed: the policy's run_as_user is not root");
  }
  plan_.as_root = host_.root;
  plan_.host_uid = host_.uid;
  plan_.host_gid = host_.gid;
  const bool uniform = request_.foreign.empty();
  bool layer = uniform && host_.checkout_uid == host_.uid && host_.checkout_gid == host_.gid;
  if (host_.root) {
    // If the runner is root, the agent still has an ordinary id: the checkout's owner, or an unused
    // one.
    bool roots = host_.checkout_uid == 0;
    plan_.namespaces().idmap_checkout = layer;
    plan_.host_uid = roots ? kUnprivilegedUid : host_.checkout_uid;
    plan_.host_gid = roots || host_.checkout_gid == 0 ? plan_.host_uid : host_.checkout_gid;
    layer = layer || (uniform && !roots && host_.checkout_gid != 0);
  }
  // Only one id of each kind is mapped. A file of another's cannot be copied up to be changed.
  if (layer) return;
  if (!uniform) {
    plan_.namespaces().copy_reason = request_.foreign;
    return;
  }
  plan_.namespaces().copy_reason = "it belongs to " + std::to_string(host_.checkout_uid) + ":" +
                                   std::to_string(host_.checkout_gid) + ", the sandbox to " +
                                   std::to_string(plan_.host_uid) + ":" +
                                   std::to_string(plan_.host_gid);
}

void Tree::PlanBase() {
  for (const char* directory : {"/proc", "/dev", "/tmp", kHome, "/run", "/var", "/etc"}) {
    tree_.MakeDirectory(directory);
  }
  Add({.kind = Kind::kProc, .target = "/proc"});
  // The kernel's keys are of the user outside: no namespace holds them.
  for (const char* keys : {"/proc/keys", "/proc/key-users"}) {
    Add({.kind = Kind::kMask, .target = keys, .is_directory = false});
  }
  Add({.kind = Kind::kScratch, .target = "/tmp", .scratch = "tmp", .mode = 01777});
  Add({.kind = Kind::kScratch, .target = kHome, .scratch = "home", .mode = 0755});
  PlanHome();
  Add({.kind = Kind::kSymlink, .target = "/var/run", .source = "/run"});
  tree_.Keep("/var/run");
  tree_.MakeDirectory("/var/tmp");
  Add({.kind = Kind::kScratch, .target = "/var/tmp", .scratch = "var-tmp", .mode = 01777});
}

void Tree::PlanHome() {
  for (const WorkspaceFile& file : request_.home_files) {
    for (size_t slash = file.path.find('/'); slash != std::string::npos;
         slash = file.path.find('/', slash + 1)) {
      tree_.MakeDirectory(std::string(kHome) + "/" + file.path.substr(0, slash));
    }
    Add({.kind = Kind::kFile,
         .target = std::string(kHome) + "/" + file.path,
         .content = file.content,
         .mode = 0644});
  }
}

void Tree::PlanDevices() {
  for (const char* name : {"null", "zero", "full", "random", "urandom", "tty"}) {
    std::string path = std::string("/dev/") + name;
    if (host_.kind(path) == PathKind::kOther) {
      Add({.kind = Kind::kDevice, .target = path, .source = path});
    }
  }
  Add({Kind::kDirectory, "/dev/pts"});
  Add({.kind = Kind::kDevPts, .target = "/dev/pts"});
  Add({.kind = Kind::kSymlink, .target = "/dev/ptmx", .source = "pts/ptmx"});
  Add({Kind::kDirectory, "/dev/shm"});
  Add({.kind = Kind::kScratch, .target = "/dev/shm", .scratch = "shm", .mode = 01777});
  Add({.kind = Kind::kSymlink, .target = "/dev/fd", .source = "/proc/self/fd"});
  Add({.kind = Kind::kSymlink, .target = "/dev/stdin", .source = "/proc/self/fd/0"});
  Add({.kind = Kind::kSymlink, .target = "/dev/stdout", .source = "/proc/self/fd/1"});
  Add({.kind = Kind::kSymlink, .target = "/dev/stderr", .source = "/proc/self/fd/2"});
}

// /etc is the host's with our names, our certificates and no credentials laid over it. Containers
// bind single files into it (hosts, resolv.conf), and what has mounts in it cannot be a layer.
void Tree::PlanEtc() {
  bool layered = tree_.MountBeneath("/etc").empty();
  auto file = [&](const std::string& name, SharedText content) {
    tree_.Keep(name);
    Add({.kind = layered ? Kind::kUpperFile : Kind::kFile,
         .target = name,
         .source = "/etc",
         .scratch = "etc",
         .content = std::move(content),
         .mode = 0644});
  };
  for (auto& [name, content] : EtcFiles(request_, plan_.inner_uid, plan_.inner_gid)) {
    if (!layered) tree_.MakeParents(name);
    file(name, std::move(content));
  }
  // The system bundle too: programs that know no variable trust what stands there.
  bool has_bundle = host_.kind(kSystemBundle) == PathKind::kFile;
  if (layered) {
    if (has_bundle) file(kSystemBundle, request_.ca_bundle);
    Add({.kind = Kind::kOverlay, .target = "/etc", .source = "/etc", .scratch = "etc"});
    Add({.kind = Kind::kReadOnly, .target = "/etc"});
    tree_.NoteShown("/etc");
  } else {
    tree_.Show("/etc", {});
    if (has_bundle) {
      Add({.kind = Kind::kOverFile, .target = kSystemBundle, .content = request_.ca_bundle});
    }
  }
}

// The kernel takes no layer of an overlay apart from the mounts in it, unless root lifts it off.
Status Tree::RefuseMountsBeneath(const std::string& path) const {
  std::string point = tree_.MountBeneath(path);
  if (point.empty()) return Ok();
  return Error{Code::kUnsupported,
               path + " cannot be made writable: something is mounted at " + point,
               "umount " + point};
}

Status Tree::PlanWorkspace() {
  // The kernel takes no layer apart from the mounts in it; root hands the checkout over without.
  const std::string& from = request_.copied_to.empty() ? request_.checkout : request_.copied_to;
  std::string mounted = host_.root ? "" : tree_.MountBeneath(from);
  if (!mounted.empty()) plan_.namespaces().copy_reason = "something is mounted at " + mounted;
  tree_.MakeParents(request_.checkout);
  tree_.MakeDirectory(request_.checkout);
  Add({.kind = Kind::kWorkspace,
       .target = request_.checkout,
       .source = from,
       .scratch = "workspace",
       .from = !plan_.as_root                      ? Source::kPath
               : plan_.namespaces().idmap_checkout ? Source::kMapped
                                                   : Source::kOpened});
  WorkdirAccess access =
      TRY(DecideWorkdir(request_.policy.filesystem, plan_.landlock, request_.checkout));
  // The root holds what is exposed and nothing else, so that its directories may be listed; not
  // where rules alone say what of an image or of the checkout is.
  if (!request_.image && access != WorkdirAccess::kByLandlock) {
    plan_.landlock.push_back({.path = "/", .listed = true});
  }
  if (access == WorkdirAccess::kReadOnly) {
    Add({.kind = Kind::kReadOnly, .target = request_.checkout});
  }
  if (access == WorkdirAccess::kEmpty) {
    Add({.kind = Kind::kEmpty, .target = request_.checkout});
    return Ok();
  }
  for (const std::string& path : request_.shown_empty) {
    if (path != request_.checkout && Beneath(path, request_.checkout)) {
      Add({.kind = Kind::kEmpty, .target = path});
    }
  }
  return Ok();
}

Status Tree::Show(const std::string& path, bool writable) {
  // The place where the agent is installed is the host's business, /tmp included; a policy's /tmp
  // is the sandbox's.
  if (IsPrivate(path) && !installed_.contains(path)) {
    std::string fault = policy::OwnPlaceFault(path);
    if (!fault.empty()) plan_.notes.push_back(path + ": not exposed: " + fault);
    return Ok();
  }
  if (Beneath(path, request_.checkout)) return Ok();
  if (Beneath(path, "/etc") && !writable) return Ok();  // Already there.
  if (!writable && tree_.IsShown(path)) return Ok();
  PathKind kind = host_.kind(path);
  if (kind == PathKind::kMissing || kind == PathKind::kOther) {
    plan_.notes.push_back(path + ": not on this host");
    return Ok();
  }
  if (!writable || kind != PathKind::kDirectory) {
    tree_.Show(path, OriginOf(path));
    return Ok();
  }
  TRY(RefuseMountsBeneath(path));
  tree_.MakeParents(path);
  tree_.MakeDirectory(path);
  // A layer can only be changed by its owner.
  bool mapped = plan_.as_root && host_.owner(path) == 0;
  Add({.kind = Kind::kOverlay,
       .target = path,
       .source = path,
       .scratch = "writable-" + std::to_string(tree_.shown().size()),
       .from = mapped ? Source::kMapped : Source::kPath});
  tree_.NoteShown(path);
  return Ok();
}

// Root opens what it shows: the sandbox's user may not be able to walk there. An agent under /root
// may also be root's alone to read.
HostTree::Origin Tree::OriginOf(const std::string& path) const {
  if (!plan_.as_root) return {};
  uid_t owner = host_.owner(path);
  bool mapped = installed_.contains(path) && owner != plan_.host_uid;
  return {mapped ? Source::kMapped : Source::kOpened, owner};
}

// Plans /bin, /lib and such: on a merged-usr host they are links; elsewhere /usr in a policy means
// them, too.
Status Tree::PlanTopLevelLinks() {
  for (const char* path : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    if (host_.kind(path) != PathKind::kMissing) TRY(Show(path, false));
  }
  return Ok();
}

Status Tree::PlanPolicyPaths() {
  const policy::FilesystemPolicy& filesystem = request_.policy.filesystem;
  std::set<std::string> read_only;
  std::set<std::string> read_write;
  for (const std::string& path : filesystem.read_only) {
    if (path != "/") {
      read_only.insert(path);
      continue;
    }
    // "/" means what the host has apart from its homes, its sockets and our own places.
    for (const std::string& name : host_.list("/")) {
      std::string top = "/" + name;
      if (!IsPrivate(top) && !IsHome(top)) read_only.insert(top);
    }
  }
  // OpenShell adds these to every policy when its proxy is in use, which here is always.
  for (const char* path : {"/usr", "/lib", "/etc", "/app", "/var/log", "/proc"}) {
    if (host_.kind(path) != PathKind::kMissing) read_only.insert(path);
  }
  for (const std::string& path : request_.extra_read_only)
    installed_.insert(policy::CleanPath(path));
  read_only.insert(installed_.begin(), installed_.end());
  read_write.insert(filesystem.read_write.begin(), filesystem.read_write.end());

  for (const std::string& path : read_only) {
    TRY(CheckRequired(request_, path, host_.kind(path)));
    if (!read_write.contains(path)) TRY(Show(path, false));
  }
  for (const std::string& path : read_write) TRY(Show(path, true));
  TRY(PlanTopLevelLinks());
  ShowProcessors(&read_only);

  PlanLandlock(read_only, read_write);
  return Ok();
}

// Runtimes look there for how many processors there are and what they share. Where a container's
// runtime hides some of it, each file would be a mount of its own.
void Tree::ShowProcessors(std::set<std::string>* read_only) {
  if (host_.kind(kProcessors) != PathKind::kDirectory) return;
  if (!tree_.MountBeneath(kProcessors).empty()) return;
  tree_.Show(kProcessors, OriginOf(kProcessors));
  read_only->insert(kProcessors);
}

void Tree::PlanLandlock(const std::set<std::string>& read_only,
                        const std::set<std::string>& read_write) {
  for (const std::string& path : read_only) plan_.landlock.push_back({path, false});
  for (const std::string& path : read_write) plan_.landlock.push_back({path, true});
  for (const char* path : {"/tmp", kHome, "/dev", "/var/tmp"})
    plan_.landlock.push_back({path, true});
  plan_.landlock.push_back({"/proc", false});
  if (request_.policy.filesystem.include_workdir) {
    plan_.landlock.push_back({request_.checkout, true});
  }
  plan_.landlock_required = request_.policy.landlock == policy::LandlockMode::kHardRequirement;
}

// The image is the root, with our files in place of its own, and what must be private over it.
void Tree::PlanImage() {
  uid_t owner = request_.image->owner;
  Source from = !plan_.as_root            ? Source::kPath
                : owner == plan_.host_uid ? Source::kOpened
                                          : Source::kMapped;
  for (const std::string& layer : request_.image->layers) {
    Add({.kind = Kind::kLayer, .target = "/", .source = layer, .from = from, .owner = owner});
  }
  Add({.kind = Kind::kImage, .target = "/"});
  PlanBase();
  for (auto& [name, content] : EtcFiles(request_, plan_.inner_uid, plan_.inner_gid)) {
    // Packages have accounts of their own; root is the image's.
    if (plan_.namespaces().owns_system && (name == "/etc/passwd" || name == "/etc/group")) continue;
    Add({.kind = Kind::kFile, .target = name, .content = std::move(content), .mode = 0644});
  }
  // The network namespace's settings in there are root's.
  if (plan_.namespaces().owns_system) Add({.kind = Kind::kReadOnly, .target = "/proc"});
  for (const char* bundle : kImageBundles) {
    if (request_.image->kind(bundle) != PathKind::kFile) continue;
    Add({.kind = Kind::kFile, .target = bundle, .content = request_.ca_bundle, .mode = 0644});
  }
  Add({.kind = Kind::kScratch, .target = "/dev", .scratch = "dev"});
  PlanDevices();
  Add({.kind = Kind::kReadOnly, .target = "/dev"});
}

// All of the image is there, none of it of the host's: Landlock says what of it the policy shows.
Status Tree::PlanImagePaths() {
  const policy::FilesystemPolicy& filesystem = request_.policy.filesystem;
  std::set<std::string> read_only;
  std::set<std::string> read_write;
  for (const std::string& path : filesystem.read_only) {
    TRY(CheckRequired(request_, path, request_.image->kind(path)));
    read_only.insert(path);
  }
  // OpenShell's additions, and what else /usr means where its parts are not merged.
  for (const char* path : {"/usr", "/lib", "/etc", "/app", "/var/log", "/proc", "/bin", "/sbin",
                           "/lib32", "/lib64", "/libx32"}) {
    if (request_.image->kind(path) != PathKind::kMissing) read_only.insert(path);
  }
  for (const std::string& path : request_.extra_read_only)
    read_only.insert(policy::CleanPath(path));
  for (const std::string& path : filesystem.read_write) {
    read_write.insert(path);
    if (IsPrivate(path) || Beneath(path, request_.checkout)) continue;
    if (request_.image->kind(path) == PathKind::kMissing) {
      plan_.notes.push_back(path + ": not in the image");
      continue;
    }
    Add({.kind = Kind::kWritable, .target = path});
  }
  if (plan_.namespaces().owns_system) {
    for (const std::string& path : request_.image->system_directories) {
      if (read_write.insert(path).second) Add({.kind = Kind::kWritable, .target = path});
    }
  }
  PlanLandlock(read_only, read_write);
  return Ok();
}

void Tree::Masks() {
  std::vector<std::string> also = request_.host_secrets;
  for (const std::string& path : installed_) {
    std::vector<std::string> more = InstallationSecrets(path);
    also.insert(also.end(), more.begin(), more.end());
  }
  for (const std::string& path : SecretPaths(tree_.shown(), host_, also)) {
    if (Beneath(path, request_.checkout)) continue;
    PathKind kind = host_.kind(path);
    Add({.kind = Kind::kMask, .target = path, .is_directory = kind == PathKind::kDirectory});
  }
}

Result<SandboxPlan> Tree::Plan() {
  plan_.notes = request_.notes;
  PlanIds();
  if (request_.image) {
    PlanImage();
    TRY(PlanImagePaths());
    TRY(PlanRepository(request_, host_, &tree_, &plan_));
  } else {
    PlanBase();
    PlanEtc();
    PlanDevices();
    TRY(PlanPolicyPaths());
    TRY(PlanRepository(request_, host_, &tree_, &plan_));
    Masks();
  }
  TRY(PlanWorkspace());
  Add({.kind = Kind::kReadOnly, .target = "/"});

  plan_.checkout = request_.copied_to.empty() ? request_.checkout : request_.copied_to;
  plan_.workdir = request_.checkout;
  plan_.workspace_files = request_.workspace_files;
  plan_.argv = request_.argv;
  for (const auto& [name, value] : request_.env) plan_.env.push_back(name + "=" + value);
  plan_.namespaces().layers_on_disk = !host_.layers_in_memory;
  plan_.limits = request_.limits;
  const int64_t memory_bytes = plan_.limits.memory_bytes;
  if (plan_.limits.lasting && memory_bytes > 0 && !plan_.namespaces().layers_on_disk) {
    // With the inodes that fit (InodesOf), the files take at most 15/16 of the memory.
    plan_.limits.disk_bytes = std::min(plan_.limits.disk_bytes, memory_bytes / 4 * 3);
  }
  plan_.namespaces().probes = request_.probes;
  plan_.namespaces().scratch_places = host_.scratch_places;
  plan_.namespaces().captured_ports = CapturedPorts(request_.policy);
  return std::move(plan_);
}

}  // namespace

Result<SandboxPlan> PlanSandbox(const SandboxRequest& request, const HostView& host) {
  if (request.isolation == Isolation::kLandlock) return PlanLandlock(request, host);
  return Tree(request, host).Plan();
}

}  // namespace sandbox
