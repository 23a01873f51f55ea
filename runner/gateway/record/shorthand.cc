// SPDX-License-Identifier: Apache-2.0
// OpenShell's one line for people. One is written for every request: it is appended piece by piece
// to where it will be kept.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <string_view>

#include "base/ascii.h"
#include "codec/text/neutral.h"
#include "gateway/record/limits.h"
#include "gateway/record/ocsf.h"

namespace gateway {
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

// Severity and action.
std::string_view Beginning(Event::Outcome outcome) {
  switch (outcome) {
    case Event::Outcome::kNone:
      return " [INFO]";
    case Event::Outcome::kAllowed:
    case Event::Outcome::kAudited:
      return " [INFO] ALLOWED";
    case Event::Outcome::kDenied:
      return " [MED] DENIED";
    case Event::Outcome::kFailed:
      return " [LOW]";
  }
  return "";
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
  AppendWord(out, event.engine);
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
  if (!Denied(event) && event.engine == "l7-mcp") AppendMessage(out, event);
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

}  // namespace gateway
