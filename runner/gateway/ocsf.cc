// SPDX-License-Identifier: Apache-2.0
#include "gateway/ocsf.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string_view>

#include "codec/json_line.h"
#include "codec/neutral.h"
#include "gateway/limits.h"

namespace gateway {
namespace {

// Most records are shorter.
constexpr size_t kRecordBytesUsual = 1536;

bool IsControl(char c) {
  unsigned char byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

std::string EscapeByte(char c) {
  char text[12];
  ::snprintf(text, sizeof text, "\\u{%x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  return text;
}

// A word of the shorthand: nothing in it can end the word, the bracket or the line.
std::string EscapeWord(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == ' ' || IsControl(c)) {
      out += EscapeByte(c);
      continue;
    }
    if (c == '\\' || c == '[' || c == ']') out += '\\';
    out += c;
  }
  return out;
}

// A program's path: as EscapeWord, but brackets stay readable since none encloses it.
std::string EscapeProgram(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == ' ' || IsControl(c)) {
      out += EscapeByte(c);
    } else {
      out += c;
    }
  }
  return out;
}

// Free text in brackets: line ends become spaces, at most `bytes_max` bytes and "...".
std::string EscapeText(std::string_view text, size_t bytes_max) {
  std::string out;
  for (char c : text) {
    if (c == '\r' || c == '\n') {
      out += ' ';
    } else if (IsControl(c)) {
      out += EscapeByte(c);
    } else {
      out += c;
    }
  }
  if (out.size() <= bytes_max) return out;
  size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xc0) == 0x80) --end;
  return out.substr(0, end) + "...";
}

const std::string& ReasonOf(const Event& event) {
  return event.reason.empty() ? event.message : event.reason;
}

std::string HostPort(const Event& event) {
  bool bracketed = event.host.find(':') != std::string::npos;
  return (bracketed ? "[" + event.host + "]" : EscapeWord(event.host)) + ":" +
         std::to_string(event.port);
}

std::string Url(const Event& event) {
  bool is_default = (event.scheme == "http" && event.port == 80) ||
                    (event.scheme == "https" && event.port == 443);
  bool bracketed = event.host.find(':') != std::string::npos;
  std::string url = event.scheme + "://";
  url += bracketed ? "[" + event.host + "]" : EscapeWord(event.host);
  if (!is_default) url += ":" + std::to_string(event.port);
  return url + EscapeProgram(codec::CutUtf8(codec::ValidUtf8(event.path), kRecordPathBytesMax));
}

std::string Process(const Event& event) {
  if (event.binary.empty()) return "";
  return EscapeProgram(codec::CutUtf8(codec::ValidUtf8(event.binary), kRecordPathBytesMax)) + "(" +
         std::to_string(event.pid) + ")";
}

bool Denied(const Event& event) { return event.outcome == Event::Outcome::kDenied; }

// Severity, action and what follows them in both kinds of line.
std::string Begin(const Event& event) {
  bool failed = event.outcome == Event::Outcome::kFailed;
  std::string line = Denied(event) ? " [MED]" : (failed ? " [LOW]" : " [INFO]");
  if (Denied(event)) line += " DENIED";
  if (event.outcome == Event::Outcome::kAllowed || event.outcome == Event::Outcome::kAudited) {
    line += " ALLOWED";
  }
  return line;
}

std::string PolicyPart(const Event& event) {
  if (event.policy.empty()) return "";
  return " [policy:" + EscapeWord(event.policy) + " engine:" + EscapeWord(event.engine) + "]";
}

struct Activity {
  int id;
  std::string_view name;
};

Activity ConnectionActivity(const Event& event) {
  if (event.outcome == Event::Outcome::kDenied) return {5, "Refuse"};
  if (event.outcome == Event::Outcome::kFailed) return {4, "Fail"};
  return {1, "Open"};
}

std::string RenderConnection(const Event& event) {
  std::string line = "NET:";
  for (char c : ConnectionActivity(event).name)
    line += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  line += Begin(event);
  std::string process = Process(event);
  std::string peer = event.host.empty() ? "" : HostPort(event);
  if (!peer.empty() && !event.transport.empty()) peer += "/" + event.transport;
  if (!process.empty()) line += " " + process;
  if (!process.empty() && !peer.empty()) line += " ->";
  if (!peer.empty()) line += " " + peer;
  line += PolicyPart(event);
  bool reasoned = Denied(event) && !ReasonOf(event).empty();
  if (reasoned) line += " [reason:" + EscapeText(ReasonOf(event), kReasonBytesMax) + "]";
  bool bare = process.empty() && peer.empty() && event.policy.empty() && !reasoned;
  if ((bare || event.reason == kTransparentAllowed) && !event.message.empty()) {
    line += " [msg:" + EscapeText(event.message, kMessageBytesMax) + "]";
  }
  return line;
}

std::string RenderRequest(const Event& event) {
  std::string line = "HTTP:" + event.method + Begin(event);
  std::string process = Process(event);
  if (!process.empty()) line += " " + process + " ->";
  line += " " + event.method + " " + Url(event) + PolicyPart(event);
  std::string context;
  for (const auto& [key, value] : event.context) {
    if (!context.empty()) context += ' ';
    context += key + ":" + EscapeWord(value);
  }
  if (Denied(event) && !ReasonOf(event).empty()) {
    if (!context.empty()) context += ' ';
    context += "reason:" + EscapeText(ReasonOf(event), kReasonBytesMax);
  }
  if (!context.empty()) line += " [" + context + "]";
  return line;
}

Activity RequestActivity(std::string_view method) {
  struct Known {
    std::string_view method;
    Activity activity;
  };
  static constexpr std::array<Known, 9> kKnown = {{{"CONNECT", {1, "Connect"}},
                                                   {"DELETE", {2, "Delete"}},
                                                   {"GET", {3, "Get"}},
                                                   {"HEAD", {4, "Head"}},
                                                   {"OPTIONS", {5, "Options"}},
                                                   {"POST", {6, "Post"}},
                                                   {"PUT", {7, "Put"}},
                                                   {"TRACE", {8, "Trace"}},
                                                   {"PATCH", {9, "Patch"}}}};
  for (const Known& known : kKnown) {
    if (known.method == method) return known.activity;
  }
  return {99, "Other"};
}

std::string_view DecisionWord(Event::Outcome outcome) {
  switch (outcome) {
    case Event::Outcome::kNone:
      return "none";
    case Event::Outcome::kAllowed:
      return "allowed";
    case Event::Outcome::kAudited:
      return "audited";
    case Event::Outcome::kDenied:
      return "denied";
    case Event::Outcome::kFailed:
      return "failed";
  }
  return "none";
}

constexpr std::string_view kMetadata =
    R"("metadata":{"version":"1.8.0","product":{"name":"agentic-ci gateway",)"
    R"("vendor_name":"agentic-ci"},"profiles":["security_control"]})";

void AddUnmapped(codec::JsonLine& json, const Event& event, const std::string& path) {
  json.Object("unmapped").Text("decision", DecisionWord(event.outcome));
  json.Text("host", event.host).Number("port", event.port);
  if (event.kind == Event::Kind::kRequest) json.Text("method", event.method).Text("path", path);
  json.Text("binary", event.binary).Number("pid", event.pid).Array("ancestors");
  for (const std::string& ancestor : event.ancestors) json.Element(ancestor);
  json.CloseArray().Text("policy", event.policy).Text("engine", event.engine);
  if (!event.reason.empty()) json.Text("reason", event.reason);
  if (!event.position.empty()) json.Text("position", event.position);
  for (const auto& [key, value] : event.context) json.Text(key, value);
  json.Close();
}

void AddBase(codec::JsonLine& json, const Event& event, int64_t time_ms, const Activity& activity) {
  bool request = event.kind == Event::Kind::kRequest;
  int class_uid = request ? 4002 : 4001;
  json.Number("class_uid", class_uid);
  json.Text("class_name", request ? "HTTP Activity" : "Network Activity");
  json.Number("category_uid", 4).Text("category_name", "Network Activity");
  json.Number("activity_id", activity.id).Text("activity_name", activity.name);
  json.Number("type_uid", class_uid * 100 + activity.id);
  std::string type = request ? "HTTP Activity: " : "Network Activity: ";
  json.Text("type_name", type.append(activity.name)).Number("time", time_ms);
  bool denied = Denied(event);
  bool failed = event.outcome == Event::Outcome::kFailed;
  json.Number("severity_id", denied ? 3 : (failed ? 2 : 1));
  json.Text("severity", denied ? "Medium" : (failed ? "Low" : "Informational"));
  json.Number("status_id", denied || failed ? 2 : 1);
  json.Text("status", denied || failed ? "Failure" : "Success");
  if (!event.message.empty()) json.Text("message", event.message);
  if (!event.reason.empty()) json.Text("status_detail", event.reason);
}

void AddAction(codec::JsonLine& json, Event::Outcome outcome) {
  if (outcome == Event::Outcome::kNone || outcome == Event::Outcome::kFailed) return;
  bool denied = outcome == Event::Outcome::kDenied;
  bool audited = outcome == Event::Outcome::kAudited;
  json.Number("action_id", denied ? 2 : 1).Text("action", denied ? "Denied" : "Allowed");
  json.Number("disposition_id", denied ? 2 : (audited ? 17 : 1));
  json.Text("disposition", denied ? "Blocked" : (audited ? "Logged" : "Allowed"));
}

}  // namespace

std::string RenderShorthand(const Event& event) {
  std::string line =
      event.kind == Event::Kind::kConnection ? RenderConnection(event) : RenderRequest(event);
  bool ascii = std::all_of(line.begin(), line.end(), [](char c) { return (c & 0x80) == 0; });
  return ascii ? line : codec::ValidUtf8(line);
}

std::string RenderOcsf(const Event& event, int64_t time_ms) {
  bool request = event.kind == Event::Kind::kRequest;
  Activity activity = request ? RequestActivity(event.method) : ConnectionActivity(event);
  std::string path = codec::CutUtf8(codec::ValidUtf8(event.path), kRecordPathBytesMax);
  std::string out;
  out.reserve(kRecordBytesUsual);
  codec::JsonLine json(out);
  AddBase(json, event, time_ms, activity);
  json.Members(kMetadata);
  AddUnmapped(json, event, path);
  if (!event.host.empty()) {
    bool literal = event.host.find_first_not_of("0123456789.") == std::string::npos ||
                   event.host.find(':') != std::string::npos;
    json.Object("dst_endpoint").Text(literal ? "ip" : "domain", event.host);
    json.Number("port", event.port).Close();
  }
  if (!event.binary.empty()) {
    json.Object("actor").Object("process").Text("name", event.binary);
    json.Number("pid", event.pid).Close().Close();
  }
  if (!event.policy.empty()) {
    json.Object("firewall_rule").Text("name", event.policy).Text("type", event.engine).Close();
  }
  json.Object("connection_info");
  json.Text("protocol_name", event.transport.empty() ? "tcp" : event.transport).Close();
  if (request) {
    json.Object("http_request").Text("http_method", event.method);
    json.Object("url").Text("scheme", event.scheme).Text("hostname", event.host);
    json.Number("port", event.port).Text("path", path).Close().Close();
  }
  AddAction(json, event.outcome);
  json.Close();
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
