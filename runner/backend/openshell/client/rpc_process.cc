// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/client/rpc_process.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/sys.h"
#include "codec/text/neutral.h"

namespace openshell {
namespace {

constexpr int kFailed = 1;
constexpr size_t kPieceBytes = size_t{256} << 10;
constexpr size_t kLineBytesMax = 16384;
constexpr size_t kLossBytesMax = 300;
constexpr std::chrono::seconds kAgainTime{2};
constexpr std::chrono::seconds kCallTime{30};
constexpr int kTries = 30;  // In a row.

std::string BrokenPath(const std::string& state, pid_t pid) {
  return state + "/broken-" + std::to_string(pid);
}

int Fail(const Error& error) {
  std::string line = "Error: " + codec::NeutralLine(error.what, kLineBytesMax) + "\n";
  (void)sys::WriteAll(STDERR_FILENO, line);
  return kFailed;
}

// In a process of its own, an output whose reader has gone is an error of the call.
void Begin() { (void)::signal(SIGPIPE, SIG_IGN); }

Status TakeOutput(const codec::Json& event, std::optional<int64_t>* exit) {
  for (const auto& [name, descriptor] :
       {std::pair("stdout", STDOUT_FILENO), std::pair("stderr", STDERR_FILENO)}) {
    const codec::Json* data = event.Find(name);
    if (data != nullptr) TRY(sys::WriteAll(descriptor, data->StringAt("data")));
  }
  // A status of 0 is absent on the wire.
  const codec::Json* end = event.Find("exit");
  if (end != nullptr) *exit = end->IntegerAt("exit_code");
  return Ok();
}

// What comes on standard input, piece by piece.
Result<std::optional<codec::Json>> NextInput() {
  std::string piece(kPieceBytes, '\0');
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Errno("reading the standard input");
    if (got == 0) return std::optional<codec::Json>();
    codec::Json json;
    json.Set("stdin", piece.substr(0, static_cast<size_t>(got)));
    return std::optional(std::move(json));
  }
}

// Its status alone would not tell from a command's own.
int BreakOff(const std::string& state, const Error& error) {
  (void)sys::WriteFile(BrokenPath(state, ::getpid()), error.what, 0600);
  return Fail(error);
}

int Exec(const std::string& state, const codec::Json& request, bool has_input, Deadline deadline) {
  Begin();
  Result<RpcConnection> connection =
      RpcConnection::Open(state, RpcConnection::Login::kWithToken, -1);
  if (!connection.ok()) return BreakOff(state, connection.error());
  std::optional<int64_t> exit;
  auto sink = [&](const codec::Json& event) { return TakeOutput(event, &exit); };
  codec::Json start;
  if (has_input) start.Set("start", request);
  const Status done =
      has_input ? connection.value().Stream(rpc::kExecSandboxInteractive, start, NextInput, sink,
                                            deadline)
                : connection.value().Stream(rpc::kExecSandbox, request, nullptr, sink, deadline);
  if (!done.ok()) return BreakOff(state, done.error());
  if (!exit) return BreakOff(state, {Code::kIo, "the gateway does not say how the command ended"});
  return static_cast<int>(*exit & 0xff);
}

// "[1764619200.123] [sandbox] [OCSF ] [ocsf] NET:OPEN ..."
std::string LineOf(const codec::Json& log) {
  constexpr int64_t kNanosInMilli = 1000000;
  const codec::Json* time = log.Find("event_time");
  char head[64];
  std::snprintf(
      head, sizeof head, "[%lld.%03lld] ",
      static_cast<long long>(time == nullptr ? 0 : time->IntegerAt("seconds")),
      static_cast<long long>(time == nullptr ? 0 : time->IntegerAt("nanos") / kNanosInMilli));
  std::string level = log.StringAt("level");
  level.resize(std::max<size_t>(level.size(), 5), ' ');
  const std::string line = head + ("[" + log.StringAt("source")) + "] [" + level + "] [" +
                           log.StringAt("target") + "] " + log.StringAt("message");
  return codec::NeutralLine(line, kLineBytesMax) + "\n";
}

class Records {
 public:
  Records(std::string state, codec::Json request)
      : state_(std::move(state)), request_(std::move(request)) {}

  int Follow() {
    Begin();
    for (int left = kTries; left > 0; --left) {
      const std::string before = cursor_;
      const Status done = FollowOnce();
      if (!written_.ok()) return kFailed;
      if (!done.ok() && done.error().code == Code::kNotFound) return 0;  // It was deleted.
      if (cursor_ != before) left = kTries;
      if (!done.ok() && done.error().code == Code::kInvalid && !cursor_.empty()) {
        Say("the gateway does not know where it broke off: " + done.error().what);
        cursor_.clear();
      }
      std::this_thread::sleep_for(kAgainTime);
    }
    Say("the gateway does not give records any more");
    return kFailed;
  }

 private:
  Status FollowOnce() {
    RpcConnection connection =
        TRY(RpcConnection::Open(state_, RpcConnection::Login::kWithToken, -1));
    codec::Json request = request_;
    if (!cursor_.empty()) request.Set("resume_after_cursor", cursor_);
    auto sink = [&](const codec::Json& event) -> Status {
      if (const codec::Json* log = event.Find("log")) written_ = Write(LineOf(*log));
      if (const codec::Json* warning = event.Find("warning")) Say(warning->StringAt("message"));
      const std::string cursor = event.StringAt("cursor");
      if (!cursor.empty()) cursor_ = cursor;
      if (!written_.ok()) return Error{Code::kIo, "no more is written"};
      return Ok();
    };
    return connection.Stream(rpc::kWatchSandbox, request, nullptr, sink, Deadline::Never());
  }

  static Status Write(const std::string& line) { return sys::WriteAll(STDOUT_FILENO, line); }
  static void Say(const std::string& what) {
    (void)sys::WriteAll(STDERR_FILENO, codec::NeutralLine(what, kLossBytesMax) + "\n");
  }

  std::string state_;
  codec::Json request_;
  std::string cursor_;  // Of the last event.
  Status written_ = Ok();
};

}  // namespace

Result<Child> StartExec(const std::string& state, const codec::Json& request, int input,
                        Deadline deadline, const Child::Streams& streams) {
  return Child::Fork(streams, [&] { return Exec(state, request, input >= 0, deadline); });
}

std::string TakeWhyBroken(const std::string& state, pid_t pid) {
  const Result<std::string> why = sys::ReadFile(BrokenPath(state, pid), kLineBytesMax);
  (void)::unlink(BrokenPath(state, pid).c_str());
  return why.ok() ? codec::NeutralLine(why.value(), kLossBytesMax) : std::string();
}

Result<Child> StartRecords(const std::string& state, const codec::Json& request,
                           const Child::Streams& streams) {
  return Child::Fork(streams, [&] { return Records(state, request).Follow(); });
}

Result<Child> StartCall(const std::string& state, const RpcMethod& method,
                        const codec::Json& request) {
  return Child::Fork({}, [&] {
    Begin();
    Result<RpcConnection> connection =
        RpcConnection::Open(state, RpcConnection::Login::kWithToken, -1);
    if (!connection.ok()) return Fail(connection.error());
    Result<codec::Json> response =
        connection.value().Call(method, request, Deadline::After(kCallTime));
    if (!response.ok()) return Fail(response.error());
    return sys::WriteAll(STDOUT_FILENO, codec::RenderJsonLine(response.value())).ok() ? 0 : kFailed;
  });
}

}  // namespace openshell
