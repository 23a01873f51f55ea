// SPDX-License-Identifier: Apache-2.0
#include "gateway/record/notice.h"

#include <string_view>

#include "codec/data/json.h"
#include "codec/text/neutral.h"
#include "gateway/record/limits.h"

namespace gateway {
namespace {

using codec::Json;

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

std::string_view SeverityTag(Notice::Severity severity) {
  switch (severity) {
    case Notice::Severity::kInfo:
      return "[INFO]";
    case Notice::Severity::kLow:
      return "[LOW]";
    case Notice::Severity::kMedium:
      return "[MED]";
    case Notice::Severity::kHigh:
      return "[HIGH]";
  }
  return "[INFO]";
}

std::string_view SeverityName(Notice::Severity severity) {
  switch (severity) {
    case Notice::Severity::kInfo:
      return "Informational";
    case Notice::Severity::kLow:
      return "Low";
    case Notice::Severity::kMedium:
      return "Medium";
    case Notice::Severity::kHigh:
      return "High";
  }
  return "Informational";
}

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

struct Class {
  int uid;
  int category_uid;
  std::string_view name;
  std::string_view category;
};

Class ClassOf(Notice::Kind kind) {
  switch (kind) {
    case Notice::Kind::kInference:
      return {6003, 6, "API Activity", "Application Activity"};
    case Notice::Kind::kFinding:
      return {2004, 2, "Detection Finding", "Findings"};
    case Notice::Kind::kConfig:
      return {5019, 5, "Device Config State Change", "Discovery"};
    case Notice::Kind::kLifecycle:
      return {6002, 6, "Application Lifecycle", "Application Activity"};
  }
  return {0, 0, "Base Event", "Uncategorized"};
}

struct NoticeActivity {
  int id;
  std::string_view name;
};

NoticeActivity ActivityOf(const Notice& notice) {
  switch (notice.kind) {
    case Notice::Kind::kInference:
      return {1, "Create"};
    case Notice::Kind::kFinding:
      return {1, "Create"};
    case Notice::Kind::kConfig:
      return {1, "Log"};
    case Notice::Kind::kLifecycle:
      return notice.activity == "STOP" ? NoticeActivity{4, "Stop"} : NoticeActivity{3, "Start"};
  }
  return {0, "Unknown"};
}

void SetSubject(const Notice& notice, Json* json) {
  Json subject;
  switch (notice.kind) {
    case Notice::Kind::kInference:
      subject.Set("operation", notice.method + " " + notice.path);
      subject.Set("service", Json().Set("name", notice.provider));
      json->Set("api", std::move(subject));
      json->Set("ai_model", Json().Set("name", notice.model));
      json->Set("duration", notice.duration_ms);
      break;
    case Notice::Kind::kFinding:
      subject.Set("uid", notice.type).Set("title", notice.title);
      json->Set("finding_info", std::move(subject));
      break;
    case Notice::Kind::kConfig:
      json->Set("state", notice.activity);
      break;
    case Notice::Kind::kLifecycle:
      subject.Set("name", "agentic-ci gateway");
      json->Set("app", std::move(subject));
      break;
  }
}

}  // namespace

std::string RenderShorthand(const Notice& notice) {
  std::string severity = " " + std::string(SeverityTag(notice.severity));
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

std::string RenderOcsf(const Notice& notice, int64_t time_ms) {
  Class kind = ClassOf(notice.kind);
  NoticeActivity activity = ActivityOf(notice);
  Json json;
  json.Set("class_uid", kind.uid).Set("class_name", std::string(kind.name));
  json.Set("category_uid", kind.category_uid).Set("category_name", std::string(kind.category));
  json.Set("activity_id", activity.id).Set("activity_name", std::string(activity.name));
  json.Set("type_uid", kind.uid * 100 + activity.id);
  json.Set("type_name", std::string(kind.name) + ": " + std::string(activity.name));
  json.Set("time", time_ms);
  json.Set("severity_id", static_cast<int>(notice.severity));
  json.Set("severity", std::string(SeverityName(notice.severity)));
  json.Set("status_id", notice.succeeded ? 1 : 2);
  json.Set("status", notice.succeeded ? "Success" : "Failure");
  if (!notice.title.empty()) json.Set("message", codec::ValidUtf8(notice.title));
  Json product;
  product.Set("name", "agentic-ci gateway").Set("vendor_name", "agentic-ci");
  Json metadata;
  metadata.Set("version", "1.8.0").Set("product", std::move(product));
  json.Set("metadata", std::move(metadata));
  Json unmapped = Json::EmptyObject();
  for (const auto& [key, value] : notice.context) unmapped.Set(key, codec::ValidUtf8(value));
  for (const auto& [key, value] : notice.counts) unmapped.Set(key, value);
  json.Set("unmapped", std::move(unmapped));
  SetSubject(notice, &json);
  return codec::RenderJsonLine(json);
}

}  // namespace gateway
