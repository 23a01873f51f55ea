// SPDX-License-Identifier: Apache-2.0
#include "record/shorthand.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <string_view>

#include "base/ascii.h"
#include "codec/text/neutral.h"
#include "record/limits.h"

namespace record {
namespace {

// The forms of a byte in a word: as it is, behind a backslash, or as "\u{7f}".
enum class Form : uint8_t { kPlain, kBackslash, kEscape };

constexpr std::array<Form, 256> kForms = [] {
  std::array<Form, 256> forms{};
  for (size_t byte = 0; byte <= 0x20; ++byte) forms[byte] = Form::kEscape;
  forms[0x7f] = Form::kEscape;
  for (char c : std::string_view("\\[]")) forms[static_cast<unsigned char>(c)] = Form::kBackslash;
  return forms;
}();

Form FormOf(char c) { return kForms[static_cast<unsigned char>(c)]; }

void AppendEscape(std::string& out, char c) {
  char text[12];
  ::snprintf(text, sizeof text, "\\u{%x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  out += text;
}

// A word: nothing in it can end the word, the bracket or the line. A program's path keeps its
// brackets readable, since none encloses it.
enum class Brackets { kEscaped, kKept };
void AppendWord(std::string& out, std::string_view text, Brackets brackets = Brackets::kEscaped) {
  for (size_t at = 0; at < text.size();) {
    size_t plain = at;
    while (plain < text.size() && FormOf(text[plain]) == Form::kPlain) ++plain;
    out.append(text.substr(at, plain - at));
    if (plain == text.size()) return;
    char c = text[plain];
    if (FormOf(c) == Form::kEscape) {
      AppendEscape(out, c);
    } else {
      if (brackets == Brackets::kEscaped) out += '\\';
      out += c;
    }
    at = plain + 1;
  }
}

void AppendNumber(std::string& out, int64_t number) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

// A path, at most kRecordPathBytesMax bytes of it.
void AppendPath(std::string& out, const std::string& path) {
  if (path.size() <= kRecordPathBytesMax) return AppendWord(out, path, Brackets::kKept);
  AppendWord(out, codec::CutUtf8(codec::ValidUtf8(path), kRecordPathBytesMax), Brackets::kKept);
}

// Free text in brackets: line ends become spaces, at most `bytes_max` bytes and "...".
void AppendText(std::string& out, std::string_view text, size_t bytes_max) {
  std::string plain;
  for (char c : text) {
    if (c == '\r' || c == '\n') {
      plain += ' ';
    } else if (ascii::IsControl(c)) {
      AppendEscape(plain, c);
    } else {
      plain += c;
    }
  }
  size_t end = std::min(plain.size(), bytes_max);
  bool cut = end < plain.size();
  while (cut && end > 0 && (static_cast<unsigned char>(plain[end]) & 0xc0) == 0x80) --end;
  out.append(plain, 0, end).append(cut ? "..." : "");
}

const std::string& ReasonOf(const Event& event) {
  return event.reason.empty() ? event.message : event.reason;
}

void AppendHost(std::string& out, const Event& event) {
  if (event.host.find(':') == std::string::npos) return AppendWord(out, event.host);
  out.append("[").append(event.host).append("]");
}

bool Denied(const Event& event) { return event.outcome == Event::Outcome::kDenied; }

// Severity and action, in the order of Event::Outcome.
constexpr std::array<std::string_view, 5> kBeginnings = {
    " [INFO]", " [INFO] ALLOWED", " [INFO] ALLOWED", " [MED] DENIED", " [LOW]"};

std::string_view Beginning(Event::Outcome outcome) {
  return kBeginnings[static_cast<size_t>(outcome)];
}

void AppendProcess(std::string& out, const Event& event) {
  if (event.binary.empty()) return;
  out += ' ';
  AppendPath(out, event.binary);
  out += '(';
  AppendNumber(out, event.pid);
  out += ')';
}

void AppendPolicy(std::string& out, const Event& event) {
  if (event.policy.empty()) return;
  out += " [policy:";
  AppendWord(out, event.policy);
  out += " engine:";
  AppendWord(out, EngineName(event));
  out += ']';
}

void AppendMessage(std::string& out, const Event& event) {
  if (event.message.empty()) return;
  out += " [msg:";
  AppendText(out, event.message, kMessageBytesMax);
  out += ']';
}

void AppendConnection(std::string& out, const Event& event) {
  bool failed = event.outcome == Event::Outcome::kFailed;
  out += Denied(event) ? "NET:REFUSE" : (failed ? "NET:FAIL" : "NET:OPEN");
  out += Beginning(event.outcome);
  AppendProcess(out, event);
  if (!event.binary.empty() && !event.host.empty()) out += " ->";
  if (!event.host.empty()) {
    out += ' ';
    AppendHost(out, event);
    out += ':';
    AppendNumber(out, event.port);
    if (!event.transport.empty()) out.append("/").append(event.transport);
  }
  AppendPolicy(out, event);
  bool reasoned = Denied(event) && !ReasonOf(event).empty();
  if (reasoned) {
    out += " [reason:";
    AppendText(out, ReasonOf(event), kReasonBytesMax);
    out += ']';
  }
  bool bare = event.binary.empty() && event.host.empty() && event.policy.empty() && !reasoned;
  if (bare || event.reason == kTransparentAllowed) AppendMessage(out, event);
}

void AppendUrl(std::string& out, const Event& event) {
  bool is_default = (event.scheme == "http" && event.port == 80) ||
                    (event.scheme == "https" && event.port == 443);
  out.append(event.scheme).append("://");
  AppendHost(out, event);
  if (!is_default) {
    out += ':';
    AppendNumber(out, event.port);
  }
  AppendPath(out, event.path);
}

void AppendRequest(std::string& out, const Event& event) {
  out.append("HTTP:").append(event.method).append(Beginning(event.outcome));
  AppendProcess(out, event);
  if (!event.binary.empty()) out += " ->";
  out.append(" ").append(event.method).append(" ");
  AppendUrl(out, event);
  AppendPolicy(out, event);
  bool reasoned = Denied(event) && !ReasonOf(event).empty();
  std::string_view before = " [";
  for (const auto& [key, value] : event.context) {
    out.append(before).append(key).append(":");
    AppendWord(out, value);
    before = " ";
  }
  if (reasoned) {
    out.append(before).append("reason:");
    AppendText(out, ReasonOf(event), kReasonBytesMax);
  }
  if (reasoned || !event.context.empty()) out += ']';
  // OpenShell: what a call of MCP was, nothing else tells.
  if (!Denied(event) && event.engine == Engine::kL7Mcp) AppendMessage(out, event);
}

std::string OneLine(std::string_view text) {
  return codec::NeutralLine(std::string(text), kReasonBytesMax);
}

// A word inside brackets: nothing in it can end them.
std::string Word(std::string_view text) {
  std::string out;
  for (char c : OneLine(text)) {
    if (c == '\\' || c == '[' || c == ']') out += '\\';
    out += c == ' ' ? '_' : c;
  }
  return out;
}

// A quoted title, escaped as OpenShell does.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : (c == '\r' ? "\\r" : "\\t");
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// By Notice::Severity, from 1.
constexpr std::array<const char*, 5> kSeverityTags = {"", " [INFO]", " [LOW]", " [MED]", " [HIGH]"};

std::string Context(const Notice& notice, std::string text) {
  for (const auto& [key, value] : notice.context) {
    if (!text.empty()) text += ' ';
    text += key + ":" + Word(value);
  }
  for (const auto& [key, value] : notice.counts) {
    if (!text.empty()) text += ' ';
    text += key + ":" + std::to_string(value);
  }
  return text.empty() ? "" : " [" + text + "]";
}

}  // namespace

void AppendShorthand(const Event& event, std::string& out) {
  size_t start = out.size();
  if (event.kind == Event::Kind::kConnection) {
    AppendConnection(out, event);
  } else {
    AppendRequest(out, event);
  }
  std::string_view line = std::string_view(out).substr(start);
  bool ascii = std::all_of(line.begin(), line.end(), [](char c) { return (c & 0x80) == 0; });
  if (!ascii) out.replace(start, std::string::npos, codec::ValidUtf8(line));
}

std::string RenderShorthand(const Event& event) {
  std::string out;
  AppendShorthand(event, out);
  return out;
}

std::string RenderShorthand(const Notice& notice) {
  const std::string severity = kSeverityTags[static_cast<size_t>(notice.severity)];
  switch (notice.kind) {
    case Notice::Kind::kInference:
      return codec::ValidUtf8("API:INFERENCE" + severity +
                              (notice.succeeded ? " Success" : " Failure") +
                              (notice.model.empty() ? "" : " " + OneLine(notice.model)) + " via " +
                              OneLine(notice.provider) + " " + std::to_string(notice.duration_ms) +
                              "ms [" + notice.method + " " + Word(notice.path) + "]");
    case Notice::Kind::kFinding:
      return codec::ValidUtf8("FINDING:" + notice.activity + severity + " " + Quoted(notice.title) +
                              Context(notice, "type:" + notice.type));
    case Notice::Kind::kConfig:
      return codec::ValidUtf8("CONFIG:" + notice.activity + severity + " " + OneLine(notice.title) +
                              Context(notice, ""));
    case Notice::Kind::kLifecycle:
      return codec::ValidUtf8("LIFECYCLE:" + notice.activity + severity + " " +
                              OneLine(notice.title) + (notice.succeeded ? " success" : " failure"));
  }
  return "EVENT";
}

std::string RenderTime(int64_t time_ms) {
  using std::chrono::days;
  auto at = std::chrono::sys_time<std::chrono::milliseconds>(std::chrono::milliseconds(time_ms));
  auto day = std::chrono::floor<days>(at);
  std::chrono::year_month_day date(day);
  std::chrono::hh_mm_ss<std::chrono::milliseconds> time(at - day);
  std::string text = "0000-00-00T00:00:00.000Z";
  auto put = [&](size_t end, int64_t value) {
    for (; value > 0 && end > 0; value /= 10) text[--end] = static_cast<char>('0' + value % 10);
  };
  put(4, int{date.year()});
  put(7, unsigned{date.month()});
  put(10, unsigned{date.day()});
  put(13, time.hours().count());
  put(16, time.minutes().count());
  put(19, time.seconds().count());
  put(23, time.subseconds().count());
  return text;
}

}  // namespace record
