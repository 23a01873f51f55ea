// SPDX-License-Identifier: Apache-2.0
// Stands in for the supervisor: starts a gateway, hands it a listener, answers its questions about
// who owns a connection, and ends it when standard input ends. Product code only through its
// headers. Lines of standard input: "update FILE" puts that policy in force, "keep FILE" likewise
// unless it is invalid; each is answered with "done" or "rejected".
//
//   gateway_driver POLICY CA_BUNDLE OUT_DIR ADDRESS PORT INIT_PID [NAME@HOST=VALUE...]
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/sys.h"
#include "caller/connection_owners.h"
#include "gateway/gateway.h"
#include "policy/load/parse.h"

namespace {

Result<Fd> Listen(const std::string& address, uint16_t port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return Errno("socket");
  int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  if (::inet_pton(AF_INET, address.c_str(), &name.sin_addr) != 1) return Errno("inet_pton");
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) {
    return Errno("bind");
  }
  if (::listen(socket.get(), 128) != 0) return Errno("listen");
  return socket;
}

gateway::BoundSecret ParseSecret(const std::string& text) {
  size_t at = text.find('@');
  size_t equals = text.find('=', at);
  ENSURE(at != std::string::npos && equals != std::string::npos);
  return {text.substr(0, at), text.substr(at + 1, equals - at - 1),
          Secret(std::string_view(text).substr(equals + 1))};
}

struct Arguments {
  std::string policy;
  std::string ca_bundle;
  std::string out;
  std::string address;
  uint16_t port = 0;
  pid_t init = 0;
  std::vector<std::string> secrets;
};

Result<policy::Policy> ReadPolicy(const std::string& path) {
  std::string yaml = TRY(sys::ReadFile(path, 262144));
  policy::ParseContext context;
  context.file = "policy.yaml";
  return std::move(TRY(policy::ParsePolicy(yaml, context)).policy);
}

// One line of standard input.
Status CarryOutLine(gateway::Gateway& running, const std::string& line) {
  size_t space = std::min(line.find(' '), line.size() - 1);
  Result<policy::Policy> next = ReadPolicy(line.substr(space + 1));
  if (next.ok()) {
    TRY(running.Update(next.value(), "sha256:0123"));
  } else {
    TRY(running.RejectUpdate(next.error().what, line.substr(0, space) == "update"));
  }
  std::puts(next.ok() ? "done" : "rejected");
  std::fflush(stdout);
  return Ok();
}

// Answers until standard input ends, or the gateway does.
Status AnswerUntilEnd(gateway::Gateway& running, int identity, pid_t init) {
  caller::ConnectionOwners owners(init, false, Fd(), {});
  pollfd entries[3] = {
      {identity, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}, {running.pidfd(), POLLIN, 0}};
  for (;;) {
    if (::poll(entries, 3, owners.pending() ? 0 : -1) < 0) return Errno("poll");
    TRY(owners.Proceed(identity));
    if (entries[2].revents != 0) return Error{Code::kIo, "the gateway ended by itself"};
    if (entries[1].revents != 0) {
      char line[4096];
      ssize_t n = ::read(STDIN_FILENO, line, sizeof line);
      if (n <= 1) return Ok();
      TRY(CarryOutLine(running, std::string(line, static_cast<size_t>(n - 1))));
    }
    if (entries[0].revents != 0) TRY(owners.AnswerQuestion(identity));
  }
}

Status Drive(const Arguments& arguments) {
  policy::Policy policy = TRY(ReadPolicy(arguments.policy));
  auto [asked, asking] = TRY(sys::SocketPair());
  constexpr int kAppend = O_WRONLY | O_CREAT | O_APPEND;
  gateway::GatewayConfig config;
  config.policy = std::move(policy);
  config.policy_file = "policy.yaml";
  for (const std::string& text : arguments.secrets) config.secrets.push_back(ParseSecret(text));
  config.ca_bundle_pem = TRY(sys::ReadFile(arguments.ca_bundle, size_t{8} << 20));
  config.events_jsonl = TRY(sys::Open(arguments.out + "/events.jsonl", kAppend, 0644));
  config.events_log = TRY(sys::Open(arguments.out + "/events.log", kAppend, 0644));
  config.identity = std::move(asking);
  gateway::Gateway running = TRY(gateway::Gateway::Start(std::move(config)));
  std::string authority = TRY(running.AwaitAuthority().Context("starting the gateway"));
  TRY(running.AwaitReady().Context("starting the gateway"));
  TRY(sys::WriteFile(arguments.out + "/ca.pem", authority));
  Fd listener = TRY(Listen(arguments.address, arguments.port));
  TRY(running.Serve({GatewaySocket::Kind::kProxy, std::move(listener)}));
  std::printf("ready\n");
  std::fflush(stdout);
  TRY(AnswerUntilEnd(running, asked.get(), arguments.init));
  return running.Finish(Deadline::After(std::chrono::seconds(5)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return 64;
  Arguments arguments{argv[1],
                      argv[2],
                      argv[3],
                      argv[4],
                      static_cast<uint16_t>(std::stoi(argv[5])),
                      static_cast<pid_t>(std::stoi(argv[6])),
                      {}};
  for (int i = 7; i < argc; ++i) arguments.secrets.emplace_back(argv[i]);
  Status status = Drive(arguments);
  if (status.ok()) return 0;
  std::fprintf(stderr, "gateway_driver: %s\n", status.error().what.c_str());
  return 1;
}
