// SPDX-License-Identifier: Apache-2.0
#include "gateway/ocsf.h"

#include <time.h>

#include <array>
#include <cstdio>
#include <string_view>

#include "codec/json.h"
#include "codec/neutral.h"
#include "gateway/limits.h"

namespace gateway {
namespace {

using codec::Json;

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
  for (char c : text) out += c == ' ' || IsControl(c) ? EscapeByte(c) : std::string(1, c);
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

Json Metadata() {
  Json product;
  product.Set("name", "agentic-ci gateway").Set("vendor_name", "agentic-ci");
  Json metadata;
  metadata.Set("version", "1.8.0").Set("product", std::move(product));
  metadata.Set("profiles", Json::FromStrings({"security_control"}));
  return metadata;
}

Json Unmapped(const Event& event, const std::string& path) {
  Json unmapped;
  unmapped.Set("decision", std::string(DecisionWord(event.outcome)));
  unmapped.Set("host", codec::ValidUtf8(event.host)).Set("port", int{event.port});
  if (event.kind == Event::Kind::kRequest) {
    unmapped.Set("method", event.method).Set("path", path);
  }
  unmapped.Set("binary", codec::ValidUtf8(event.binary)).Set("pid", event.pid);
  Json ancestors = Json::EmptyArray();
  for (const std::string& ancestor : event.ancestors) ancestors.Push(codec::ValidUtf8(ancestor));
  unmapped.Set("ancestors", std::move(ancestors));
  unmapped.Set("policy", codec::ValidUtf8(event.policy)).Set("engine", event.engine);
  if (!event.reason.empty()) unmapped.Set("reason", codec::ValidUtf8(event.reason));
  if (!event.position.empty()) unmapped.Set("position", codec::ValidUtf8(event.position));
  for (const auto& [key, value] : event.context) unmapped.Set(key, codec::ValidUtf8(value));
  return unmapped;
}

void SetBase(Json& json, const Event& event, int64_t time_ms, const Activity& activity) {
  bool request = event.kind == Event::Kind::kRequest;
  std::string class_name = request ? "HTTP Activity" : "Network Activity";
  int class_uid = request ? 4002 : 4001;
  json.Set("class_uid", class_uid).Set("class_name", class_name);
  json.Set("category_uid", 4).Set("category_name", "Network Activity");
  json.Set("activity_id", activity.id).Set("activity_name", std::string(activity.name));
  json.Set("type_uid", class_uid * 100 + activity.id);
  json.Set("type_name", class_name + ": " + std::string(activity.name));
  json.Set("time", time_ms);
  bool failed = event.outcome == Event::Outcome::kFailed;
  json.Set("severity_id", Denied(event) ? 3 : (failed ? 2 : 1));
  json.Set("severity", Denied(event) ? "Medium" : (failed ? "Low" : "Informational"));
  json.Set("status_id", Denied(event) || failed ? 2 : 1);
  json.Set("status", Denied(event) || failed ? "Failure" : "Success");
  if (!event.message.empty()) json.Set("message", codec::ValidUtf8(event.message));
  if (!event.reason.empty()) json.Set("status_detail", codec::ValidUtf8(event.reason));
}

void SetAction(Json& json, Event::Outcome outcome) {
  if (outcome == Event::Outcome::kNone || outcome == Event::Outcome::kFailed) return;
  bool denied = outcome == Event::Outcome::kDenied;
  bool audited = outcome == Event::Outcome::kAudited;
  json.Set("action_id", denied ? 2 : 1).Set("action", denied ? "Denied" : "Allowed");
  json.Set("disposition_id", denied ? 2 : (audited ? 17 : 1));
  json.Set("disposition", denied ? "Blocked" : (audited ? "Logged" : "Allowed"));
}

}  // namespace

std::string RenderShorthand(const Event& event) {
  std::string line =
      event.kind == Event::Kind::kConnection ? RenderConnection(event) : RenderRequest(event);
  return codec::ValidUtf8(line);
}

std::string RenderOcsf(const Event& event, int64_t time_ms) {
  bool request = event.kind == Event::Kind::kRequest;
  Activity activity = request ? RequestActivity(event.method) : ConnectionActivity(event);
  std::string path = codec::CutUtf8(codec::ValidUtf8(event.path), kRecordPathBytesMax);
  Json json;
  SetBase(json, event, time_ms, activity);
  json.Set("metadata", Metadata());
  json.Set("unmapped", Unmapped(event, path));
  if (!event.host.empty()) {
    bool literal = event.host.find_first_not_of("0123456789.") == std::string::npos ||
                   event.host.find(':') != std::string::npos;
    Json endpoint;
    endpoint.Set(literal ? "ip" : "domain", codec::ValidUtf8(event.host));
    endpoint.Set("port", int{event.port});
    json.Set("dst_endpoint", std::move(endpoint));
  }
  if (!event.binary.empty()) {
    Json process;
    process.Set("name", codec::ValidUtf8(event.binary)).Set("pid", event.pid);
    Json actor;
    actor.Set("process", std::move(process));
    json.Set("actor", std::move(actor));
  }
  if (!event.policy.empty()) {
    Json rule;
    rule.Set("name", codec::ValidUtf8(event.policy)).Set("type", event.engine);
    json.Set("firewall_rule", std::move(rule));
  }
  Json connection;
  connection.Set("protocol_name", event.transport.empty() ? "tcp" : event.transport);
  json.Set("connection_info", std::move(connection));
  if (request) {
    Json url;
    url.Set("scheme", event.scheme).Set("hostname", codec::ValidUtf8(event.host));
    url.Set("port", int{event.port}).Set("path", path);
    Json http;
    http.Set("http_method", event.method).Set("url", std::move(url));
    json.Set("http_request", std::move(http));
  }
  SetAction(json, event.outcome);
  return codec::RenderJsonLine(json);
}

std::string RenderTime(int64_t time_ms) {
  time_t whole_s = static_cast<time_t>(time_ms / 1000);
  tm parts{};
  ::gmtime_r(&whole_s, &parts);
  char date[32];
  ::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  char text[48];
  ::snprintf(text, sizeof text, "%s.%03dZ", date, static_cast<int>(time_ms % 1000));
  return text;
}

}  // namespace gateway
