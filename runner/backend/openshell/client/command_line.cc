// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/client/command_line.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>

#include "base/sys.h"
#include "codec/text/neutral.h"

namespace openshell {
namespace {

constexpr size_t kErrorBytesMax = 8192;
constexpr size_t kShownBytesMax = 600;
constexpr std::chrono::seconds kVersionTime{20};

// The releases that kTestedReleases names; the next minor version changes the wire format.
constexpr int kPatchMin = 111;
constexpr int kPatchMax = 112;
constexpr const char* kRemedy = "install OpenShell 0.0.112";

// The meaning of a part of the message of a failure. The first that is there counts: a certificate
// that is not accepted is a failure to connect, too.
struct Sign {
  std::string_view part;
  Code code;
  const char* hint;
  ErrorKind kind = ErrorKind::kOther;
};
constexpr const char* kTrustRemedy = "--gateway-tls DIR, with the ca.crt of that gateway";
constexpr const char* kClientRemedy =
    "--gateway-tls DIR, with a tls.crt and its tls.key that the gateway accepts";
constexpr const char* kLoginRemedy = "openshell gateway login NAME, and then --gateway NAME";
constexpr auto kSigns = std::to_array<Sign>({
    {"ddress already in use", Code::kIo, "", ErrorKind::kAddressTaken},
    {"invalid peer certificate", Code::kSetup, kTrustRemedy},
    {"failed to read TLS CA", Code::kSetup, kTrustRemedy},
    {"fatal alert", Code::kSetup, kClientRemedy},
    {"TLS key PEM", Code::kSetup, kClientRemedy},
    {"failed to read TLS", Code::kSetup, kClientRemedy},
    {"valid authentication credentials", Code::kSetup, kLoginRemedy},
    {"not have permission", Code::kRefused, kLoginRemedy},
    {"transport error", Code::kTemporary, ""},
    {"tcp connect error", Code::kTemporary, ""},
    {"h2 protocol error", Code::kTemporary, ""},
    {"client error (Connect)", Code::kTemporary, ""},
    {"service is currently unavailable", Code::kTemporary, ""},
    {"requested entity was not found", Code::kNotFound, ""},
    {"invalid argument", Code::kInvalid, ""},
    {"not in a state required", Code::kInvalid, ""},
    {"failed to parse sandbox policy", Code::kInvalid, ""},
    {"failed to load:", Code::kInvalid, ""},
});

// Reads what is there. Returns false if the pipe has ended.
Result<bool> ReadSome(int fd, std::string* into) {
  char piece[65536];
  ssize_t got = ::read(fd, piece, sizeof piece);
  if (got < 0 && errno == EINTR) return true;
  if (got < 0) return Errno("reading what OpenShell says");
  into->append(piece, static_cast<size_t>(got));
  return got > 0;
}

void KeepEnd(std::string* text, size_t bytes_max) {
  if (text->size() > bytes_max) text->erase(0, text->size() - bytes_max);
}

Result<int> Collect(Child& child, Answer* answer, Deadline deadline, int cancel) {
  bool open[2] = {true, true};
  std::string* texts[2] = {&answer->output, &answer->error};
  while (open[0] || open[1]) {
    pollfd pipes[3] = {{open[0] ? child.output().get() : -1, POLLIN, 0},
                       {open[1] ? child.error().get() : -1, POLLIN, 0},
                       {cancel, POLLIN, 0}};
    int ready = ::poll(pipes, 3, deadline.poll_ms());
    if (ready < 0 && errno != EINTR) return Errno("poll");
    if (ready == 0) return Error{Code::kTemporary, "no response in time"};
    if (ready > 0 && pipes[2].revents != 0) return Error{Code::kTemporary, "interrupted"};
    for (int i = 0; ready > 0 && i < 2; ++i) {
      if (pipes[i].revents != 0) open[i] = TRY(ReadSome(pipes[i].fd, texts[i]));
    }
    if (answer->output.size() > kAnswerBytesMax) {
      return Error{Code::kIo, "it prints more than " + std::to_string(kAnswerBytesMax) + " bytes"};
    }
    KeepEnd(&answer->error, kErrorBytesMax);
  }
  return child.Wait(deadline);
}

std::string NameOf(const char* program, const std::vector<std::string>& arguments) {
  std::string name = program;
  for (const std::string& word : arguments) {
    if (word.starts_with('-')) break;
    name += " " + word;
    if (name.size() > 40) break;
  }
  return name;
}

// The frame that its errors have: "Error:   x ", "|", "+->".
std::string WithoutFrame(std::string_view said) {
  std::string text;
  for (size_t from = 0; from < said.size();) {
    size_t end = std::min(said.find('\n', from), said.size());
    std::string_view line = said.substr(from, end - from);
    from = end + 1;
    if (line.starts_with("Error:")) line.remove_prefix(6);
    while (!line.empty() &&
           (line.front() == ' ' || static_cast<unsigned char>(line.front()) > 127)) {
      line.remove_prefix(1);
    }
    if (line.empty()) continue;
    if (!text.empty()) text += ' ';
    text += line;
  }
  return text;
}

}  // namespace

Result<Child> CommandLine::Start(std::vector<std::string> arguments, int input, int log,
                                 const char* program, int error_log) const {
  Child::Command command;
  command.argv = std::move(arguments);
  command.argv.insert(command.argv.begin(), program);
  command.environment = variables_;
  command.input = input;
  command.log = log;
  command.error_log = error_log;
  return Child::Start(places_, command);
}

Result<Answer> CommandLine::Ask(std::vector<std::string> arguments, Deadline deadline,
                                const Variables& more, const char* program, int input) const {
  const std::string name = NameOf(program, arguments);
  Child::Command command;
  command.argv = std::move(arguments);
  command.argv.insert(command.argv.begin(), program);
  command.environment = variables_;
  command.environment.insert(command.environment.end(), more.begin(), more.end());
  command.input = input;
  Child child = TRY(Child::Start(places_, command));
  return AwaitAnswer(std::move(child), deadline, cancel_).Context(name);
}

Result<Answer> AwaitAnswer(Child child, Deadline deadline, int cancel) {
  Answer answer;
  answer.status = TRY(Collect(child, &answer, deadline, cancel));
  return answer;
}

Result<std::string> CommandLine::Do(std::vector<std::string> arguments, Deadline deadline,
                                    const Variables& more, const char* program) const {
  const std::string name = NameOf(program, arguments);
  Answer answer = TRY(Ask(std::move(arguments), deadline, more, program));
  if (answer.status == 0) return std::move(answer.output);
  return ErrorOf(name, answer.error.empty() ? answer.output : answer.error);
}

Result<codec::Json> CommandLine::AskJson(std::vector<std::string> arguments,
                                         Deadline deadline) const {
  const std::string name = NameOf("openshell", arguments);
  const std::string text = TRY(Do(std::move(arguments), deadline));
  // A refresh of a token that failed is on standard output, too.
  size_t begin = 0;
  while (begin < text.size() && text[begin] != '{' && text[begin] != '[') {
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  }
  return codec::ParseJson(std::string_view(text).substr(begin)).Context(name);
}

Result<std::string> CommandLine::CheckVersion() const {
  if (places_.Find("openshell").empty()) {
    return Error{Code::kNotFound, "openshell is not on the PATH", kRemedy};
  }
  return ParseVersion(TRY(Do({"--version"}, Deadline::After(kVersionTime))));
}

Result<std::string> ParseVersion(std::string_view text) {
  constexpr std::string_view kName = "openshell ";
  Error error{Code::kUnsupported, "this version of OpenShell is not supported", kRemedy};
  if (!text.starts_with(kName)) return error;
  text.remove_prefix(kName.size());
  text = text.substr(0, text.find_first_of("\r\n"));
  error.what = "OpenShell " + codec::NeutralLine(std::string(text.substr(0, 60))) +
               " is not supported: " + kTestedReleases + " are, and gateways of " + kRpcReleases;
  int numbers[3] = {};
  const char* at = text.data();
  const char* end = text.data() + text.size();
  for (int i = 0; i < 3; ++i) {
    auto [next, fault] = std::from_chars(at, end, numbers[i]);
    if (fault != std::errc() || (i < 2 && (next == end || *next != '.'))) return error;
    at = next + (i < 2 ? 1 : 0);
  }
  const bool tested = numbers[0] == 0 && numbers[1] == 0 && numbers[2] >= kPatchMin &&
                      numbers[2] <= kPatchMax && (at == end || *at == '-' || *at == '+');
  if (!tested) return error;
  return "0.0." + std::to_string(numbers[2]);
}

Error ErrorOf(const std::string& what, std::string_view said) {
  std::string text = codec::NeutralLine(WithoutFrame(said));
  Error error{
      Code::kIo,
      what + ": " + (text.empty() ? "it failed without a word" : text.substr(0, kShownBytesMax))};
  for (const Sign& sign : kSigns) {
    if (text.find(sign.part) == std::string::npos) continue;
    error.code = sign.code;
    error.hint = sign.hint;
    error.kind = sign.kind;
    break;
  }
  return error;
}

}  // namespace openshell
