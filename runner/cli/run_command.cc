// SPDX-License-Identifier: Apache-2.0
#include "cli/run_command.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "cli/setup_command.h"
#include "codec/wire/http_target.h"
#include "forge/actions.h"
#include "forge/open/open.h"
#include "policy/model/host_pattern.h"
#include "run/report_directory.h"
#include "run/run.h"

namespace cli {

Result<run::Request> ReadRequest(const Arguments& arguments) {
  run::Request request = DefaultRequest();
  for (const RunOption& option : kRunOptions) {
    for (const std::string& text : arguments.All(option.spec.name)) {
      TRY(SetOption(option, text, &request));
    }
    if (arguments.Has(option.spec.name)) request.given.emplace_back(option.spec.name);
  }
  if (!arguments.operands.empty()) {
    return Error{Code::kUsage, "unexpected '" + arguments.operands.front() + "'",
                 "agentic-ci run -- " + arguments.operands.front()};
  }
  request.command = arguments.command;
  TRY(CheckRequest(request));
  return request;
}

namespace {

// The lines of a file that are not empty.
Result<std::vector<std::string>> ReadWatchedTexts(const std::string& file) {
  constexpr size_t kBytesMax = size_t{64} << 10;
  std::string text = TRY(ReadNamedFile(file, kBytesMax).Context("reading the watched texts"));
  std::vector<std::string> texts;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) texts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return texts;
}

// HOST[:PORT].
Status SetModelHost(const std::string& text, run::Request* request) {
  Result<std::pair<std::string, uint16_t>> server = codec::ParseAuthority(text);
  if (!server.ok()) server = codec::ParseAuthority(text + ":0");
  std::string host = server.ok() ? policy::CanonicalHost(server.value().first) : "";
  if (host.empty() || !policy::HostFault(host).empty()) {
    return Usage("--model-host: '" + text + "' is not HOST[:PORT]");
  }
  request->model_host = host;
  request->model_port = server.value().second;
  return Ok();
}

// Says that what a person pipes into `run` reaches no one. In a job, standard input may hold the
// rest of the job's own script.
void WarnOfInput(const Arguments& arguments) {
  if (forge::LogCommandsOf(sys::Environment)) return;  // Under a CI system.
  for (const auto& [name, values] : arguments.values) {
    for (const std::string& value : values) {
      if (value == "/dev/stdin" || value == "-") return;
    }
  }
  struct stat st {};
  int waiting = 0;
  if (::fstat(STDIN_FILENO, &st) != 0) return;
  bool file = S_ISREG(st.st_mode) && ::lseek(STDIN_FILENO, 0, SEEK_CUR) < st.st_size;
  bool pipe = S_ISFIFO(st.st_mode) && ::ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting > 0;
  if (!file && !pipe) return;
  logging::Warn("standard input is not read: the agent's own is empty",
                {{"for a task", "--prompt-file /dev/stdin"}});
}

}  // namespace

void SetRefusedReportAside(const Error& error, const std::string& report_dir) {
  if (error.kind != ErrorKind::kReportPlace) return;
  if (!run::IsInCi()) return;
  Result<std::string> moved = run::SetReportAside(report_dir, ".refused-" + sys::RandomHex());
  if (!moved.ok()) {
    logging::Warn("the refused report directory could not be renamed",
                  {{"why", moved.error().what}});
  } else if (!moved.value().empty()) {
    logging::Warn("the refused report directory was renamed, so that it is not uploaded",
                  {{"to", moved.value()}});
  }
}

Result<int> RunInBackend(run::Request request) {
  const std::string report_dir = request.report_dir;
  Result<int> status = run::Run(std::move(request), TaskOptionRules());
  if (!status.ok()) SetRefusedReportAside(status.error(), report_dir);
  return status;
}

Result<int> RunCommand(const Arguments& arguments) {
  run::Request request = TRY(ReadRequest(arguments));
  if (arguments.Has("sandbox")) return RunInSandbox(arguments, request);
  if (arguments.Has("watch-texts")) {
    request.watched_texts = TRY(ReadWatchedTexts(arguments.Get("watch-texts")));
  }
  if (arguments.Has("watch-sent")) {
    constexpr size_t kCharactersMin = 8;  // Shorter ones in Base64 are in everything.
    request.sent_texts = TRY(ReadWatchedTexts(arguments.Get("watch-sent")));
    for (const std::string& text : request.sent_texts) {
      if (text.size() < kCharactersMin) return Usage("--watch-sent: '" + text + "' is too short");
    }
  }
  if (arguments.Has("model-host")) TRY(SetModelHost(arguments.Get("model-host"), &request));
  request.record_programs = arguments.Has("record-programs");
  request.record_files = arguments.Has("record-files");
  logging::SetQuiet(request.json || request.quiet);
  WarnOfInput(arguments);
  for (const char* name : {"watch-texts", "watch-sent", "model-host", "record-programs"}) {
    if (request.backend.local || !arguments.Has(name)) continue;
    return Error{Code::kUnsupported, "--" + std::string(name) + " needs agentic-ci's own sandbox",
                 "--backend native"};
  }
  return RunInBackend(std::move(request));
}

}  // namespace cli
