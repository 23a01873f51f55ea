// SPDX-License-Identifier: Apache-2.0
#include "gateway/gateway.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sstream>
#include <utility>

#include "base/process.h"
#include "base/sys.h"
#include "base/thread.h"
#include "base/wire.h"
#include "gateway/limits.h"
#include "gateway/policy_wire.h"
#include "gateway/server.h"

namespace gateway {
namespace {

constexpr size_t kStatmBytesMax = 4096;

// The child: gives up what it inherited, then serves. Never returns.
[[noreturn]] void BecomeGateway(GatewayConfig config, Fd control, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  // The supervisor may have died before that took effect.
  if (::getppid() != parent) ::_exit(1);
  ::prctl(PR_SET_NAME, "gateway", 0, 0, 0);
  // A core dump of this process would contain the secrets: it is written neither to a file nor to a
  // program, and other processes of the same user may not read its memory.
  rlimit no_core{0, 0};
  bool sealed =
      ::setrlimit(RLIMIT_CORE, &no_core) == 0 && ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
  if (!sealed) ::_exit(1);
  Status joined = JoinCgroups(config.groups);
  if (!joined.ok()) {
    (void)sys::SendMessage(control.get(), wire::Write(ServerEvent::kFailed, joined.error()));
    ::_exit(1);
  }
  config.groups.clear();
  sys::WipeEnvironment();
  // Standard error stays: a failed ENSURE says there where it happened.
  sys::CloseAllExcept({STDERR_FILENO, control.get(), config.events_jsonl.get(),
                       config.events_log.get(), config.identity.get()});
  ::_exit(RunServer(std::move(config), std::move(control)));
}

}  // namespace

Result<Gateway> Gateway::Start(GatewayConfig config) {
  auto [ours, theirs] = TRY(sys::SocketPair());
  pid_t parent = ::getpid();
  Gateway gateway;
  gateway.pid_ = ::fork();
  if (gateway.pid_ < 0) return Errno("fork");
  if (gateway.pid_ == 0) {
    ours.Close();
    BecomeGateway(std::move(config), std::move(theirs), parent);
  }
  sys::MoveAside(gateway.pid_);
  theirs.Close();
  gateway.control_ = std::move(ours);
  gateway.pidfd_ = TRY(sys::PidfdOpen(gateway.pid_));
  return gateway;
}

Result<std::string> Gateway::AwaitAuthority() {
  std::string pem;
  TRY(Await(ServerEvent::kAuthority, pem));
  return pem;
}

Status Gateway::AwaitReady() { return Await(ServerEvent::kReady); }

template <typename... T>
Status Gateway::Await(ServerEvent wanted, T&... values) {
  sys::Message message = TRY(
      sys::ReceiveMessage(control_.get(), kReadyMessageBytesMax, Deadline::After(kStartTimeout)));
  ServerEvent kind{};
  if (wire::Read(message.bytes, kind, values...) && kind == wanted) return Ok();
  Error error;
  bool told = wire::Read(message.bytes, kind, error) && kind == ServerEvent::kFailed;
  if (!told) error = {Code::kIo, "it ended"};
  return error;
}

Gateway::Gateway(Gateway&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      processor_time_(other.processor_time_),
      pidfd_(std::move(other.pidfd_)),
      control_(std::move(other.control_)) {}

Gateway& Gateway::operator=(Gateway&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(processor_time_, other.processor_time_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(control_, other.control_);
  return *this;
}

Gateway::~Gateway() {
  if (pid_ <= 0) return;
  // The process is our unreaped child: its number cannot belong to another.
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::chrono::nanoseconds Gateway::ProcessorTime() const {
  clockid_t clock = 0;
  timespec time{};
  if (pid_ <= 0 || ::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) {
    return processor_time_;
  }
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

int64_t Gateway::MemoryBytes() const {
  Result<std::string> text =
      sys::ReadFile("/proc/" + std::to_string(pid_) + "/statm", kStatmBytesMax);
  if (!text.ok()) return 0;
  int64_t total = 0;
  int64_t resident = 0;
  int64_t shared = 0;
  std::istringstream(text.value()) >> total >> resident >> shared;
  return (resident - shared) * ::sysconf(_SC_PAGESIZE);
}

Status Gateway::Serve(GatewaySocket served) {
  return sys::SendMessage(control_.get(), wire::Write(ServerCommand::kServe, served.kind),
                          served.socket.get())
      .Context("handing a socket to the gateway");
}

Status Gateway::Update(const policy::Policy& policy, std::string_view hash) {
  // A file without a name: a message has no room for a large policy.
  Fd file(::memfd_create("policy", MFD_CLOEXEC));
  if (!file.valid()) return Errno("memfd_create");
  TRY(sys::WriteAll(file.get(), RenderPolicyWire(policy)));
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return Errno("lseek");
  std::string message = wire::Write(ServerCommand::kUpdate, hash.substr(0, kUpdateTextBytesMax));
  return sys::SendMessage(control_.get(), message, file.get())
      .Context("handing a policy to the gateway");
}

Status Gateway::RejectUpdate(std::string_view why, bool quarantine) {
  std::string message =
      wire::Write(ServerCommand::kReject, quarantine, why.substr(0, kUpdateTextBytesMax));
  return sys::SendMessage(control_.get(), message).Context("notifying the gateway of a policy");
}

Status Gateway::GiveSubject(size_t grant, std::string_view text) {
  SecretString message = wire::Write(ServerCommand::kSubject, static_cast<uint64_t>(grant), text);
  return sys::SendMessage(control_.get(), message).Context("giving the gateway a token");
}

Status Gateway::Narrow(std::string_view by) {
  return sys::SendMessage(control_.get(), wire::Write(ServerCommand::kNarrow, by))
      .Context("narrowing the run");
}

Status Gateway::RecordRefusedConnect(const caller::Endpoint& remote, const caller::Owner& owner) {
  std::string message = wire::Write(
      ServerCommand::kConnect, caller::RenderQuestion({0, {}, remote}), caller::RenderOwner(owner));
  ssize_t sent =
      ::send(control_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent >= 0 ? Ok() : Status(Errno("telling the gateway of a connection"));
}

Result<GatewayNotices> Gateway::TakeNotices() {
  sys::Message message =
      TRY(sys::ReceiveMessage(control_.get(), kNewsBytesMax, Deadline::After(kStartTimeout))
              .Context("listening to the gateway"));
  GatewayNotices notices;
  notices.ended = message.bytes.empty();
  if (notices.ended) return notices;
  ServerEvent kind{};
  std::string text;
  if (wire::Read(message.bytes, kind, text)) {
    if (kind == ServerEvent::kRefused) notices.credential_refused_by = text;
    if (kind == ServerEvent::kNameless) notices.model_unresolved = text;
    if (kind == ServerEvent::kNarrowed) notices.narrowed_by = text;
    if (kind == ServerEvent::kToken) notices.token = Secret(text);
  }
  TakenIdentity taken;
  JwtFacts& facts = taken.facts;
  if (wire::Read(message.bytes, kind, taken.provider, facts.issuer, facts.subject, facts.audience,
                 facts.expires) &&
      kind == ServerEvent::kIdentity) {
    notices.identity = std::move(taken);
  }
  uint64_t grant = 0;
  if (wire::Read(message.bytes, kind, grant) && kind == ServerEvent::kSubject) {
    notices.wants_subject = static_cast<size_t>(grant);
  }
  Wipe(text);
  Wipe(message.bytes);
  return notices;
}

Status Gateway::Finish(Deadline deadline) {
  if (pid_ <= 0) return Ok();
  Status asked = sys::SendMessage(control_.get(), wire::Write(ServerCommand::kFinish));
  Result<bool> ended = sys::WaitReadable(pidfd_.get(), deadline);
  bool in_time = ended.ok() && ended.value();
  if (!in_time) ::kill(pid_, SIGKILL);
  int status = 0;
  rusage used{};
  pid_t reaped = ::wait4(std::exchange(pid_, -1), &status, 0, &used);
  for (const timeval& time : {used.ru_utime, used.ru_stime}) {
    processor_time_ += std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  }
  control_.Close();
  if (reaped < 0) return Errno("waitpid");
  if (!in_time) return Error{Code::kIo, "the gateway did not exit in time"};
  if (WIFSIGNALED(status)) {
    return Error{Code::kBug,
                 "the gateway was killed by signal " + std::to_string(WTERMSIG(status))};
  }
  if (WEXITSTATUS(status) != 0) return Error{Code::kIo, "the gateway could not write its records"};
  return asked.ok() ? Ok() : Status(std::move(asked).error());
}

}  // namespace gateway
