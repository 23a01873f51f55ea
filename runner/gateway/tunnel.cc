// SPDX-License-Identifier: Apache-2.0
// CONNECT: judge, resolve, dial, answer, and then see what the client speaks.
#include <sys/socket.h>

#include <memory>

#include "codec/text/neutral.h"
#include "gateway/async/limits.h"
#include "gateway/client_hello.h"
#include "gateway/connection.h"
#include "gateway/first_bytes.h"
#include "gateway/http/http1_client.h"
#include "gateway/http/http2_client.h"
#include "gateway/http/refusal.h"
#include "gateway/http/relay.h"
#include "gateway/transaction.h"

namespace gateway {
namespace {

constexpr std::string_view kTunnelOpened = "HTTP/1.1 200 Connection Established\r\n\r\n";
// While the client is silent, the interval of looking whether the server has spoken first. Also the
// time after which the first bytes of a captured client count as a raw protocol's if they are not
// TLS.
constexpr milliseconds kPeekPatience{100};
// The pause between two looks at first bytes that are not complete.
constexpr milliseconds kPeekPoll{5};

bool HasBytes(int socket) {
  char byte = 0;
  return ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

}  // namespace

// One CONNECT. The order of its steps is OpenShell's.
class Tunnel {
 public:
  Tunnel(Services& services, const caller::Owner& owner, Stream& client)
      : services_(services),
        owner_(owner),
        client_(client),
        policy_(services.policy.Take()),
        caller_match_(policy_->compiled().MatchCaller(caller::Judged(owner))) {}

  Task<void> Run(const codec::RequestHead& head);
  // Without a CONNECT: nothing is answered to one.
  Task<void> RunCaptured(Authority authority);

 private:
  Task<void> Decide();
  bool Allowed();
  Task<void> Refuse(record::Event::Outcome outcome, record::Engine engine, std::string reason,
                    std::string response, std::string protocol = {});
  Task<void> RefuseInside(std::string why, std::string protocol = {});
  Task<bool> OpenRoute();
  Task<ClientProtocol> SniffProtocol();
  Task<ClientProtocol> SniffInsideTls();
  Task<bool> NamesAnother();
  Task<void> Serve();
  Task<void> ServeTls();
  Task<void> ServeHttp(std::string scheme, bool http2);
  Task<void> ServeRaw(bool tls);
  record::Event NewEvent(record::Event::Outcome outcome);
  const policy::Handling& handling() const { return route_.handling(); }
  RequestContext NewContext(std::string scheme, bool confidential);
  std::string Name() const {
    return (captured_ ? "TCP " : "CONNECT ") + RenderAuthority(authority_, 0);
  }

  Services& services_;
  const caller::Owner& owner_;
  Stream& client_;
  Authority authority_;
  std::unique_ptr<LivePolicy::Lease> policy_;
  policy::CallerMatch caller_match_;
  policy::Route route_;
  policy::Decision decision_;
  std::unique_ptr<Upstream> upstream_;
  bool captured_ = false;
};

record::Event Tunnel::NewEvent(record::Event::Outcome outcome) {
  record::Event event = NewConnectionEvent(owner_, outcome);
  event.host = authority_.host;
  event.port = authority_.port;
  event.policy = decision_.policy.empty() ? "-" : decision_.policy;
  event.engine = record::Engine::kOpa;
  if (decision_.at.line > 0) event.position = codec::LocateIn(services_.policy_file, decision_.at);
  return event;
}

RequestContext Tunnel::NewContext(std::string scheme, bool confidential) {
  RequestContext context{*policy_,      route_,     services_.policy_file, services_.credentials,
                         owner_.caller, authority_, std::move(scheme)};
  context.confidential = confidential || policy::IsHostAlias(authority_.host);
  return context;
}

Task<void> Tunnel::Refuse(record::Event::Outcome outcome, record::Engine engine, std::string reason,
                          std::string response, std::string protocol) {
  record::Event event = NewEvent(outcome);
  event.engine = engine;
  event.protocol = std::move(protocol);
  event.reason = std::move(reason);
  std::string_view verb = captured_ ? "TCP " : "CONNECT ";
  event.message = std::string(verb) +
                  (outcome == record::Event::Outcome::kFailed ? "failed " : "denied ") +
                  RenderAuthority(authority_, 0);
  if (!services_.Record(event)) co_return;
  // A captured client expects its server's own protocol, whatever that is.
  if (captured_ && !client_.tls()) {
    client_.ResetOnClose();
    co_return;
  }
  Status written = co_await client_.Write(response);
  if (written.ok()) co_await client_.Linger();
}

// Behind the 200: the refusal is an HTTP answer in what the client believes to be the server.
// `protocol` is the one that an endpoint for this client would need.
Task<void> Tunnel::RefuseInside(std::string why, std::string protocol) {
  std::string response = RenderRefusal(NewRefusal(403, "unsupported_l7_protocol", why));
  co_await Refuse(record::Event::Outcome::kDenied, record::Engine::kL7, why, std::move(response),
                  std::move(protocol));
}

Task<void> Tunnel::Run(const codec::RequestHead& head) {
  std::optional<Authority> authority = ParseAuthority(head.target, std::nullopt);
  bool framed = codec::FindField(head.fields, "content-length") != nullptr ||
                codec::FindField(head.fields, "transfer-encoding") != nullptr;
  if (authority.has_value()) authority_ = *authority;
  if (!authority.has_value() || framed) {
    std::string why = framed ? "CONNECT with a body" : "invalid CONNECT target";
    co_await Refuse(record::Event::Outcome::kDenied, record::Engine::kHttpParser, why,
                    RenderBareRefusal(400));
    co_return;
  }
  co_await Decide();
}

Task<void> Tunnel::RunCaptured(Authority authority) {
  captured_ = true;
  authority_ = std::move(authority);
  co_await Decide();
}

Task<void> Tunnel::Decide() {
  // Another policy is in force: what is under way ends, and the client has to ask anew.
  policy_->WhenReplaced([this] { client_.AbortReading(); });
  if (services_.ratchet != nullptr && services_.ratchet->Keeps(authority_)) {
    policy_->KeepWhenNarrowed();
  }
  route_ = policy_->compiled().FindRoute(caller_match_, authority_.host, authority_.port);
  OwnerDecision decided = DecideOwner(owner_, route_);
  decision_ = std::move(decided.decision);
  if (!decision_.allowed) {
    std::string response = RenderRefusal(
        NewRefusal(403, "policy_denied", Name() + " not permitted by policy", decision_.reason));
    co_await Refuse(record::Event::Outcome::kDenied, decided.engine, decision_.reason,
                    std::move(response));
    co_return;
  }
  bool uninspected = handling().skip_tls && !handling().allow_uninspected_credentials &&
                     services_.credentials.BoundTo(authority_.host, authority_.port);
  if (uninspected) {
    std::string why = "a credential is bound to a host without inspection (tls: skip)";
    std::string response = RenderRefusal(NewRefusal(403, "uninspected_credentials", why));
    co_await Refuse(record::Event::Outcome::kDenied, record::Engine::kCredentials, why,
                    std::move(response));
    co_return;
  }
  bool open = co_await OpenRoute();
  if (open) co_await Serve();
}

// Resolves, judges and dials; answers itself when that fails.
Task<bool> Tunnel::OpenRoute() {
  DestinationVerdict verdict = co_await FindDestination(services_, authority_, handling());
  if (!verdict.allowed && verdict.failure.empty()) {
    std::string detail = Name() + " blocked: " + verdict.label;
    std::string response = RenderRefusal(NewRefusal(403, "ssrf_denied", detail));
    co_await Refuse(record::Event::Outcome::kDenied, record::Engine::kSsrf, detail,
                    std::move(response));
    co_return false;
  }
  Status dialled = Error{Code::kIo, verdict.failure};
  if (verdict.allowed) {
    upstream_ = std::make_unique<Upstream>(services_, std::move(verdict.destination));
    dialled = co_await upstream_->Reach();
  }
  if (!dialled.ok()) {
    std::string why = RenderAuthority(authority_, 0) + ": " + dialled.error().what;
    std::string response = RenderRefusal(NewRefusal(502, "upstream_unreachable", why));
    co_await Refuse(record::Event::Outcome::kFailed, record::Engine::kUpstream, why,
                    std::move(response));
    co_return false;
  }
  record::Event event = NewEvent(record::Event::Outcome::kAllowed);
  if (captured_) event.reason = record::kTransparentAllowed;
  event.message = (captured_            ? "TCP allowed "
                   : handling().inspect ? "CONNECT_L7 allowed "
                                        : "CONNECT allowed ") +
                  RenderAuthority(authority_, 0);
  if (!services_.Record(event)) co_return false;
  if (captured_) co_return true;
  Status written = co_await client_.Write(kTunnelOpened);
  co_return written.ok();
}

// Waits for the client's first bytes, or the server's: some protocols greet from that side. Nothing
// is guessed after a time: a slow client's TLS is terminated, and its requests are read, like a
// quick one's.
Task<ClientProtocol> Tunnel::SniffProtocol() {
  std::unique_ptr<char[]> bytes(new char[kFirstBytesMax]);  // Not cleared.
  // A tunnel may be silent as long as between two requests: clients open tunnels ahead of their
  // need.
  Deadline deadline = Deadline::After(kKeepAliveTimeout);
  std::optional<Deadline> patience;
  while (!deadline.passed()) {
    Result<size_t> n =
        co_await client_.Peek(bytes.get(), kFirstBytesMax, Deadline::After(kPeekPatience));
    const bool silent = !n.ok() && n.error().code == Code::kTemporary;
    if (!silent && (!n.ok() || n.value() == 0)) co_return ClientProtocol::kNothing;
    const std::string_view sent(bytes.get(), silent ? 0 : n.value());
    if (!silent && !patience.has_value()) {
      patience = Deadline::After(kPeekPatience);
      deadline = Deadline::After(kHeadTimeout);
    }
    // A declared protocol of its own is not held up for what a word of it may become; and without
    // TLS everything passes where that is not terminated.
    const bool raw = handling().captured && patience.has_value() && patience->passed();
    ClientProtocol sniffed =
        handling().skip_tls || raw ? RecogniseTls(sent) : RecogniseProtocol(sent);
    if (sniffed != ClientProtocol::kNothing) co_return sniffed;
    // A server to which connections are kept is known to speak HTTP.
    Stream* server = upstream_->dialled();
    if (server != nullptr && HasBytes(server->fd())) co_return ClientProtocol::kOther;
    if (!silent) co_await services_.loop.Sleep(Deadline::After(kPeekPoll));
  }
  co_return ClientProtocol::kNothing;
}

// Returns whether a TLS client was refused because it asks, or may ask, for another name than the
// one that was judged: one address serves many hosts. A client that names none gets what the host
// shows by itself. Behind an address there is no name to compare with.
Task<bool> Tunnel::NamesAnother() {
  if (policy::ParseAddress(authority_.host).has_value()) co_return false;
  std::unique_ptr<char[]> bytes(new char[kClientHelloBytesMax]);  // Not cleared.
  std::string why = "the ClientHello is incomplete";
  Deadline deadline = Deadline::After(kHandshakeTimeout);
  while (!deadline.passed()) {
    Result<size_t> n = co_await client_.Peek(bytes.get(), kClientHelloBytesMax, deadline);
    if (!n.ok()) break;
    Result<std::optional<std::string>> hello =
        PeekServerName(std::string_view(bytes.get(), n.value()));
    if (!hello.ok()) why = hello.error().what;
    if (!hello.ok()) break;
    if (hello.value().has_value()) {
      const std::string& name = *hello.value();
      if (name.empty() || name == authority_.host) co_return false;
      why =
          "TLS server name " + codec::NeutralLine(name) + " on a connection to " + authority_.host;
      break;
    }
    co_await services_.loop.Sleep(Deadline::After(kPeekPoll));
  }
  std::string response = RenderRefusal(NewRefusal(403, "sni_mismatch", why));
  co_await Refuse(record::Event::Outcome::kDenied, record::Engine::kTls, why, std::move(response));
  co_return true;
}

Task<void> Tunnel::Serve() {
  ClientProtocol sniffed = co_await SniffProtocol();
  if (sniffed == ClientProtocol::kTls) {
    bool another = co_await NamesAnother();
    if (another) co_return;
  }
  // A ClientHello that has not come by now could ask for any name.
  if (sniffed == ClientProtocol::kNothing) co_return;
  if (handling().skip_tls) {
    co_await ServeRaw(false);
    co_return;
  }
  if (sniffed == ClientProtocol::kTls) {
    co_await ServeTls();
  } else if (sniffed == ClientProtocol::kHttp) {
    co_await ServeHttp("http", false);
  } else if (sniffed == ClientProtocol::kHttp2) {
    co_await ServeHttp("http", true);
  } else if (sniffed == ClientProtocol::kOther && handling().inspect) {
    co_await RefuseInside("the client speaks neither TLS nor HTTP", "tcp");
  } else {
    co_await ServeRaw(false);
  }
}

Task<void> Tunnel::ServeHttp(std::string scheme, bool http2) {
  bool confidential = scheme == "https";
  RequestContext context = NewContext(std::move(scheme), confidential);
  TransactionHandler handler(services_, owner_, context, *upstream_);
  if (http2) {
    upstream_->OfferHttp2();
    co_await ServeHttp2(services_.loop, client_, context.scheme, handler);
    co_await upstream_->Close();
  } else {
    co_await ServeHttp1(client_, handler);
  }
}

// Neither TLS nor HTTP: fine where only the connection is judged.
Task<void> Tunnel::ServeRaw(bool tls) {
  policy_->WhenReplaced([this] { client_.Abort(); });
  Result<std::unique_ptr<Stream>> server = co_await upstream_->OpenStream(tls);
  if (!server.ok()) co_return;
  if (services_.sent != nullptr) services_.sent->NotePassage(authority_);
  if (services_.ratchet != nullptr) services_.ratchet->NotePassage(authority_);
  co_await Relay(services_.loop, client_, *server.value());
}

Task<ClientProtocol> Tunnel::SniffInsideTls() {
  Deadline deadline = Deadline::After(kKeepAliveTimeout);
  for (;;) {
    Result<size_t> more = co_await client_.Fill(deadline);
    if (!more.ok()) co_return ClientProtocol::kNothing;
    const std::string_view sent = client_.buffered();
    const ClientProtocol sniffed = RecogniseProtocol(sent);
    if (sniffed != ClientProtocol::kNothing) co_return sniffed;
    // Nothing more comes that could make a request of it.
    if (more.value() == 0) co_return sent.empty() ? sniffed : ClientProtocol::kOther;
    if (sent.size() == more.value()) deadline = Deadline::After(kHeadTimeout);
  }
}

Task<void> Tunnel::ServeTls() {
  Result<SslOwner> ssl = services_.authority.NewServer(authority_.host);
  Status shaken = Error{Code::kIo, ssl.ok() ? "" : ssl.error().what};
  if (ssl.ok()) {
    Deadline deadline = Deadline::After(kHandshakeTimeout);
    shaken = co_await client_.StartTls(std::move(ssl).value(), deadline);
  }
  if (!shaken.ok()) {
    // The client does not trust the sandbox's CA, most often; it has hung up by now.
    record::Event event = NewEvent(record::Event::Outcome::kFailed);
    event.engine = record::Engine::kTls;
    event.reason = "handshake with the client: " + shaken.error().what;
    event.message = event.reason;
    if (services_.Record(event)) client_.Abort();
    co_return;
  }
  if (client_.protocol() == "h2") co_return co_await ServeHttp("https", true);
  ClientProtocol sniffed = co_await SniffInsideTls();
  if (sniffed == ClientProtocol::kNothing) co_return;
  if (sniffed == ClientProtocol::kHttp || sniffed == ClientProtocol::kHttp2) {
    co_await ServeHttp("https", sniffed == ClientProtocol::kHttp2);
  } else if (handling().inspect) {
    co_await RefuseInside("the client does not offer HTTP inside TLS");
  } else {
    co_await ServeRaw(true);
  }
}

Task<void> ServeCapturedTunnel(Services& services, const caller::Owner& owner, Stream& client,
                               Authority authority) {
  Tunnel tunnel(services, owner, client);
  co_await tunnel.RunCaptured(std::move(authority));
}

Task<void> ServeTunnel(Services& services, const caller::Owner& owner, Stream& client,
                       const codec::RequestHead& head) {
  Tunnel tunnel(services, owner, client);
  co_await tunnel.Run(head);
}

}  // namespace gateway
