// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/gateway.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <functional>

#include "backend/openshell/client/host_variables.h"
#include "backend/openshell/client/open_client.h"
#include "backend/openshell/client/rpc_access.h"
#include "backend/openshell/client/rpc_client.h"
#include "base/sys.h"
#include "codec/data/json.h"
#include "codec/text/neutral.h"
#include "codec/text/shell_word.h"
#include "net/url.h"
#include "sandbox/tree_copy.h"
#include "session/shell.h"

namespace openshell {
namespace {

using std::chrono::seconds;

constexpr seconds kStepTime{60};
constexpr seconds kAnswerTime{20};  // A running gateway answers within it.
constexpr seconds kStartTime{60};
constexpr seconds kEndTime{5};
constexpr size_t kSaidBytesMax = 300;
constexpr size_t kNetworkBytesMax = 65536;
constexpr size_t kEntryBytesMax = 65536;
constexpr size_t kLogBytesMax = size_t{4} << 20;
constexpr char kSupervisorImageVariable[] = "OPENSHELL_SUPERVISOR_IMAGE";
constexpr int kAttempts = 5;  // Another process may take the port or the addresses first.

// Waits until `done`, looking again whenever something in `directory` changes. Fails with kIo if
// `child` ends before.
Result<bool> AwaitIn(const std::string& directory, const Child& child,
                     const std::function<bool()>& done, Deadline deadline) {
  Fd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!watch.valid() ||
      ::inotify_add_watch(watch.get(), directory.c_str(), IN_CREATE | IN_MODIFY) < 0) {
    return Errno("inotify " + directory);
  }
  constexpr int kLookMs = 50;  // A socket that begins to listen changes no directory.
  while (!done()) {
    if (deadline.passed()) return Error{Code::kTemporary, "it does not become ready in time"};
    pollfd sources[2] = {{watch.get(), POLLIN, 0}, {child.exit().get(), POLLIN, 0}};
    if (::poll(sources, 2, std::min(kLookMs, deadline.poll_ms())) < 0 && errno != EINTR) {
      return Errno("poll");
    }
    char events[4096];
    while (::read(watch.get(), events, sizeof events) > 0) {
    }
    if (sources[1].revents != 0) return done();
  }
  return true;
}

bool Listens(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  path.copy(address.sun_path, path.size());
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return socket.valid() &&
         ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

Result<int> FreePort() {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (!socket.valid() ||
      ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return Errno("finding a free port");
  }
  return ntohs(address.sin_port);
}

// A TOML basic string; JSON's escapes are among those it has.
std::string Quoted(const std::string& text) { return codec::RenderJsonLine(codec::Json(text)); }

std::string GatewayToml(const std::string& state, const std::string& name, int port,
                        const std::string& supervisor) {
  const std::string pki = state + "/pki";
  std::string toml = "[openshell]\nversion = 1\n[openshell.gateway]\n";
  auto set = [&](const char* key, const std::string& value) {
    toml += std::string(key) + " = " + Quoted(value) + "\n";
  };
  set("bind_address", "127.0.0.1:" + std::to_string(port));
  toml += "compute_drivers = [\"docker\"]\n[openshell.gateway.tls]\n";
  set("cert_path", pki + "/server/tls.crt");
  set("key_path", pki + "/server/tls.key");
  set("client_ca_path", pki + "/ca.crt");
  toml += "[openshell.gateway.mtls_auth]\nenabled = true\n[openshell.gateway.gateway_jwt]\n";
  set("signing_key_path", pki + "/jwt/signing.pem");
  set("public_key_path", pki + "/jwt/public.pem");
  set("kid_path", pki + "/jwt/kid");
  set("gateway_id", name);
  toml += "ttl_secs = 0\n[openshell.drivers.docker]\n";
  set("socket_path", state + "/podman.sock");
  set("sandbox_namespace", name);
  set("network_name", name);
  set("image_pull_policy", "IfNotPresent");
  const std::string image = sys::Environment(kSupervisorImageVariable).value_or("");
  if (!image.empty()) {
    set("supervisor_image", image);
  } else if (!supervisor.empty()) {
    set("supervisor_bin", supervisor);
  }
  set("guest_tls_ca", pki + "/ca.crt");
  set("guest_tls_cert", pki + "/client/tls.crt");
  set("guest_tls_key", pki + "/client/tls.key");
  return toml;
}

// Podman keeps its images where its user has them.
Variables PodmanVariables() {
  Variables variables = HostVariables();
  for (const char* name : {"XDG_CONFIG_HOME", "XDG_DATA_HOME"}) {
    std::optional<std::string> value = sys::Environment(name);
    if (value) variables.emplace_back(name, *value);
  }
  return variables;
}

std::string LastLine(const std::string& log) {
  size_t end = log.find_last_not_of(" \n");
  if (end == std::string::npos) return {};
  size_t begin = log.rfind("Error:", end);
  if (begin == std::string::npos) begin = log.rfind('\n', end) + 1;
  return log.substr(begin, end + 1 - begin);
}

// The number in the two digits of a run's name, of which it has six pairs.
int DigitsOf(const std::string& name, int pair) {
  int number = 0;
  const char* end = name.data() + name.size();
  std::from_chars(end - 2 * (pair + 1), end - 2 * pair, number, 16);
  return number;
}

// The directory of this user's OpenShell configuration.
std::string UsersConfig() {
  std::string home = sys::Environment("XDG_CONFIG_HOME").value_or("");
  if (home.empty()) home = sys::Environment("HOME").value_or("") + "/.config";
  return home + "/openshell";
}

// Secrets go to a gateway.
Status CheckScheme(const net::Url& url) {
  const bool here = net::KindOf(url.host) == net::AddressKind::kLoopback;
  if (url.scheme == "https" || (url.scheme == "http" && here)) return Ok();
  return Error{Code::kUsage, "a gateway on another machine is contacted over https only",
               "--gateway https://..."};
}

Status CheckUrl(const std::string& url, const std::string& tls) {
  const net::Url parsed = TRY(net::ParseUrl(url).Context("--gateway"));
  TRY(CheckScheme(parsed));
  if (parsed.scheme == "http" || !tls.empty()) return Ok();
  return Error{Code::kUsage, "--gateway URL needs client certificates",
               "--gateway-tls DIR, with ca.crt, tls.crt and tls.key"};
}

}  // namespace

Result<std::unique_ptr<Gateway>> Gateway::Start(ProgramPlaces places, int cancel) {
  if (::geteuid() != 0) {
    return Error{Code::kUnsupported,
                 "only root can start OpenShell's gateway with a network of its own, also as root "
                 "of podman's namespaces",
                 "podman unshare --rootless-netns agentic-ci ..."};
  }
  for (const char* program : {"openshell", "openshell-gateway", "podman", "ip", "ssh"}) {
    if (!places.Find(program).empty()) continue;
    return Error{Code::kNotFound, std::string(program) + " is not on the PATH",
                 "see docs/reference/openshell.md for what OpenShell needs here"};
  }
  TRY(CommandLine(places, HostVariables(), cancel).CheckVersion());
  StateDirectory state = TRY(StateDirectory::Make(places));
  CommandLine openshell(std::move(places), VariablesIn(state.path()), cancel);
  std::unique_ptr<Gateway> gateway(new Gateway(std::move(state), std::move(openshell)));
  gateway->invocation_ =
      "XDG_CONFIG_HOME=" + codec::ShellWord(gateway->state().path() + "/config") + " openshell";
  TRY(gateway->StartPodman().Context("starting podman's service"));
  TRY(gateway->MakeNetwork().Context("making the sandbox's network"));
  TRY(gateway->MakeKeys().Context("making the gateway's certificates"));
  TRY(gateway->AwaitPodman().Context("starting podman's service"));
  TRY(gateway->StartService().Context("starting OpenShell's gateway"));
  return gateway;
}

Result<std::unique_ptr<Gateway>> Gateway::Attach(ProgramPlaces places, const std::string& where,
                                                 const std::string& tls, int cancel) {
  const bool is_url = where.find("://") != std::string::npos;
  if (is_url) TRY(CheckUrl(where, tls));
  StateDirectory state = TRY(StateDirectory::Make(places));
  CommandLine openshell(std::move(places), VariablesIn(state.path()), cancel);
  std::unique_ptr<Gateway> gateway(new Gateway(std::move(state), std::move(openshell)));
  TRY(WriteLaterCommand(gateway->state(), where, tls));
  TRY(is_url ? gateway->Register(where, tls, 0) : gateway->CopyRegistered(where));
  gateway->invocation_ =
      (is_url ? "openshell --gateway-endpoint " : "openshell --gateway ") + codec::ShellWord(where);
  TRY(gateway->ChooseClient());
  Error error;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Status answer = gateway->CheckAnswer(kAnswerTime);
    if (answer.ok()) return gateway;
    error = std::move(answer).error();
    // A gateway that refuses a certificate may hang up before its reason is read.
    if (error.code != Code::kIo) break;
  }
  if (error.code == Code::kTemporary) error.hint = gateway->invocation_ + " status";
  // What is asked by gRPC has a hint of its own.
  const bool by_command = error.code == Code::kSetup && !gateway->by_rpc_;
  if (by_command && !is_url) error.hint = "openshell gateway login " + where;
  return error;
}

std::string Gateway::Log() const {
  Result<std::string> log =
      local() ? sys::ReadFile(LogPath(), kLogBytesMax) : Result<std::string>(std::string());
  return log.ok() ? std::move(log).value() : std::string();
}

std::unique_ptr<Client> Gateway::Connect() const {
  return ClientIn(state_.path(), openshell_.places(), openshell_.cancel());
}

// Both generations answer this one question alike, and nothing else may be sent to the wrong one.
Status Gateway::ChooseClient() {
  const Deadline deadline = Deadline::After(kAnswerTime);
  Result<std::string> release = AskRelease(state_.path(), deadline, openshell_.cancel());
  if (release.ok() && IsRpcRelease(release.value())) {
    TRY(WriteWorkspace(state_.path()));
    client_ = Connect();
    by_rpc_ = true;
    return Ok();
  }
  if (!release.ok() && deadline.passed()) return std::move(release).error();
  if (release.ok()) {
    Result<std::string> known = ParseVersion("openshell " + release.value());
    if (!known.ok()) {
      Error error = std::move(known).error();
      return Error{error.code, error.what, "install OpenShell 0.1 where the gateway runs"};
    }
  }
  // The command line may know a way to a gateway that cannot be asked so.
  Result<std::string> installed = openshell_.CheckVersion();
  if (installed.ok()) return Ok();
  if (!release.ok()) {
    return installed.error().code == Code::kNotFound ? release.error() : installed.error();
  }
  Error error = std::move(installed).error();
  error.what = "the gateway is of OpenShell " + release.value() + ": " + error.what;
  return error;
}

Gateway::~Gateway() {
  if (!podman_) return;
  // Not asked to end: it would wait, and what it keeps is removed.
  service_.reset();
  RemoveRemains(openshell_.places(), state_.path(), name());
  podman_.reset();
}

Status Gateway::StartPodman() {
  const std::string socket = state_.path() + "/podman.sock";
  if (socket.size() >= sizeof(sockaddr_un{}.sun_path)) {
    return Error{Code::kUnsupported, socket + " is too long for a socket", "XDG_RUNTIME_DIR=/run"};
  }
  TRY(sys::MakeDirectories(state_.path() + "/networks", 0700));
  Fd log = TRY(sys::Open(state_.path() + "/podman.log", O_WRONLY | O_CREAT | O_APPEND, 0600));
  CommandLine podman(openshell_.places(), PodmanVariables());
  podman_.emplace(TRY(podman.Start(
      PodmanArguments(state_.path(), {"system", "service", "--time=0", "unix://" + socket}), -1,
      log.get(), "podman")));
  return Ok();
}

Status Gateway::AwaitPodman() {
  const std::string socket = state_.path() + "/podman.sock";
  auto ready = [&] { return Listens(socket); };
  if (TRY(AwaitIn(state_.path(), *podman_, ready, Deadline::After(kStartTime)))) return Ok();
  std::string said = TRY(sys::ReadFile(state_.path() + "/podman.log", kLogBytesMax));
  return ErrorOf("podman", LastLine(said));
}

// The gateway listens at the bridge's address as soon as it starts, and podman would make the
// bridge only with the first container.
Status Gateway::MakeNetwork() {
  CommandLine programs(openshell_.places(), PodmanVariables());
  const Deadline deadline = Deadline::After(kStepTime);
  auto podman = [&](const std::vector<std::string>& arguments) {
    return programs.Do(PodmanArguments(state_.path(), arguments), deadline, {}, "podman");
  };
  auto ip = [&](const std::vector<std::string>& arguments) {
    return programs.Do(arguments, deadline, {}, "ip");
  };
  const std::string bridge = BridgeOf(name());
  TRY(ip({"link", "add", bridge, "type", "bridge"}));
  Error failed;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::vector<std::string> words = {"network", "create", "--disable-dns", name()};
    if (attempt + 1 < kAttempts) {
      // Podman would take the first free one of its range, the same for all runs that start at
      // once.
      const std::string start = "10.89." + std::to_string(DigitsOf(name(), attempt)) + ".";
      words.insert(words.end(), {"--subnet", start + "0/24", "--gateway", start + "1"});
    }
    Result<std::string> made = podman(words);
    if (!made.ok()) {  // An interface has such an address.
      failed = std::move(made).error();
      continue;
    }
    const Network network = TRY(AdoptNetwork(bridge));
    TRY(ip({"addr", "add", network.address, "dev", bridge}));
    const std::string there = TRY(ip({"-o", "addr", "show", "to", network.range}));
    if (std::count(there.begin(), there.end(), '\n') == 1) {
      TRY(ip({"link", "set", bridge, "up"}));
      return Ok();
    }
    failed = {Code::kTemporary, "another process took " + network.range};
    TRY(ip({"addr", "flush", "dev", bridge}));
    TRY(podman({"network", "rm", "-f", name()}));
  }
  return failed;
}

// Podman's command line has no word for the name of an interface yet.
Result<Gateway::Network> Gateway::AdoptNetwork(const std::string& bridge) {
  const std::string path = state_.path() + "/networks/" + name() + ".json";
  std::string text = TRY(sys::ReadFile(path, kNetworkBytesMax));
  const codec::Json json = TRY(codec::ParseJson(text).Context("podman's network"));
  const codec::Json* subnets = json.Find("subnets");
  const std::string given = "\"" + json.StringAt("network_interface") + "\"";
  const size_t at = text.find(given, text.find("\"network_interface\""));
  if (at == std::string::npos || subnets == nullptr || subnets->array() == nullptr ||
      subnets->array()->empty()) {
    return Error{Code::kIo, "podman does not say which network it made"};
  }
  text.replace(at, given.size(), "\"" + bridge + "\"");
  TRY(sys::WriteFile(path, text, 0600));
  const codec::Json& subnet = subnets->array()->front();
  const std::string range = subnet.StringAt("subnet");
  const std::string bits = range.substr(std::min(range.find('/'), range.size()));
  return Network{range, subnet.StringAt("gateway") + bits};
}

Status Gateway::MakeKeys() {
  TRY(openshell_.Do({"generate-certs", "--output-dir", state_.path() + "/pki", "--server-san",
                     "host.openshell.internal", "--server-san", "host.docker.internal"},
                    Deadline::After(kStepTime), {}, "openshell-gateway"));
  return Ok();
}

Status Gateway::StartService() {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const int port = TRY(FreePort());
    if (!TRY(TryPort(port))) continue;
    TRY(Register("https://127.0.0.1:" + std::to_string(port), state_.path() + "/pki", port));
    Status answer = CheckAnswer(kStepTime);
    if (answer.ok()) return answer;
    // It listens at the bridge's address too, and ends where that cannot be had.
    Result<bool> ended = sys::WaitReadable(service_->exit().get(), Deadline::After(kEndTime));
    if (!ended.ok() || !ended.value()) return answer;
    TRY(CheckPortWasTaken());
  }
  return Error{Code::kTemporary, "other programs take every port that was free"};
}

// Returns false if the port is taken.
Result<bool> Gateway::TryPort(int port) {
  const std::string config = state_.path() + "/gateway.toml";
  const std::string log_path = LogPath();
  TRY(sys::WriteFile(
      config,
      GatewayToml(state_.path(), name(), port, openshell_.places().Find("openshell-sandbox")),
      0600));
  Fd log = TRY(sys::Open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600));
  service_.emplace(TRY(openshell_.Start(
      {"--config", config, "--db-url", "sqlite:" + state_.path() + "/gateway.db?mode=rwc"}, -1,
      log.get(), "openshell-gateway")));
  const std::string mark = "Gateway listener bound address=127.0.0.1:" + std::to_string(port);
  std::string said;
  auto ready = [&] {
    Result<std::string> text = sys::ReadFile(log_path, kLogBytesMax);
    if (text.ok()) said = std::move(text).value();
    return said.find(mark) != std::string::npos;
  };
  if (TRY(AwaitIn(state_.path(), *service_, ready, Deadline::After(kStartTime)))) return true;
  TRY(CheckPortWasTaken());
  return false;
}

// Fails where the gateway has ended for another reason.
Status Gateway::CheckPortWasTaken() {
  service_.reset();
  const std::string said = TRY(sys::ReadFile(LogPath(), kLogBytesMax));
  Error error = ErrorOf("openshell-gateway", LastLine(said));  // Without line breaks.
  if (error.kind == ErrorKind::kAddressTaken) return Ok();
  return error;
}

Status Gateway::Register(const std::string& endpoint, const std::string& tls, int port) {
  const std::string config = state_.path() + "/config/openshell";
  const std::string own = config + "/gateways/" + name();
  TRY(sys::MakeDirectories(own + "/mtls", 0700));
  codec::Json json;
  json.Set("name", name());
  json.Set("gateway_endpoint", endpoint);
  json.Set("is_remote", false);
  json.Set("gateway_port", static_cast<int64_t>(port));
  if (endpoint.starts_with("http://")) json.Set("auth_mode", "plaintext");
  constexpr size_t kPemBytesMax = 65536;
  // The files are as `generate-certs` lays them out, or as `openshell gateway add` keeps them.
  const std::string client = sys::Exists(tls + "/client") ? tls + "/client" : tls;
  const std::pair<std::string, std::string> files[] = {{tls + "/ca.crt", "/ca.crt"},
                                                       {client + "/tls.crt", "/tls.crt"},
                                                       {client + "/tls.key", "/tls.key"}};
  for (const auto& [from, to] : files) {
    if (tls.empty()) break;
    Result<std::string> pem = sys::ReadFile(from, kPemBytesMax);
    if (!pem.ok()) {
      Error error = std::move(pem).Context("reading the gateway's certificates").error();
      error.hint = "--gateway-tls DIR, with ca.crt, tls.crt and tls.key";
      return error;
    }
    TRY(sys::WriteFile(own + "/mtls" + to, pem.value(), 0600));
  }
  TRY(sys::WriteFile(own + "/metadata.json", codec::RenderJson(json), 0600));
  return sys::WriteFile(config + "/active_gateway", name(), 0600);
}

std::string ActiveGateway() {
  std::string name = sys::Environment("OPENSHELL_GATEWAY").value_or("");
  if (!name.empty()) return name;
  Result<std::string> text = sys::ReadFile(UsersConfig() + "/active_gateway", kEntryBytesMax);
  if (!text.ok()) return {};
  return text.value().substr(0, text.value().find_last_not_of(" \n") + 1);
}

// The credentials and the address of a gateway that this user has registered. The command line
// looks for them by the name that it was given, and keeps a refreshed token there.
Status Gateway::CopyRegistered(const std::string& name) {
  const std::string registered = UsersConfig() + "/gateways/" + name;
  if (name.empty() || name.find('/') != std::string::npos || name.starts_with('.')) {
    return Error{Code::kUsage, "'" + name + "' cannot name a gateway", "openshell gateway list"};
  }
  Result<Fd> source = sys::Open(registered, O_RDONLY | O_DIRECTORY);
  if (!source.ok()) {
    return Error{Code::kNotFound, "no gateway is registered as '" + name + "'",
                 "openshell gateway list"};
  }
  const std::string text = TRY(sys::ReadFile(registered + "/metadata.json", kEntryBytesMax));
  const codec::Json entry = TRY(codec::ParseJson(text).Context("gateway '" + name + "'"));
  const net::Url url = TRY(net::ParseUrl(entry.StringAt("gateway_endpoint")).Context("--gateway"));
  TRY(CheckScheme(url));
  const std::string config = state_.path() + "/config/openshell";
  const std::string to = config + "/gateways/" + name;
  TRY(sys::MakeDirectories(to, 0700));
  Fd target = TRY(sys::Open(to, O_RDONLY | O_DIRECTORY));
  constexpr sandbox::CopyLimits kLimits{1 << 20, 100};
  TRY(sandbox::CopyTree(source.value().get(), target.get(), kLimits, std::nullopt, {}));
  TRY(WriteTokenPlace(state_.path(), registered));
  return sys::WriteFile(config + "/active_gateway", name, 0600);
}

Status Gateway::CheckAnswer(std::chrono::milliseconds time) {
  version_ = TRY(client_->CheckAnswer(Deadline::After(time)));
  return Ok();
}

}  // namespace openshell
