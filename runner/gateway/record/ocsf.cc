// SPDX-License-Identifier: Apache-2.0
#include "gateway/record/ocsf.h"

#include <array>
#include <string_view>
#include <utility>

#include "codec/data/json.h"
#include "codec/data/json_line.h"
#include "codec/text/neutral.h"
#include "gateway/record/limits.h"

namespace gateway {
namespace {

struct Activity {
  int id;
  std::string_view name;
};

Activity ConnectionActivity(const Event& event) {
  if (event.outcome == Event::Outcome::kDenied) return {5, "Refuse"};
  if (event.outcome == Event::Outcome::kFailed) return {4, "Fail"};
  return {1, "Open"};
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

constexpr std::string_view kConnectionClass =
    R"("class_uid":4001,"class_name":"Network Activity","category_uid":4,)"
    R"("category_name":"Network Activity")";
constexpr std::string_view kRequestClass =
    R"("class_uid":4002,"class_name":"HTTP Activity","category_uid":4,)"
    R"("category_name":"Network Activity")";

// The members that depend on the outcome alone: in front, and at the end.
struct Constants {
  std::string_view status;
  std::string_view action;  // May be empty.
};

Constants ConstantsOf(Event::Outcome outcome) {
  constexpr std::string_view kFine =
      R"("severity_id":1,"severity":"Informational","status_id":1,"status":"Success")";
  switch (outcome) {
    case Event::Outcome::kNone:
      return {kFine, ""};
    case Event::Outcome::kAllowed:
      return {kFine,
              R"("action_id":1,"action":"Allowed","disposition_id":1,"disposition":"Allowed")"};
    case Event::Outcome::kAudited:
      return {kFine,
              R"("action_id":1,"action":"Allowed","disposition_id":17,"disposition":"Logged")"};
    case Event::Outcome::kDenied:
      return {R"("severity_id":3,"severity":"Medium","status_id":2,"status":"Failure")",
              R"("action_id":2,"action":"Denied","disposition_id":2,"disposition":"Blocked")"};
    case Event::Outcome::kFailed:
      return {R"("severity_id":2,"severity":"Low","status_id":2,"status":"Failure")", ""};
  }
  return {kFine, ""};
}

std::string RenderOperations(const std::vector<policy::Operation>& operations) {
  codec::Json list;
  for (const policy::Operation& operation : operations) {
    codec::Json one = codec::Json::EmptyObject();
    auto set = [&](const char* key, const std::string& text) {
      if (!text.empty()) one.Set(key, text);
    };
    set("operation_type", operation.operation_type);
    set("operation_name", operation.operation_name);
    if (!operation.fields.empty()) one.Set("fields", codec::Json::FromStrings(operation.fields));
    set("persisted_query", operation.persisted_query);
    set("method", operation.method);
    set("tool", operation.tool);
    list.Push(std::move(one));
  }
  return codec::RenderJsonLine(list);
}

void AddUnmapped(codec::JsonLine& json, const Event& event, std::string_view path) {
  json.Object("unmapped").Text("decision", DecisionWord(event.outcome));
  json.Text("host", event.host).Number("port", event.port);
  if (event.kind == Event::Kind::kRequest) json.Text("method", event.method).Text("path", path);
  if (!event.protocol.empty()) json.Text("protocol", event.protocol);
  if (!event.operations.empty()) {
    json.Members("\"operations\":" + RenderOperations(event.operations));
  }
  json.Text("binary", event.binary).Number("pid", event.pid).Array("ancestors");
  for (const std::string& ancestor : event.ancestors) json.Element(ancestor);
  json.CloseArray().Text("policy", event.policy).Text("engine", event.engine);
  if (!event.reason.empty()) json.Text("reason", event.reason);
  if (!event.position.empty()) {
    json.Text("position", event.position);
    if (event.by_deny_rule) json.Text("deny_rule", event.position);
  }
  for (const auto& [key, value] : event.context) json.Text(key, value);
  json.Close();
}

void AddBase(codec::JsonLine& json, const Event& event, int64_t time_ms, std::string_view status) {
  bool request = event.kind == Event::Kind::kRequest;
  Activity activity = request ? RequestActivity(event.method) : ConnectionActivity(event);
  json.Members(request ? kRequestClass : kConnectionClass);
  json.Number("activity_id", activity.id).Text("activity_name", activity.name);
  json.Number("type_uid", (request ? 400200 : 400100) + activity.id);
  std::string type = request ? "HTTP Activity: " : "Network Activity: ";
  json.Text("type_name", type.append(activity.name)).Number("time", time_ms).Members(status);
  if (!event.message.empty()) json.Text("message", event.message);
  if (!event.reason.empty()) json.Text("status_detail", event.reason);
}

bool IsAddress(const std::string& host) {
  return host.find_first_not_of("0123456789.") == std::string::npos ||
         host.find(':') != std::string::npos;
}

}  // namespace

void AppendOcsf(const Event& event, int64_t time_ms, std::string& out) {
  Constants constants = ConstantsOf(event.outcome);
  std::string cut;
  std::string_view path = event.path;
  if (path.size() > kRecordPathBytesMax) {
    cut = codec::CutUtf8(codec::ValidUtf8(path), kRecordPathBytesMax);
    path = cut;
  }
  codec::JsonLine json(out);
  AddBase(json, event, time_ms, constants.status);
  json.Members(kMetadata);
  AddUnmapped(json, event, path);
  if (!event.host.empty()) {
    json.Object("dst_endpoint").Text(IsAddress(event.host) ? "ip" : "domain", event.host);
    json.Number("port", event.port).Close();
  }
  if (!event.binary.empty()) {
    json.Object("actor").Object("process").Text("name", event.binary);
    json.Number("pid", event.pid).Close().Close();
  }
  if (!event.policy.empty()) {
    json.Object("firewall_rule").Text("name", event.policy).Text("type", event.engine).Close();
  }
  if (event.transport.empty()) {
    json.Members(R"("connection_info":{"protocol_name":"tcp"})");
  } else {
    json.Object("connection_info").Text("protocol_name", event.transport).Close();
  }
  if (event.kind == Event::Kind::kRequest) {
    json.Object("http_request").Text("http_method", event.method);
    json.Object("url").Text("scheme", event.scheme).Text("hostname", event.host);
    json.Number("port", event.port).Text("path", path).Close().Close();
  }
  if (!constants.action.empty()) json.Members(constants.action);
  json.Close();
}

std::string RenderOcsf(const Event& event, int64_t time_ms) {
  std::string out;
  AppendOcsf(event, time_ms, out);
  return out;
}

}  // namespace gateway
