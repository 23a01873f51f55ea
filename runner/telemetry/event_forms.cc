// SPDX-License-Identifier: Apache-2.0
#include "telemetry/event_forms.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/ascii.h"
#include "codec/data/json.h"
#include "codec/text/neutral.h"
#include "record/line_facts.h"
#include "record/ocsf.h"

namespace telemetry {
namespace {

using codec::Json;

constexpr int64_t kMillisPerSecond = 1000;
constexpr int kFacility = 16;  // local0
constexpr size_t kHostBytesMax = 255;
constexpr size_t kMessageIdBytesMax = 32;

// OCSF's severity as syslog's (RFC 5424, table 2).
int SyslogSeverity(int severity) {
  switch (severity) {
    case 2:
      return 5;  // Notice.
    case 3:
      return 4;  // Warning.
    case 4:
      return 3;  // Error.
    case 5:
    case 6:
      return 2;  // Critical.
    default:
      return 6;  // Informational.
  }
}

// A field of the header: printable, without blanks; "-" if nothing is left.
std::string HeaderField(std::string_view text, size_t bytes_max) {
  std::string field;
  for (const char c : text.substr(0, bytes_max)) {
    if (c > ' ' && c <= '~') field += c;
  }
  return field.empty() ? "-" : field;
}

}  // namespace

std::string Timestamp(int64_t time_ms) {
  const time_t seconds = std::max<int64_t>(time_ms, 0) / kMillisPerSecond;
  tm utc{};
  char text[32] = "";
  if (::gmtime_r(&seconds, &utc) != nullptr) {
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  }
  char millis[16];
  std::snprintf(millis, sizeof millis, ".%03dZ",
                static_cast<int>(std::max<int64_t>(time_ms, 0) % kMillisPerSecond));
  return std::string(text) + millis;
}

std::optional<std::string> RenderSyslog(std::string_view line, std::string_view host) {
  const std::optional<record::LineFacts> facts = record::ReadLineFacts(line);
  if (!facts) return std::nullopt;
  std::string id = facts->class_name;
  std::replace(id.begin(), id.end(), ' ', '-');
  std::string message = "<" + std::to_string(kFacility * 8 + SyslogSeverity(facts->severity)) +
                        ">1 " + Timestamp(facts->time_ms) + " " + HeaderField(host, kHostBytesMax) +
                        " agentic-ci - " + HeaderField(id, kMessageIdBytesMax) + " - ";
  const bool fits = message.size() + line.size() <= kSyslogBytesMax;
  message += fits ? std::string(line) : record::WithoutOwnMembers(line).value_or("");
  if (message.size() > kSyslogBytesMax) return std::nullopt;
  return std::to_string(message.size()) + " " + message;
}

std::optional<std::string> RenderBatchPart(EventTarget::Kind kind, std::string_view line,
                                           std::string_view run) {
  const std::optional<record::LineFacts> facts = record::ReadLineFacts(line);
  if (!facts) return std::nullopt;
  const int64_t time_ms = facts->time_ms;
  std::string whole(line);
  if (kind == EventTarget::Kind::kBulk) {
    // A data stream takes documents with this member only.
    record::AddMember("\"@timestamp\":\"" + Timestamp(time_ms) + "\"", whole);
    return "{\"create\":{}}\n" + whole + "\n";
  }
  if (kind != EventTarget::Kind::kSplunk) return whole + "\n";
  Json event;
  event.Set("time", static_cast<double>(time_ms) / kMillisPerSecond);
  event.Set("sourcetype", "ocsf");
  event.Set("source", run.empty() ? "agentic-ci" : codec::ValidUtf8(run));
  std::string object = codec::RenderJsonLine(event);
  record::AddMember("\"event\":" + whole, object);
  return object + "\n";
}

BulkFailure ParseBulkAnswer(std::string_view body) {
  BulkFailure failure;
  const Result<Json> json = codec::ParseJson(body);
  if (!json.ok() || !json.value().BooleanAt("errors")) return failure;
  const Json* items = json.value().Find("items");
  if (items == nullptr || items->array() == nullptr) return {1, "errors without items"};
  for (const Json& item : *items->array()) {
    const Json* create = item.Find("create");
    const Json* error = create != nullptr ? create->Find("error") : nullptr;
    if (error == nullptr) continue;
    if (failure.count++ == 0) {
      failure.reason =
          codec::NeutralLine(error->StringAt("type") + ": " + error->StringAt("reason"), 300);
    }
  }
  return failure;
}

}  // namespace telemetry
