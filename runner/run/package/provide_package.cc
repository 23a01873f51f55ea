// SPDX-License-Identifier: Apache-2.0
#include "run/package/provide_package.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

#include "base/child.h"
#include "base/log.h"
#include "base/process.h"
#include "base/program_places.h"
#include "base/sys.h"
#include "base/tree.h"
#include "codec/data/digest.h"
#include "codec/text/neutral.h"

namespace run {
namespace {

constexpr char kPrograms[] = "/node_modules/.bin";
constexpr char kPart[] = "part.";
constexpr char kLifetime[] = "20m";  // The lifetime of a sandbox whose maker was killed.
constexpr size_t kLogBytesMax = size_t{16} << 20;
constexpr size_t kShownBytesMax = 400;
constexpr size_t kAnswerBytesMax = 4096;
constexpr std::chrono::seconds kAskTimeout{60};
constexpr std::chrono::minutes kDeleteLimit{1};  // Also where the installation had no time left.
constexpr std::chrono::milliseconds kLockPause{100};
constexpr std::chrono::milliseconds kLookAgain{100};

// Returns the installation's part of this environment: the way to the registries, and where things
// are. Nothing of the CI's, whose event is not what the package is about.
std::vector<std::pair<std::string, std::string>> Environment() {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const char* name :
       {"HOME", "TMPDIR", "LANG", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR",
        "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "AGENTIC_CI_PROXY_BY_NAME",
        "SSL_CERT_FILE", "NPM_CONFIG_REGISTRY", "npm_config_registry", "NPM_CONFIG_USERCONFIG"}) {
    std::optional<std::string> value = sys::Environment(name);
    if (value) variables.emplace_back(name, std::move(*value));
  }
  return variables;
}

// Returns the key of what a lock file stands for on a machine of this kind.
std::string KeyOf(const agent::Package& package) {
  utsname machine{};
  ::uname(&machine);
  return codec::Sha256Hex(package.name + "@" + package.version + "\n" + machine.machine + "\n" +
                          package.lock);
}

bool IsDirectory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// One installation at a time: the others wait for its end.
Result<Fd> LockStore(const PackageRequest& request, Deadline deadline) {
  Fd lock = TRY(sys::Open(request.store + "/lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return Errno("flock");
    if (deadline.passed() || request.gives_up()) {
      return Error{Code::kTemporary, "another run is still installing the package"};
    }
    std::this_thread::sleep_for(kLockPause);
  }
  return lock;
}

// Others could put their programs in place of the package's.
Result<Fd> OpenStore(const std::string& store) {
  TRY(sys::MakeDirectories(store, 0755));
  Fd directory = TRY(sys::Open(store, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  struct stat status {};
  if (::fstat(directory.get(), &status) != 0) return Errno("fstat");
  if (status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error{Code::kRefused, store + " is not this user's alone"};
  }
  return directory;
}

class Installation {
 public:
  Installation(const PackageRequest& request, std::string directory, Deadline deadline)
      : request_(request),
        directory_(std::move(directory)),
        name_("package-" + directory_.substr(directory_.rfind('.') + 1)),
        deadline_(deadline),
        places_(sys::Environment("PATH").value_or(""), request.checkout),
        gives_up_(request.gives_up) {}

  Installation(const Installation&) = delete;
  Installation& operator=(const Installation&) = delete;
  // Deletes the sandbox, if there is one.
  ~Installation() {
    gives_up_ = [] { return false; };
    (void)Run({"sandbox", "delete", name_}, Deadline::After(kDeleteLimit));
  }

  // Leaves node_modules in tree().
  Status Install() {
    const std::string project = directory_ + "/project";
    TRY(sys::MakeDirectories(project + "/.agentic-ci"));
    TRY(sys::MakeDirectories(tree()));
    const std::string manifest = TRY(agent::ManifestOf(request_.package));
    TRY(sys::WriteFile(project + "/package.json", manifest));
    TRY(sys::WriteFile(project + "/package-lock.json", request_.package.lock));
    TRY(sys::WriteFile(project + "/.agentic-ci/config.yml", "ecosystems: [node]\n"));
    // The registry alone: what the default policy opens beside it is for agents.
    TRY(sys::WriteFile(project + "/.agentic-ci/openshell-policy.yml",
                       "defaults: none\nendpoints: []\n"));
    const std::string registry = TRY(Registry());
    std::vector<std::string> create = {"sandbox",      "create",
                                       "--name",       name_,
                                       "--workdir",    project,
                                       "--policy-ref", "worktree",
                                       "--report-dir", directory_ + "/report",
                                       "--isolation",  request_.isolation,
                                       "--ttl",        kLifetime,
                                       "--env",        "npm_config_registry=" + registry};
    if (!request_.ca_file.empty()) create.insert(create.end(), {"--ca-file", request_.ca_file});
    TRY(Run(create, deadline_));
    TRY(Run({"sandbox", "exec", name_, "--", "npm", "ci", "--omit=dev", "--no-audit", "--no-fund",
             "--loglevel=error"},
            deadline_));
    TRY(Run({"sandbox", "get", name_, "node_modules", tree() + "/node_modules"}, deadline_));
    if (IsDirectory(tree() + kPrograms)) return Ok();
    return Error{Code::kSetup, request_.package.name + " has no programs"};
  }

  std::string tree() const { return directory_ + "/tree"; }

 private:
  // Returns the registry that the host's npm gets packages from.
  Result<std::string> Registry() {
    Process::Command command{.argv = {"npm", "config", "get", "registry"},
                             .environment = Environment(),
                             .ends_with_starter = true,
                             .with_errors = false};
    Process process = TRY(Process::Start(places_, command));
    std::string answer = process.Finish(kAnswerBytesMax, Deadline::After(kAskTimeout));
    while (!answer.empty() && answer.back() == '\n') answer.pop_back();
    if (answer.starts_with("https://") && codec::NeutralLine(answer) == answer) return answer;
    return Error{Code::kSetup, "npm names no registry", "npm config get registry"};
  }

  // This program with other arguments.
  Status Run(const std::vector<std::string>& arguments, Deadline deadline) {
    std::optional<std::string> own = sys::ReadLink("/proc/self/exe");
    if (!own) return Error{Code::kIo, "/proc/self/exe cannot be read"};
    const size_t slash = own->rfind('/');
    const std::string log_path = directory_ + "/log";
    Fd log = TRY(sys::Open(log_path, O_RDWR | O_CREAT | O_TRUNC, 0600));
    Child::Command command{
        .argv = {own->substr(slash + 1)}, .environment = Environment(), .log = log.get()};
    command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
    ProgramPlaces own_place(own->substr(0, slash) + ":" + places_.search_path(), request_.checkout);
    Child child = TRY(Child::Start(own_place, command));
    const int status = TRY(Await(child, deadline));
    if (status == 0) return Ok();
    std::string said = TRY(sys::ReadFile(log_path, kLogBytesMax));
    while (!said.empty() && said.back() == '\n') said.pop_back();
    // The reason comes first; npm goes on with how to use it.
    if (said.size() > kShownBytesMax) said.replace(kShownBytesMax, std::string::npos, "...");
    return Error{Code::kSetup, "'" + arguments[0] + " " + arguments[1] + "' ended with " +
                                   std::to_string(status) + ": " + codec::NeutralLine(said)};
  }

  Result<int> Await(Child& child, Deadline deadline) const {
    for (;;) {
      Result<int> status = child.Wait(std::min(deadline, Deadline::After(kLookAgain)));
      const bool waits = !status.ok() && status.error().code == Code::kTemporary;
      if (!waits || deadline.passed()) return status;
      if (gives_up_()) return Error{Code::kTemporary, "the installation was given up"};
    }
  }

  const PackageRequest& request_;
  const std::string directory_;
  const std::string name_;
  const Deadline deadline_;
  const ProgramPlaces places_;
  std::function<bool()> gives_up_;
};

}  // namespace

std::string DefaultPackages() {
  if (std::optional<std::string> store = sys::Environment("AGENTIC_CI_STORE")) {
    return *store + "/packages";
  }
  // Root's agents may be another user in the sandbox, who cannot enter root's home directory.
  if (::geteuid() == 0) return "/var/cache/agentic-ci/packages";
  std::optional<std::string> cache = sys::Environment("XDG_CACHE_HOME");
  if (cache && cache->starts_with('/')) return *cache + "/agentic-ci/packages";
  if (std::optional<std::string> home = sys::Environment("HOME")) {
    return *home + "/.cache/agentic-ci/packages";
  }
  // The place is chosen as for the store of images (image/store.h).
  return "/var/tmp/agentic-ci-packages-" + std::to_string(::geteuid());
}

Result<std::string> ProvidePackage(const PackageRequest& request, Deadline deadline) {
  const std::string key = KeyOf(request.package);
  const std::string place = request.store + "/" + key;
  Fd store = TRY(OpenStore(request.store));
  if (IsDirectory(place) || !request.installs) return place + kPrograms;
  Fd lock = TRY(LockStore(request, deadline));
  if (IsDirectory(place)) return place + kPrograms;
  // Their maker was killed: a living one would have the lock.
  const std::vector<std::string> names = TRY(sys::DirectoryNames(store.get()));
  for (const std::string& name : names) {
    if (!name.starts_with(kPart)) continue;
    { Installation left(request, request.store + "/" + name, deadline); }  // It ends its sandbox.
    (void)sys::RemoveTree(store.get(), name);
  }
  std::string part = request.store + "/" + kPart + "XXXXXX";
  if (::mkdtemp(part.data()) == nullptr) return Errno("mkdtemp");
  logging::Info("installing the agent", {{"package", request.package.name},
                                         {"version", request.package.version},
                                         {"lockfile", request.package.lockfile}});
  Status installed = Ok();
  {
    Installation installation(request, part, deadline);
    installed = installation.Install();
    if (installed.ok() && ::rename(installation.tree().c_str(), place.c_str()) != 0) {
      installed = Errno("rename");
    }
  }
  (void)sys::RemoveTree(store.get(), part.substr(part.rfind('/') + 1));
  TRY(std::move(installed).Context("installing " + request.package.name));
  return place + kPrograms;
}

}  // namespace run
