// SPDX-License-Identifier: Apache-2.0
#include "run/environment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "gateway/gateway.h"
#include "report/agent_findings.h"
#include "run/package/provide_package.h"
#include "run/signals.h"
#include "sandbox/host.h"
#include "sandbox/mask.h"

namespace run {
namespace {

constexpr std::chrono::minutes kInstallLimit{15};
constexpr char kPath[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr char kAptConfig[] = "/.config/apt.conf";
// The directory in the home where package managers put programs.
constexpr char kOwnPrograms[] = "/.local/bin";

std::string Directory(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

// The places in `first`, then those in `second` that it has not.
std::string JoinSearchPaths(const std::string& first, const std::string& second) {
  std::string joined = first;
  for (size_t from = 0; from < second.size();) {
    size_t colon = std::min(second.find(':', from), second.size());
    std::string place = second.substr(from, colon - from);
    if ((":" + joined + ":").find(":" + place + ":") == std::string::npos) {
      joined += (joined.empty() ? "" : ":") + place;
    }
    from = colon + 1;
  }
  return joined;
}

bool IsProgram(const std::string& path, const RunImage* image) {
  return image != nullptr ? image->root.IsProgram(path) : ::access(path.c_str(), X_OK) == 0;
}

// The image as a host whose every link leads straight to where it ends, and without lists.
sandbox::HostView ViewOf(const RunImage& image) {
  using sandbox::PathKind;
  auto real = [&image](const std::string& path) {
    Result<std::string> found = image.root.RealPath(path);
    return found.ok() ? std::move(found).value() : std::string();
  };
  sandbox::HostView view;
  view.kind = [&image, real](const std::string& path) {
    std::string end = real(path);
    return end.empty()   ? PathKind::kMissing
           : end != path ? PathKind::kSymlink
                         : image.root.Kind(path);
  };
  view.link = real;
  view.real = real;
  view.list = [](const std::string&) { return std::vector<std::string>(); };
  view.head = [](const std::string&) { return std::string(); };
  view.owner = [](const std::string&) { return uid_t{0}; };
  view.mode = [](const std::string&) { return mode_t{0755}; };
  return view;
}

Error NotInstalled(const agent::AgentDescription& agent, const RunImage* image) {
  std::string what = "the agent " + agent.name + " is not installed";
  if (image != nullptr) return {Code::kNotFound, what + " in the image: no " + agent.program};
  const char* where = agent.program.front() == '/' ? "" : " on the PATH";
  return {Code::kNotFound, what + ": no " + agent.program + where, agent.install};
}

// Returns the directory that holds the package's node_modules/.bin, canonical.
Result<std::string> PackageTree(const AgentProgram& program) {
  const std::string modules = program.package.substr(0, program.package.rfind('/'));
  return sys::RealPath(modules.substr(0, modules.rfind('/')));
}

Result<AgentProgram> FindPackaged(const agent::AgentDescription& agent, const Request& request,
                                  const RunImage* image) {
  if (image != nullptr) {
    return Error{
        Code::kUnsupported,
        "the agent " + agent.name + " is a package, which only a run without an image installs",
        "put the agent into the image"};
  }
  AgentProgram program;
  const std::string workdir = TRY(ResolveNamedDirectory(request.workdir));
  const std::optional<CheckoutPath> checkout = FindCheckoutPath(workdir);
  program.package =
      TRY(ProvidePackage({*agent.package, DefaultPackages(), checkout ? checkout->top : workdir,
                          TextOf(request.isolation), request.ca_file, !request.plan_only,
                          [] { return PendingEnd().has_value(); }},
                         Deadline::After(kInstallLimit)));
  program.found = program.package + "/" + agent.program;
  program.known_agent = true;
  if (request.plan_only && !sys::Exists(program.package)) {
    logging::Info("a run would install the agent",
                  {{"package", agent.package->name}, {"version", agent.package->version}});
    return program;
  }
  const std::string tree = TRY(PackageTree(program));
  Result<std::string> real = sys::RealPath(program.found);
  // An install script can put a link to any program of the host in its place.
  if (!real.ok() || !sandbox::Beneath(real.value(), tree)) {
    return Error{Code::kNotFound,
                 "the package " + agent.package->name + " has no program " + agent.program};
  }
  program.path = std::move(real).value();
  return program;
}

// Returns where programs connect without the proxy: to this machine, by every address that a server
// of the agent's own may report. Each entry is there for programs that know no other form of it;
// Python's urllib, for one, compares texts, and knows neither networks nor IPv6 without brackets.
std::string Unproxied(const std::string& host_name) {
  std::string names =
      "127.0.0.1,localhost,::1,[::1],127.0.0.0/8,127.0.0.2,127.0.1.1,0.0.0.0,::,[::]";
  return host_name.empty() ? names : names + "," + host_name;
}

constexpr char kPhpScan[] = "PHP_INI_SCAN_DIR";
constexpr char kPhpDirectory[] = ".config/php";
// Each comes before the tool's configuration, which may name the authority of a company: the
// gateway is trusted all the same. Tools that take no such variable have files, TrustFiles().
constexpr const char* kBundleVariables[] = {"SSL_CERT_FILE",
                                            "REQUESTS_CA_BUNDLE",
                                            "CURL_CA_BUNDLE",
                                            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
                                            "GIT_SSL_CAINFO",
                                            "npm_config_cafile",
                                            "PIP_CERT",
                                            "CARGO_HTTP_CAINFO",
                                            "COMPOSER_CAFILE",
                                            "BUNDLE_SSL_CA_CERT",
                                            "CONDA_SSL_VERIFY",
                                            "MAMBA_SSL_VERIFY",
                                            "HEX_CACERTS_PATH",
                                            "AWS_CA_BUNDLE",
                                            "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE"};

// Those about the way out, and about who is trusted there.
void AddNetworkVariables(const sandbox::Places& places,
                         std::vector<std::pair<std::string, std::string>>* variables) {
  const std::string proxy =
      std::string("http://") + sandbox::kProxyAddress + ":" + std::to_string(sandbox::kProxyPort);
  for (const char* name :
       {"ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "grpc_proxy"}) {
    variables->emplace_back(name, proxy);
  }
  for (const char* name : {"NO_PROXY", "no_proxy"}) {
    variables->emplace_back(name, Unproxied(places.host_name));
  }
  for (const char* name : {"NODE_EXTRA_CA_CERTS", "DENO_CERT"}) {
    variables->emplace_back(name, places.ca_file);
  }
  for (const char* name : kBundleVariables) variables->emplace_back(name, places.ca_bundle);
  // The one variable that every Java reads, whatever starts it.
  std::string java = std::string("-Djavax.net.ssl.trustStore=") + places.ca_java;
  // Java does not read TMPDIR.
  if (places.temporary != "/tmp") java += " -Djava.io.tmpdir=" + places.temporary;
  variables->emplace_back("JAVA_TOOL_OPTIONS", std::move(java));
  // An empty first directory is PHP's own.
  variables->emplace_back(kPhpScan, ":" + places.home + "/" + kPhpDirectory);
  // The C library's own resolver: no name service answers over UDP there.
  if (!places.names_over_udp) variables->emplace_back("RES_OPTIONS", "use-vc timeout:1 attempts:1");
}

// What makes package managers install programs into `home`, since the system's directories are
// read-only, and lets pip do so where the system is marked as managed by another (PEP 668).
std::vector<std::pair<std::string, std::string>> InstallerVariables(const std::string& home) {
  return {{"npm_config_prefix", home + "/.local"},
          {"PIP_BREAK_SYSTEM_PACKAGES", "1"},
          {"CARGO_INSTALL_ROOT", home + "/.local"},
          {"GOBIN", home + kOwnPrograms}};
}

}  // namespace

std::string SearchPath(const RunImage* image) {
  if (image == nullptr) return sys::Environment("PATH").value_or("");
  return image->search_path.empty() ? kPath : image->search_path;
}

std::string FindProgram(const std::string& name, const RunImage* image) {
  std::string places = SearchPath(image);
  for (size_t from = 0; from <= places.size();) {
    size_t colon = std::min(places.find(':', from), places.size());
    std::string candidate = places.substr(from, colon - from) + "/" + name;
    if (candidate[0] == '/' && IsProgram(candidate, image)) return candidate;
    from = colon + 1;
  }
  return {};
}

Result<AgentProgram> FindAgent(const agent::AgentDescription* agent, const Request& request,
                               const RunImage* image) {
  AgentProgram program;
  if (agent != nullptr && agent->package) return FindPackaged(*agent, request, image);
  const std::vector<std::string>& command = request.command;
  if (agent == nullptr && command.empty()) return program;  // PlanCommand() says what is missing.
  const std::string name = agent != nullptr ? agent->program : command.front();
  std::string found;
  if (name.find('/') == std::string::npos) {
    found = FindProgram(name, image);
  } else if (name[0] == '/') {
    found = name;
  }
  std::string place = found.empty() ? "/nonexistent" : found;
  Result<std::string> real = image != nullptr ? image->root.RealPath(place) : sys::RealPath(place);
  if (!real.ok()) {
    if (agent == nullptr) return program;
    return NotInstalled(*agent, image);
  }
  program.path = real.value();
  program.found = found;
  program.known_agent = agent != nullptr;
  return program;
}

std::vector<sandbox::WorkspaceFile> TrustFiles(const sandbox::Places& places) {
  const std::string& bundle = places.ca_bundle;
  // Its user for downloads is not mapped in the sandbox.
  const std::string apt =
      "APT::Sandbox::User \"root\";\nAcquire::https::CAInfo \"" + bundle + "\";\n";
  const std::string java = "systemProp.javax.net.ssl.trustStore";
  return {{".wgetrc", "ca_certificate = " + bundle + "\n"},
          {std::string(kAptConfig).substr(1), apt},
          {".hgrc", "[web]\ncacerts = " + bundle + "\n"},
          {std::string(kPhpDirectory) + "/trust.ini",
           "openssl.cafile = " + bundle + "\ncurl.cainfo = " + bundle + "\n"},
          {".gradle/gradle.properties", java + "=" + places.ca_java + "\n" + java + "Type=JKS\n" +
                                            java + "Password=changeit\n"}};
}

Programs FindRunPrograms(const AgentProgram& program, const policy::FilesystemPolicy& policy,
                         const std::string& checkout, const RunImage* image,
                         const sandbox::HostView& host) {
  ProgramSearch search;
  search.search_path = JoinSearchPaths(program.package, SearchPath(image));
  search.started = program.found;
  search.known_agent = program.known_agent;
  search.checkout = checkout;
  if (!program.package.empty()) {
    // FindPackaged() has found it; a path that cannot be is beneath nothing.
    Result<std::string> tree = PackageTree(program);
    search.package = tree.ok() ? std::move(tree).value() : program.package;
  }
  for (const auto* paths : {&policy.read_only, &policy.read_write}) {
    for (const std::string& path : *paths) {
      if (path != "/") search.shown.push_back(path);
    }
  }
  if (image != nullptr) return FindPrograms(search, ViewOf(*image));
  search.secrets = HostSecrets();
  search.tool_caches = {"/opt/hostedtoolcache"};
  for (const char* name : {"RUNNER_TOOL_CACHE", "AGENT_TOOLSDIRECTORY"}) {
    std::string cache = sys::Environment(name).value_or("");
    if (cache.starts_with('/') && cache != "/") search.tool_caches.push_back(std::move(cache));
  }
  search.rustup_home = sys::Environment("RUSTUP_HOME").value_or("");
  return FindPrograms(search, host);
}

void AddImageVariables(const RunImage& image,
                       std::vector<std::pair<std::string, std::string>>* variables) {
  for (const auto& [name, value] : image.env) {
    auto known = std::find_if(variables->begin(), variables->end(),
                              [&](const auto& one) { return one.first == name; });
    if (known == variables->end()) {
      variables->emplace_back(name, value);
    } else if (name == kPhpScan) {
      known->second = value + known->second;  // The image's directories, and then ours.
    }
  }
}

std::vector<std::pair<std::string, std::string>> AgentEnvironment(
    const Request& request, const agent::AgentPlan& plan, const AgentProgram& program,
    const Programs& programs, const std::vector<std::pair<std::string, std::string>>& credentials,
    const RunImage* image, const sandbox::Places& places) {
  std::string path =
      image != nullptr ? SearchPath(image) : JoinSearchPaths(programs.search_path, kPath);
  bool bash = image == nullptr || image->root.IsProgram("/bin/bash");
  // A known agent's own directory holds what it starts by name.
  if (program.known_agent) {
    path = JoinSearchPaths(Directory(program.path), path);
  }
  path = JoinSearchPaths(places.home + kOwnPrograms, path);
  const bool installs = image != nullptr && !image->system_directories.empty();
  const std::string user = installs ? "root" : places.user;
  std::vector<std::pair<std::string, std::string>> variables = {
      {"PATH", path},
      {"HOME", places.home},
      {"USER", user},
      {"LOGNAME", user},
      {"SHELL", bash ? "/bin/bash" : "/bin/sh"},
      {"TERM", "dumb"},
      {"LANG", "C.UTF-8"},
      {"TMPDIR", places.temporary},
      {"CI", "true"},
      {"OPENSHELL_SANDBOX", "1"},
      {"NODE_USE_ENV_PROXY", "1"},
      {"GIT_TERMINAL_PROMPT", "0"},
      {"AGENTIC_CI_FINDINGS", places.checkout + "/" + report::kAgentFindingsFile},
  };
  AddNetworkVariables(places, &variables);
  if (installs) {
    variables.emplace_back("DEBIAN_FRONTEND", "noninteractive");
    variables.emplace_back("APT_CONFIG", places.home + kAptConfig);
  }
  // Its check at the end of a program traces the program, which the system-call filter refuses.
  // AddressSanitizer reads this variable too.
  variables.emplace_back("LSAN_OPTIONS", "detect_leaks=0");
  auto set = [&](const std::string& name, const std::string& value) {
    for (auto& [known, old] : variables) {
      if (known == name) {
        old = value;
        return;
      }
    }
    variables.emplace_back(name, value);
  };
  for (const auto& [name, value] : programs.variables) variables.emplace_back(name, value);
  // The image replaces none of our own variables: proxies, certificates, HOME.
  if (image != nullptr) AddImageVariables(*image, &variables);
  for (const auto& [name, value] : InstallerVariables(places.home)) {
    const bool known = std::any_of(variables.begin(), variables.end(),
                                   [&](const auto& one) { return one.first == name; });
    if (!known) variables.emplace_back(name, value);
  }
  for (const auto& [name, value] : plan.env) set(name, value);
  for (const auto& [name, value] : credentials) set(name, value);
  for (const auto& [name, value] : request.env) set(name, value);
  return variables;
}

std::vector<std::string> HostSecrets() {
  std::vector<std::string> paths;
  for (const char* name :
       {"RUNNER_TEMP", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_OUTPUT",
        "GITHUB_STEP_SUMMARY", "GITHUB_EVENT_PATH", "GOOGLE_APPLICATION_CREDENTIALS",
        "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "KUBECONFIG", "DOCKER_CONFIG",
        "SSH_AUTH_SOCK", "NPM_CONFIG_USERCONFIG", "NETRC", "GNUPGHOME"}) {
    std::optional<std::string> value = sys::Environment(name);
    if (value && value->starts_with('/')) paths.push_back(std::move(*value));
  }
  // Programs lie beside them.
  std::string cargo = sys::Environment("CARGO_HOME").value_or("");
  if (cargo.starts_with('/')) {
    for (const char* name : {"/credentials", "/credentials.toml"}) paths.push_back(cargo + name);
  }
  return paths;
}

Result<std::optional<sandbox::ScratchDirectory>> MakeScratch(const Request& request,
                                                             const std::string& checkout) {
  if (request.isolation != sandbox::Isolation::kLandlock)
    return std::optional<sandbox::ScratchDirectory>();
  using Use = sandbox::ScratchDirectory::Use;
  sandbox::HostView host = sandbox::ReadHost(checkout);
  return std::optional(TRY(sandbox::ScratchDirectory::Make(
      host.scratch_places, host.free_id ? Use::kEntered : Use::kFiles)));
}

Result<Fd> OpenInput(const std::string& text) {
  if (text.empty()) return sys::Open("/dev/null", O_RDONLY);
  Fd file(::memfd_create("prompt", MFD_CLOEXEC));
  if (!file.valid()) return Errno("memfd_create");
  TRY(sys::WriteAll(file.get(), text));
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return Errno("lseek");
  return file;
}

Status Connect(sandbox::Sandbox& sandbox, gateway::Gateway& gateway) {
  TRY(gateway.AwaitReady().Context("starting the gateway"));
  TRY(sandbox.AddProcess(gateway.pid()).Context("limiting the gateway"));
  for (GatewaySocket& served : sandbox.TakeGatewaySockets()) {
    TRY(gateway.Serve(std::move(served)).Context("starting the gateway"));
  }
  return Ok();
}

Result<caller::ProgramLinks> FollowLinks(const policy::Policy& policy,
                                         const sandbox::Sandbox& sandbox) {
  Fd root = TRY(sandbox.OpenRoot());
  caller::ProgramLinks links = caller::FollowProgramLinks(policy, root.get());
  for (const std::string& warning : links.warnings) {
    logging::Warn("a program's link is not followed", {{"why", warning}});
  }
  return links;
}

change::ChangedTree TreeOf(const sandbox::Sandbox& sandbox, const std::string& report_dir,
                           const std::vector<sandbox::WorkspaceFile>& replaced) {
  change::ChangedTree tree{sandbox.upper()};
  for (const sandbox::WorkspaceFile& file : replaced) {
    tree.replaced[file.path] = file.gone ? std::nullopt : std::optional(file.content.get());
  }
  tree.meanwhile.since = sandbox.began();
  tree.taken_out = report::kAgentFindingsFile;
  tree.taken_out_bytes_max = report::kAgentFindingsBytesMax;
  if (!sandbox.copied()) return tree;
  tree.copied = *sandbox.copied();
  tree.not_copied = {report_dir};
  if (sandbox.scratch().empty()) return tree;
  tree.not_copied.push_back(sandbox.scratch());
  tree.seen_at = sandbox::PlacesIn(sandbox.scratch()).checkout;
  return tree;
}

}  // namespace run
