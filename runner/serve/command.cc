// SPDX-License-Identifier: Apache-2.0
#include "serve/command.h"

#include <errno.h>

#include <algorithm>
#include <chrono>

#include "base/ascii.h"
#include "base/wire.h"
#include "codec/text/quantity.h"
#include "codec/text/shell_word.h"
#include "serve/message.h"
#include "serve/method.h"
#include "serve/script.h"
#include "session/shell.h"

namespace serve {
namespace {

// At most this many bytes of records are read for the list of refused requests.
constexpr size_t kRefusedBytesMax = size_t{1} << 20;

Error Usage(std::string what) { return {Code::kUsage, std::move(what)}; }

Result<int64_t> TimeoutOf(const codec::Json& params) {
  constexpr int64_t kThousand = 1000;
  const std::string text = params.StringAt("timeout");
  if (text.empty()) return int64_t{0};
  const int64_t seconds = TRY(codec::ParseDuration(text).Context("timeout"));
  if (seconds == 0) return Usage("timeout: a command needs a time limit");
  return seconds * kThousand;
}

}  // namespace

Result<std::unique_ptr<Task>> Command::Start(const session::Place& place, std::string id,
                                             const codec::Json& params, Output& output) {
  const std::string name = params.StringAt("sandbox");
  const std::string script = TRY(ScriptOf(params));
  if (script.find('\0') != std::string::npos) return Usage("a script has no NUL");
  if (script.size() > session::kScriptBytesMax) return Usage("the script is larger than 4 MiB");
  session::ExecRequest request;
  request.timeout_ms = TRY(TimeoutOf(params));
  request.waits = params.BooleanAt("wait", true);
  request.lists_changes = params.BooleanAt("changes", true);
  const codec::Json* input = params.Find("stdin");
  request.input = input != nullptr;
  std::string bytes;
  if (input != nullptr) {
    static const Method kInput{"stdin", "", {{"text"}, {"base64"}, {"end", Form::kFlag}}};
    TRY(CheckParams(kInput, *input));
    bytes = TRY(BytesOf(*input));
  }
  const session::Facts facts = TRY(place.Find(name));
  if (!facts.pool.empty() || facts.backend != "native") {
    return Error{Code::kUnsupported, "'" + name + "' is not a sandbox of this protocol"};
  }
  std::unique_ptr<Command> task(new Command(place, name, std::move(id), output));
  TRY(task->Connect());
  task->report_dir_ = facts.report_dir;
  task->events_from_ = report::EventBytes(facts.report_dir);
  if (params.Find("window") != nullptr) {
    task->has_window_ = true;
    TRY(task->Acknowledge(params.IntegerAt("window")));
  }
  if (params.BooleanAt("collect")) task->collected_.emplace();
  for (std::string_view rest = script; !rest.empty();) {
    const std::string_view piece = rest.substr(0, session::kPieceBytesMax);
    task->channel_.Send(wire::Write(session::MessageKind::kScript, piece));
    rest.remove_prefix(piece.size());
  }
  task->channel_.Send(wire::Write(session::MessageKind::kExec, request));
  if (input != nullptr) {
    task->input_ends_ = false;
    TRY(task->Input(std::move(bytes), input->BooleanAt("end", true)));
  }
  return std::unique_ptr<Task>(std::move(task));
}

Status Command::Connect() {
  constexpr std::chrono::milliseconds kInterval{100};
  Result<Fd> connection = place_.Connect(sandbox_, {});
  const bool later = !connection.ok() && connection.error().os_error == EAGAIN;
  next_ = later ? Deadline::After(kInterval) : Deadline::Never();
  if (later) return Ok();
  channel_.Attach(TRY(std::move(connection)));
  return Ok();
}

// While the client does not take what there is, it is not read either, so nothing is to be sent.
void Command::AddSources(std::vector<pollfd>* sources) const {
  sources->push_back({output().full() ? -1 : channel_.fd(), channel_.events(), 0});
  sources->insert(sources->end(), {{-1, 0, 0}, {-1, 0, 0}});
}

void Command::Serve(const pollfd* sources) {
  if (!done() && next_.passed()) {
    Status connected = Connect();
    if (!connected.ok()) Fail(connected.error());
  }
  if (done() || sources[0].revents == 0) return;
  // Several at once, since each turn of the loop looks at all there is.
  constexpr int kMessagesMax = 16;
  std::string message;
  Fd fd;
  for (int i = 0; i < kMessagesMax && !done() && !output().full(); ++i) {
    if (!channel_.Receive(&message, &fd)) break;
    TakeMessage(message);
  }
  // Behind it: to write to one that has ended would lose what it said last.
  if (!done()) channel_.Flush();
  if (!done() && channel_.closed()) Fail({Code::kIo, "the sandbox ended"});
}

void Command::TakeMessage(std::string_view message) {
  using session::MessageKind;
  MessageKind kind{};
  std::string_view bytes;
  session::CommandResult result;
  Error fault;
  if (wire::Read(message, kind, bytes) &&
      (kind == MessageKind::kOutput || kind == MessageKind::kError)) {
    TakeOutput(kind == MessageKind::kError, bytes);
  } else if (wire::Read(message, kind) && kind == MessageKind::kInputTaken) {
    input_owed_ = false;
    SendInput();
  } else if (wire::Read(message, kind, result) && kind == MessageKind::kResult) {
    End(std::move(result));
  } else if (wire::Read(message, kind, fault) && kind == MessageKind::kFault) {
    Fail(fault);
  } else {
    Fail({Code::kIo, "the sandbox's answer is malformed"});
  }
}

void Command::TakeOutput(bool error, std::string_view bytes) {
  if (!collected_) {
    return Send(error, [&](std::string* line) { return pieces_[error ? 1 : 0].Take(bytes, line); });
  }
  std::string& all = error ? collected_->error : collected_->output;
  const std::string_view taken = room_.Take(bytes);
  all += taken;
  left_out_[error ? 1 : 0] += static_cast<int64_t>(bytes.size() - taken.size());
}

void Command::Send(bool error, const std::function<bool(std::string* line)>& append) {
  // A copy, into the memory that it has.
  line_.assign(BeginNotification(
      "output", "\"request\":" + id() + ",\"stream\":\"" + (error ? "stderr" : "stdout") + "\","));
  if (append(&line_)) output().Write(line_.append(kNotificationEnd));
}

void Command::End(session::CommandResult result) {
  for (bool error : {false, true}) {
    Send(error, [&](std::string* line) { return pieces_[error ? 1 : 0].Finish(line); });
  }
  result.truncated_stdout += left_out_[0];
  result.truncated_stderr += left_out_[1];
  codec::Json json = JsonOf(result, collected_);
  Result<report::DenialList> refused =
      report::ReadDenials(report_dir_, events_from_, kRefusedBytesMax);
  json.Set("refused", refused.ok() ? JsonOf(refused.value().denials) : codec::Json::EmptyArray());
  json.Set("refused_complete", refused.ok() && refused.value().dropped == 0);
  Succeed(json);
}

// The supervisor then drops the window.
void Command::Cancel() {
  cancelled_ = true;
  if (channel_.fd() < 0) return Fail(Cancelled());
  channel_.Send(wire::Write(session::MessageKind::kCancel));
}

Status Command::Input(std::string bytes, bool ends) {
  if (input_ends_) return Usage("the command's standard input has ended");
  input_ += bytes;
  input_ends_ = ends;
  SendInput();
  return Ok();
}

// One piece at a time, so that what the command does not read stays here, and a cancel passes it.
void Command::SendInput() {
  if (input_owed_ || input_end_sent_ || (input_.empty() && !input_ends_)) return;
  const std::string piece = input_.substr(input_from_, session::kPieceBytesMax);
  input_from_ += piece.size();
  if (input_from_ == input_.size()) {
    input_.clear();
    input_from_ = 0;
  }
  input_owed_ = !piece.empty();
  input_end_sent_ = piece.empty();
  channel_.Send(wire::Write(session::MessageKind::kInput, piece));
}

Status Command::Acknowledge(int64_t bytes) {
  if (!has_window_) return Usage("that command has no 'window'");
  if (!cancelled_) channel_.Send(wire::Write(session::MessageKind::kWindow, bytes));
  return Ok();
}

}  // namespace serve
