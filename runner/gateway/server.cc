// SPDX-License-Identifier: Apache-2.0
#include "gateway/server.h"

#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "base/sys.h"
#include "base/wire.h"
#include "gateway/async/limits.h"
#include "gateway/budget/budget.h"
#include "gateway/confinement.h"
#include "gateway/connection.h"
#include "gateway/http/refusal.h"
#include "gateway/limits.h"
#include "gateway/names/limits.h"
#include "gateway/policy_dns.h"
#include "gateway/policy_wire.h"
#include "gateway/refused_packet.h"
#include "gateway/token_grant.h"
#include "gateway/transparent.h"

namespace gateway {
namespace {

PriceList Prices(PriceList preferred) {
  PriceList prices = PriceList::BuiltIn();
  prices.Prefer(std::move(preferred));
  return prices;
}

std::vector<std::string> HostsOf(const std::vector<Authority>& models) {
  std::vector<std::string> hosts;
  for (const Authority& model : models) hosts.push_back(model.host);
  return hosts;
}

// The hosts that credentials are bound to: the models', or all others.
std::vector<policy::HostPort> BoundHosts(const std::vector<BoundSecret>& secrets, bool of_models) {
  std::vector<policy::HostPort> hosts;
  for (const BoundSecret& secret : secrets) {
    if (secret.bodies_pass == of_models) hosts.push_back({secret.host, secret.port});
  }
  return hosts;
}

Ratchet::Facts RatchetFacts(GatewayConfig& config) {
  Ratchet::Facts facts{std::move(config.untrusted_texts), BoundHosts(config.secrets, true),
                       BoundHosts(config.secrets, false)};
  for (const Authority& model : config.models) facts.models.push_back({model.host, model.port});
  return facts;
}

// Everything of the process that must not move once connections hold references to it.
class Server {
 public:
  static Result<std::unique_ptr<Server>> Open(GatewayConfig config, CertificateAuthority authority,
                                              Fd control);

  // Runs until told to finish. Returns false if records could not be written.
  bool Run();

 private:
  Server(EventLoop loop, CertificateAuthority authority, UpstreamTrust trust, GatewayConfig config,
         Fd control)
      : loop_(std::move(loop)),
        authority_(std::move(authority)),
        trust_(std::move(trust)),
        proxy_(std::move(config.proxy)),
        bounds_hosts_(config.host_bytes_max > 0),
        allowances_(config.host_bytes_max, [this](const record::Notice& notice) { Note(notice); }),
        pool_(loop_),
        policy_(std::move(config.policy)),
        ratchet_(
            policy_, RatchetFacts(config), [this](const record::Notice& notice) { Note(notice); },
            [this](const std::string& by) { SendEvent(ServerEvent::kNarrowed, by); }),
        policy_file_(codec::NeutralLine(config.policy_file)),
        credentials_(std::move(config.secrets)),
        grants_(std::move(config.grants), credentials_, MakeGrantHooks()),
        recorder_(std::move(config.events_jsonl), std::move(config.events_log), config.sandbox_uid,
                  credentials_.mask()),
        identities_(loop_, std::move(config.identity)),
        hosted_(config.models, config.budget.model_servers),
        budget_(std::move(config.budget), Prices(std::move(config.prices)),
                {[this](const record::Notice& notice) { Note(notice); },
                 [this](const std::string& host) { SendEvent(ServerEvent::kRefused, host); }}),
        model_names_(HostsOf(config.models),
                     [this](const std::string& why) { SendEvent(ServerEvent::kNameless, why); }),
        sent_(std::move(config.sent_texts), std::move(config.models),
              [this](const record::Notice& notice) { Note(notice); }),
        control_(std::move(control)) {}

  GrantHooks MakeGrantHooks();
  Task<void> Begin();
  Task<void> Control();
  bool HandleCommand(sys::Message message);
  void Open(GatewaySocket served);
  bool Update(std::string_view hash, const Fd& file);
  void RejectUpdate(bool quarantine, std::string_view why);
  bool RecordConnect(std::string_view connection, std::string_view answer);
  // Records a notice. One that cannot be recorded ends the process, as every record does.
  void Note(const record::Notice& notice) {
    if (!recorder_.Record(notice)) loop_.Stop();
  }
  void SendEvent(ServerEvent kind, std::string_view text) {
    Send(wire::Write(kind, text.substr(0, kNewsTextBytesMax)));
  }
  // A supervisor that does not listen any more is gone, and ends this process by it. It listens to
  // nothing else before this is ready.
  void Send(SecretString message) {
    if (!ready_) return early_.push_back(std::move(message));
    (void)sys::SendMessage(control_.get(), message).ok();
  }
  Task<void> Accept(GatewaySocket served);
  Task<void> Serve(GatewaySocket::Kind kind, Fd socket);

  EventLoop loop_;
  CertificateAuthority authority_;
  UpstreamTrust trust_;
  std::optional<EgressProxy> proxy_;
  bool bounds_hosts_;
  HostAllowances allowances_;  // The allowances of the streams in the pool.
  UpstreamPool pool_;
  LivePolicy policy_;
  Ratchet ratchet_;
  std::string policy_file_;
  Credentials credentials_;
  TokenGrants grants_;
  record::Recorder recorder_;
  IdentityAsker identities_;
  HostedApis hosted_;
  Budget budget_;
  ModelNames model_names_;
  SentWatch sent_;
  SyntheticPool names_;
  Fd control_;
  std::unique_ptr<Resolver> resolver_;
  std::unique_ptr<Services> services_;
  size_t connections_ = 0;
  int gateway_sockets_ = 0;
  bool ready_ = false;
  std::vector<SecretString> early_;  // The events before that.
};

GrantHooks Server::MakeGrantHooks() {
  return {
      .announce = [this](const Secret& value) { SendEvent(ServerEvent::kToken, value.reveal()); },
      .taken =
          [this](const TakenIdentity& identity) {
            const JwtFacts& facts = identity.facts;
            Send(wire::Write(ServerEvent::kIdentity, identity.provider, facts.issuer, facts.subject,
                             facts.audience, facts.expires));
          },
      .want_subject =
          [this](size_t grant) {
            Send(wire::Write(ServerEvent::kSubject, static_cast<uint64_t>(grant)));
          }};
}

Result<std::unique_ptr<Server>> Server::Open(GatewayConfig config, CertificateAuthority authority,
                                             Fd control) {
  EventLoop loop = TRY(EventLoop::Open());
  UpstreamTrust trust = TRY(UpstreamTrust::Load(std::move(config.ca_bundle_pem)));
  std::unique_ptr<Server> server(new Server(std::move(loop), std::move(authority), std::move(trust),
                                            std::move(config), std::move(control)));
  // A missing hosts file is not an error: it then names nothing.
  Result<std::string> hosts = sys::ReadFile("/etc/hosts", kHostsFileBytesMax);
  HostsFile known = hosts.ok() ? ParseHostsFile(hosts.value()) : HostsFile();
  server->resolver_ = TRY(Resolver::Open(server->loop_, std::move(known)));
  server->services_ = std::make_unique<Services>(
      Services{server->loop_, server->policy_, server->policy_file_, server->credentials_,
               server->authority_, server->trust_, server->pool_, *server->resolver_,
               server->recorder_, server->identities_, server->names_});
  server->services_->guard = &server->budget_;
  if (server->sent_.watches()) server->services_->sent = &server->sent_;
  if (server->bounds_hosts_) server->services_->allowances = &server->allowances_;
  server->services_->grants = &server->grants_;
  server->services_->model_names = &server->model_names_;
  server->services_->hosted = &server->hosted_;
  server->services_->ratchet = &server->ratchet_;
  if (server->proxy_) server->services_->proxy = &*server->proxy_;
  return server;
}

// Nothing of the run is made before each identity was taken.
Task<void> Server::Begin() {
  Status taken = co_await grants_.EnsureIdentities(*services_);
  SecretString first = taken.ok() ? wire::Write(ServerEvent::kReady)
                                  : wire::Write(ServerEvent::kFailed, taken.error());
  Status told = sys::SendMessage(control_.get(), first);
  ready_ = true;
  for (SecretString& message : std::exchange(early_, {})) Send(std::move(message));
  if (taken.ok() && told.ok()) co_return loop_.Spawn(Control());
  loop_.Stop();
}

bool Server::Run() {
  loop_.Spawn(Begin());
  loop_.BeforeWait(
      [](void* server) {
        Server& self = *static_cast<Server*>(server);
        if (!self.recorder_.Flush()) self.loop_.Stop();
      },
      this);
  loop_.Run();
  if (!recorder_.failed()) budget_.EndOpen();
  (void)recorder_.Flush();
  return !recorder_.failed();
}

Task<void> Server::Control() {
  for (;;) {
    bool ready = co_await loop_.Readable(control_.get(), Deadline::Never());
    if (!ready) continue;
    Result<sys::Message> message =
        sys::ReceiveMessage(control_.get(), kControlBytesMax, Deadline::After(kHeadTimeout));
    if (message.ok() && HandleCommand(std::move(message).value())) continue;
    loop_.Stop();
    co_return;
  }
}

// Returns false at the end. An empty message is the end of the supervisor.
bool Server::HandleCommand(sys::Message message) {
  ServerCommand order{};
  bool quarantine = false;
  std::string text;
  if (wire::Read(message.bytes, order, text) && order == ServerCommand::kUpdate &&
      message.fd.valid()) {
    return Update(text, message.fd);
  }
  if (wire::Read(message.bytes, order, quarantine, text) && order == ServerCommand::kReject) {
    RejectUpdate(quarantine, text);
    return true;
  }
  if (wire::Read(message.bytes, order, text) && order == ServerCommand::kNarrow) {
    ratchet_.Inherit(text);
    return true;
  }
  std::string owner;
  if (wire::Read(message.bytes, order, text, owner) && order == ServerCommand::kConnect) {
    return RecordConnect(text, owner);
  }
  uint64_t grant = 0;
  if (wire::Read(message.bytes, order, grant, text) && order == ServerCommand::kSubject) {
    grants_.GiveSubject(static_cast<size_t>(grant), std::move(text));
    Wipe(message.bytes);
    return true;
  }
  GatewaySocket::Kind kind{};
  bool serve = wire::Read(message.bytes, order, kind) && order == ServerCommand::kServe;
  if (!serve || !message.fd.valid() || gateway_sockets_ >= kGatewaySocketsMax) return false;
  ++gateway_sockets_;
  Open({kind, std::move(message.fd)});
  return true;
}

bool Server::Update(std::string_view hash, const Fd& file) {
  Result<std::string> bytes = sys::ReadAll(file.get(), kPolicyWireBytesMax);
  std::optional<policy::Policy> next;
  if (bytes.ok()) next = ParsePolicyWire(bytes.value());
  if (!next.has_value()) {
    RejectUpdate(true, "the policy arrived incomplete");
    return true;
  }
  record::Notice notice;
  notice.kind = record::Notice::Kind::kConfig;
  notice.activity = "LOADED";
  notice.title = "policy reloaded";
  notice.context = {{"version", "v" + std::to_string(policy_.version() + 1)},
                    {"hash", std::string(hash)}};
  Note(notice);
  // A change that cannot be recorded does not happen.
  if (!recorder_.failed()) policy_.Replace(ratchet_.Narrowed(std::move(*next)));
  return true;
}

void Server::RejectUpdate(bool quarantine, std::string_view why) {
  record::Notice notice;
  notice.kind = record::Notice::Kind::kConfig;
  notice.severity = record::Notice::Severity::kHigh;
  notice.succeeded = false;
  notice.activity = "FAILED";
  notice.title =
      std::string("policy update rejected, ") +
      (quarantine ? "all traffic is now blocked" : "the last valid policy stays in force");
  notice.context = {{"version", "v" + std::to_string(policy_.version())},
                    {"reason", std::string(why)}};
  Note(notice);
  if (quarantine) policy_.Replace(policy::Policy());
}

bool Server::RecordConnect(std::string_view connection, std::string_view answer) {
  static_assert(caller::kQuestionBytes + caller::kOwnerBytesMax + 16 <= kControlBytesMax);
  std::optional<caller::Question> question = caller::ParseQuestion(connection);
  std::optional<caller::Owner> owner = caller::ParseOwner(answer);
  if (!question.has_value() || !owner.has_value()) return false;
  RecordRefusedConnect(*services_, *owner, question->remote);
  return true;
}

void Server::Open(GatewaySocket served) {
  switch (served.kind) {
    case GatewaySocket::Kind::kProxy:
    case GatewaySocket::Kind::kTransparent:
      return loop_.Spawn(Accept(std::move(served)));
    case GatewaySocket::Kind::kNames:
      return loop_.Spawn(ServeNames(*services_, std::move(served.socket)));
    case GatewaySocket::Kind::kRefusals:
      return loop_.Spawn(ServeRefusals(*services_, std::move(served.socket)));
  }
  loop_.Stop();
}

Task<void> Server::Accept(GatewaySocket served) {
  const Fd& listener = served.socket;
  ::fcntl(listener.get(), F_SETFL, O_NONBLOCK);
  int on = 1;  // The connections inherit it.
  ::setsockopt(listener.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  for (;;) {
    Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      // Out of descriptors or memory: those in use come back; the backlog waits meanwhile.
      bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (exhausted) {
        co_await loop_.Sleep(Deadline::After(milliseconds(50)));
      } else {
        co_await loop_.Readable(listener.get(), Deadline::Never());
      }
      continue;
    }
    if (connections_ >= kConnectionsMax) {
      if (served.kind == GatewaySocket::Kind::kTransparent) continue;
      std::string busy = RenderBareRefusal(503);
      ::send(socket.get(), busy.data(), busy.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      continue;
    }
    loop_.Spawn(Serve(served.kind, std::move(socket)));
  }
}

Task<void> Server::Serve(GatewaySocket::Kind kind, Fd socket) {
  ++connections_;
  if (kind == GatewaySocket::Kind::kTransparent) {
    co_await ServeCaptured(*services_, std::move(socket));
  } else {
    co_await ServeConnection(*services_, std::move(socket));
  }
  --connections_;
}

// Room for kConnectionsMax, as far as the host allows; beyond, connections wait to be accepted.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, kDescriptorsMax));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Buffers come and go with every request: giving their pages back each time would cost more than
// the rest of it.
void KeepFreedMemory() {
  ::mallopt(M_MMAP_THRESHOLD, kAllocatorBytes);
  ::mallopt(M_TRIM_THRESHOLD, kAllocatorBytes);
}

}  // namespace

int RunServer(GatewayConfig config, Fd control) {
  // The server owns the socket; an error on the way there must still be told.
  int reply = ::fcntl(control.get(), F_DUPFD_CLOEXEC, 3);
  auto fail = [&](Error error) {
    if (error.code != Code::kInvalid) error.code = Code::kUnsupported;
    // There is no other way left to report it.
    (void)sys::SendMessage(reply, wire::Write(ServerEvent::kFailed, error)).ok();
    return 1;
  };
  RaiseDescriptorLimit();
  KeepFreedMemory();
  ::signal(SIGPIPE, SIG_IGN);
  // The group's Ctrl-C is for the supervisor, which then ends this process in order.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  Result<CertificateAuthority> authority = CertificateAuthority::Create();
  if (!authority.ok()) return fail(authority.error());
  // The sandbox is built with it while the rest is prepared.
  Status given =
      sys::SendMessage(reply, wire::Write(ServerEvent::kAuthority, authority.value().pem()));
  if (!given.ok()) return 1;
  Result<std::unique_ptr<Server>> server =
      Server::Open(std::move(config), std::move(authority).value(), std::move(control));
  if (!server.ok()) return fail(server.error());
  Status confined = ConfineSelf();
  if (!confined.ok()) return fail(confined.error());
  ::close(reply);
  sys::ReleaseUnusedMemory();
  bool recorded = server.value()->Run();
  // Connections are still suspended inside the loop: nothing of it is taken apart, the process
  // ends.
  server.value().release();
  return recorded ? 0 : 1;
}

}  // namespace gateway
