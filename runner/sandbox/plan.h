// SPDX-License-Identifier: Apache-2.0
// Everything the sandbox will do, decided before anything is started. A plan is a value: it can be
// printed (`--plan-only`), tested without a kernel, and carried out by sandbox/sandbox.h without
// further decisions.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/shared_text.h"
#include "policy/model/policy.h"
#include "sandbox/host.h"
#include "sandbox/isolation.h"
#include "sandbox/limit/limit.h"
#include "sandbox/network/network.h"

namespace sandbox {

// The sandbox's own places.
inline constexpr char kHome[] = "/sandbox";
// The directory in which runtimes read about the processors, shown in every sandbox that is not an
// image's.
inline constexpr char kProcessors[] = "/sys/devices/system/cpu";
inline constexpr size_t kCapturedPortsMax = 32;
inline constexpr char kCaFile[] = "/etc/openshell-tls/openshell-ca.pem";
inline constexpr char kCaBundleFile[] = "/etc/openshell-tls/ca-bundle.pem";
inline constexpr char kCaJavaFile[] = "/etc/openshell-tls/ca-bundle.jks";

// The places where the agent finds what is its own.
struct Places {
  std::string home = kHome;
  std::string temporary = "/tmp";
  std::string ca_file = kCaFile;
  std::string ca_bundle = kCaBundleFile;
  std::string ca_java = kCaJavaFile;
  bool names_over_udp = true;
  std::string checkout = {};  // The place where it works; by default where that is on the host.
  // The user that the agent is, and the name of its machine.
  std::string user = "sandbox";
  std::string host_name = "sandbox";
};
// Returns the places of tier landlock, in the run's directory on the host.
Places PlacesIn(const std::string& scratch, const HostView& host = {});

// One step of building the sandbox's file tree. Host paths are as on the host; targets are as the
// agent will see them; scratch paths lie on the one size-limited memory file system of the run.
struct MountStep {
  enum class Kind {
    kLayer,      // source: a layer of the image, the uppermost first
    kImage,      // the layers, laid over each other, are the root from here on; first step but them
    kDirectory,  // target, mode
    kFile,       // target, content, mode: a small file with this content
    kUpperFile,  // target, content: such a file laid over the overlay scratch/<scratch> at source
    kOverFile,   // target, content: such a file bound over the host's at target
    kSymlink,    // target -> source
    kBind,       // source -> target: a regular file, read-only
    kShown,      // source -> target: a directory, read-only, without what its sockets lead to
    kDevice,     // source -> target: one device node, writable
    kOverlay,    // source (host directory) under scratch/<scratch> at target
    kWorkspace,  // the checkout's own overlay at target; source is the checkout
    kScratch,    // scratch/<scratch> at target, writable
    kProc,       // a /proc of the sandbox's own processes
    kDevPts,     // a pseudo-terminal file system of its own
    kEmpty,      // target is shown as an empty directory
    kMask,       // target is replaced by an empty, unreadable file or directory
    kWritable,   // target stays writable when what is around it is made read-only
    kReadOnly,   // target is made read-only from here on
  };
  // The way to the source of kBind, kShown, kOverlay, kWorkspace and kLayer.
  enum class Source {
    kPath,    // By its path, as the sandbox's user.
    kOpened,  // The runner, which is root, opens it: that user may not be able to walk the path.
    kMapped,  // Likewise, and what belongs to `owner` there is that user's to the agent.
  };
  Kind kind;
  std::string target;
  std::string source = {};
  std::string scratch = {};
  SharedText content = {};
  mode_t mode = 0755;
  bool is_directory = true;  // kMask: what stands there.
  Source from = Source::kPath;
  uid_t owner = 0;  // kMapped; the group has the same number.
  // For kOverlay and kMapped: if ids cannot be mapped, files that everybody may read are shown with
  // the host's ids, and cannot be changed.
  bool or_unmapped = false;
};

// A file that the sandbox sees instead of the host's, relative to the checkout unless said
// otherwise.
struct WorkspaceFile {
  std::string path;
  SharedText content;
  bool gone = false;  // In the checkout only: nothing is there.
};

struct LandlockRule {
  std::string path;
  bool writable = false;
  bool listed = false;  // No more than the names in its directories.
};

// The image whose layers are the sandbox's root, in place of what the host has.
struct ImageRequest {
  std::vector<std::string> layers;  // Unpacked ones on the host, the uppermost first.
  uid_t owner = 0;                  // The owner of their files on the host, if the runner is root.
  uid_t uid = 0;                    // The agent's ids; if 0, an unused one.
  gid_t gid = 0;
  // Directories of the image, without links, that the agent may change beyond the policy's. If
  // there are any, it is the sandbox's root, without a capability, to which changes of owners
  // appear to succeed: package managers install then.
  std::vector<std::string> system_directories;
  // Returns the kind of what stands at an absolute path of the image in the end, links followed
  // inside it.
  std::function<PathKind(const std::string&)> kind;
};

// The caller's request; everything is decided from this and from what the host looks like.
struct SandboxRequest {
  Isolation isolation = Isolation::kNamespaces;
  std::string scratch;  // kLandlock: the run's own directory on the host, without links.
  policy::Policy policy;
  bool probes = false;   // Only shows that a sandbox starts here: no checkout is copied for it.
  std::string checkout;  // Canonical absolute path.
  std::string copied_to = {};  // The copy of it that is shown there instead (kNamespaces).
  // The first part of the checkout that belongs to others than the checkout itself, as a reason to
  // copy it; empty if nothing does.
  std::string foreign;
  std::optional<ImageRequest> image;
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;
  // The places where the agent and other programs are installed.
  std::vector<std::string> extra_read_only;
  std::vector<std::string> notes;         // Says which of them are left out, and why.
  std::vector<std::string> host_secrets;  // Paths on the host that must never be seen.
  std::vector<WorkspaceFile> workspace_files;
  std::vector<WorkspaceFile> home_files;  // Below the agent's home, which is otherwise empty.
  // Host directories outside the checkout that hold its git repository. Git writes to those in
  // `repository_layers` (kNamespaces), in the sandbox alone; the others are shown read-only. And
  // files (absolute paths) that take the place of the host's there, or are hidden (kLandlock).
  std::vector<std::string> repository_layers;
  std::vector<std::string> repository_directories;
  std::vector<WorkspaceFile> repository_files;
  std::vector<std::string>
      shown_empty;  // Directories in the checkout that are not the agent's to see.
  // The gateway's certificate authority, PEM; the host's trusted authorities and that one, PEM; the
  // same as a Java key store, absent if none is shown. The texts may be set after the planning.
  SharedText ca_pem = SharedText::Later();
  SharedText ca_bundle = SharedText::Later();
  SharedText ca_java;
  SandboxLimits limits;
};

// What only tier namespaces needs.
struct NamespacePlan {
  std::vector<MountStep> mounts;
  bool idmap_checkout = false;  // The checkout belongs to root: its ids are mapped for the sandbox.
  bool owns_system = false;     // ImageRequest::system_directories has some.
  // The ports of the policy's endpoints, and the web's: those at which connections are captured on
  // a host that cannot capture all. At most kCapturedPortsMax.
  std::vector<uint16_t> captured_ports;
  // If not empty, the reason why the checkout cannot be the workspace's lower layer itself. A copy
  // that belongs to the sandbox's user is, made in the first of `scratch_places` that can be
  // written.
  std::string copy_reason;
  bool probes = false;  // SandboxRequest::probes
  // The writable layers lie on a disk of the host, in the first of `scratch_places` that serves:
  // a memory file system cannot hold them on this kernel.
  bool layers_on_disk = false;
  std::vector<std::string> scratch_places;
  bool watched = true;  // True if the supervisor takes the calls that wait (ConnectWatch).
};

// What only tier landlock needs.
struct LandlockPlan {
  std::string scratch;
  std::vector<WorkspaceFile> scratch_files;  // This program's files there, by absolute paths.
  std::vector<WorkspaceFile> home_files;     // Below the agent's home there.
  bool copies_checkout = true;               // Otherwise the agent gets an empty directory.
  std::vector<std::string> not_copied;       // In the checkout; absolute.
  bool pinned = false;                       // Its processors are its limit (Start decides).
};

struct SandboxPlan {
  uid_t inner_uid = 1000;  // The ids that the agent sees.
  gid_t inner_gid = 1000;
  uid_t host_uid = 0;  // The id of that on the host; never 0.
  gid_t host_gid = 0;
  bool as_root = false;  // True if the runner is root and opens the checkout for the sandbox.
  std::string checkout;
  std::vector<WorkspaceFile> workspace_files;
  std::vector<LandlockRule> landlock;
  bool landlock_required = false;
  std::string workdir;
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "NAME=value"
  SandboxLimits limits;
  std::vector<std::string> notes;  // Says what was left out and why, for the record.
  bool counts_tasks = false;       // True if there is a limit of processes, and no cgroup for it.
  std::variant<NamespacePlan, LandlockPlan> tier;

  // Returns whether the host's processes, network and ids are the agent's, too.
  bool shares_host() const { return std::holds_alternative<LandlockPlan>(tier); }
  // The steps that build its file tree; none where the host's is shown.
  std::span<const MountStep> steps() const {
    return shares_host() ? std::span<const MountStep>() : namespaces().mounts;
  }
  // Of a plan for that tier alone.
  NamespacePlan& namespaces() { return std::get<NamespacePlan>(tier); }
  const NamespacePlan& namespaces() const { return std::get<NamespacePlan>(tier); }
  LandlockPlan& shared_host() { return std::get<LandlockPlan>(tier); }
  const LandlockPlan& shared_host() const { return std::get<LandlockPlan>(tier); }
};

// Fails with kUnsupported where this host or this user cannot give the tier that was asked for, and
// with kInvalid where the policy asks for what cannot be (a required path that does not exist).
Result<SandboxPlan> PlanSandbox(const SandboxRequest& request, const HostView& host);

}  // namespace sandbox
