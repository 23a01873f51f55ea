// SPDX-License-Identifier: Apache-2.0
#include "eval/run/tool_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/sys.h"
#include "base/thread.h"
#include "codec/wire/http_head.h"

namespace eval {
namespace {

constexpr size_t kHeadBytesMax = size_t{64} << 10;
constexpr size_t kBodyBytesMax = size_t{4} << 20;
// A call has few values, of which each costs about 100 bytes in each copy of it.
constexpr size_t kValuesMax = 10000;
// The weight of all calls (WeightOf) and the bytes of their results. They bound what is left in the
// record.
constexpr size_t kRecordBytesMax = size_t{32} << 20;
constexpr std::chrono::seconds kPatience{10};  // The time for a request that has begun.
constexpr int kBacklog = 64;

// Reads until `done` or the peer's end.
template <typename Done>
bool ReadUntil(int socket, std::string* bytes, size_t bytes_max, Deadline deadline, Done done) {
  while (!done()) {
    Result<bool> readable = sys::WaitReadable(socket, deadline);
    if (!readable.ok() || !readable.value() || bytes->size() > bytes_max) return false;
    char piece[16384];
    ssize_t got = ::read(socket, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes->append(piece, static_cast<size_t>(got));
  }
  return true;
}

void Send(int socket, int status, std::string_view reason, const std::string& body) {
  codec::HttpFields fields = {{"Content-Length", std::to_string(body.size())},
                              {"Connection", "close"}};
  if (!body.empty()) fields.push_back({"Content-Type", "application/json"});
  std::string head = codec::RenderResponseHead(status, reason, fields);
  (void)sys::WriteWithin(socket, head + body, Deadline::After(kPatience)).ok();
}

// Opens a socket that listens at an address, and says at which port.
Result<Fd> Listen(const ToolAddress& where, int* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(where.port);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // The port of the cell before has connections that end slowly.
  const int again = where.port != 0 ? 1 : 0;
  if (::inet_pton(AF_INET, where.ip.c_str(), &address.sin_addr) != 1 || !listener.valid() ||
      ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &again, sizeof again) != 0 ||
      ::bind(listener.get(), generic, size) != 0 || ::listen(listener.get(), kBacklog) != 0 ||
      ::getsockname(listener.get(), generic, &size) != 0) {
    return Errno("listening on " + where.ip + ":" + std::to_string(where.port));
  }
  *port = ntohs(address.sin_port);
  return listener;
}

}  // namespace

struct ToolServer::Body {
  Body(const std::vector<Tool>& tools, codec::Json state) : tool_state(tools, std::move(state)) {}

  void Serve() {
    for (;;) {
      pollfd sources[] = {{listener.get(), POLLIN, 0}, {stop_read.get(), POLLIN, 0}};
      if (::poll(sources, 2, -1) < 0 && errno != EINTR) return;
      if (sources[1].revents != 0) return;
      if (sources[0].revents == 0) continue;
      Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (socket.valid()) Answer(socket.get());
    }
  }

  // One request per connection, one after the other: each call sees what the one before did.
  void Answer(int socket) {
    std::string bytes;
    codec::HeadScan scan;
    Deadline deadline = Deadline::After(kPatience);
    bool headed = ReadUntil(socket, &bytes, kHeadBytesMax, deadline, [&] {
      scan = codec::ScanHead(bytes);
      return scan.state != codec::HeadScan::kPartial;
    });
    if (!headed || scan.state != codec::HeadScan::kComplete) return;
    Result<codec::RequestHead> head =
        codec::ParseRequestHead(std::string_view(bytes).substr(0, scan.size));
    if (!head.ok()) return Send(socket, 400, "Bad Request", "");
    if (!MayAsk(head.value())) return Send(socket, 404, "Not Found", "");
    if (head.value().method != "POST") return Send(socket, 405, "Method Not Allowed", "");
    Result<codec::BodyFraming> framing = codec::RequestFraming(head.value());
    if (!framing.ok() || framing.value().kind != codec::BodyFraming::kLength ||
        framing.value().length > kBodyBytesMax) {
      return Send(socket, 411, "Length Required", "");
    }
    const size_t whole = scan.size + framing.value().length;
    if (!ReadUntil(socket, &bytes, whole, deadline, [&] { return bytes.size() >= whole; })) return;
    Result<codec::Json> message =
        codec::ParseJson(std::string_view(bytes).substr(scan.size), {.values_max = kValuesMax});
    if (!message.ok()) return Send(socket, 400, "Bad Request", "");
    asked = true;
    recorded += WeightOf(message.value());
    if (recorded > kRecordBytesMax) return Send(socket, 503, "Service Unavailable", "");
    std::optional<codec::Json> call;
    std::optional<codec::Json> answer = tool_state.Answer(message.value(), &call);
    if (call) {
      const std::string line = Masked(codec::RenderJsonLine(*call)) + "\n";
      recorded += line.size();
      Status written = sys::WriteAll(record.get(), line);
      if (!written.ok()) {
        failure = std::move(written);
        return;
      }
    }
    if (!answer) return Send(socket, 202, "Accepted", "");
    Send(socket, 200, "OK", codec::RenderJsonLine(*answer));
  }

  // A secret path keeps others away, and a page in a browser even where it is known.
  bool MayAsk(const codec::RequestHead& head) const {
    if (path.empty()) return true;
    return head.target.size() == path.size() &&
           ::CRYPTO_memcmp(head.target.data(), path.data(), path.size()) == 0 &&
           codec::FindField(head.fields, "origin") == nullptr;
  }
  std::string Masked(std::string text) const {
    return mask == nullptr || mask->empty() ? std::move(text) : mask->Mask(text);
  }

  ToolState tool_state;
  std::string directory;
  std::string path;
  const codec::SecretMask* mask = nullptr;
  Fd listener;
  Fd record;
  Fd stop_read;
  Fd stop_write;
  int port = 0;
  size_t recorded = 0;
  bool asked = false;
  Status failure = Ok();
  std::thread thread;
};

ToolServer::ToolServer(std::unique_ptr<Body> body) : body_(std::move(body)) {}
ToolServer::ToolServer(ToolServer&&) noexcept = default;
ToolServer::~ToolServer() {
  if (body_) (void)Stop().ok();
}
int ToolServer::port() const { return body_->port; }
bool ToolServer::asked() const { return body_->asked; }

Result<ToolServer> ToolServer::Start(const std::vector<Tool>& tools, codec::Json state,
                                     const std::string& directory, const ToolAddress& address,
                                     const codec::SecretMask* mask) {
  auto body = std::make_unique<Body>(tools, std::move(state));
  body->directory = directory;
  body->path = address.path;
  body->mask = mask;
  body->record =
      TRY(sys::Open(directory + "/tools.jsonl", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644));
  body->listener = TRY(Listen(address, &body->port));
  auto [stop_read, stop_write] = TRY(sys::Pipe());
  body->stop_read = std::move(stop_read);
  body->stop_write = std::move(stop_write);
  Body* raw = body.get();
  body->thread = TRY(sys::StartThread([raw] { raw->Serve(); }, Deadline::After(kPatience)));
  return ToolServer(std::move(body));
}

Status ToolServer::Stop() {
  if (!body_->thread.joinable()) return Ok();
  body_->stop_write.Close();
  body_->thread.join();
  if (!body_->failure.ok()) return body_->failure;
  return sys::WriteFile(body_->directory + "/state.json",
                        body_->Masked(codec::RenderJson(body_->tool_state.state())));
}

}  // namespace eval
