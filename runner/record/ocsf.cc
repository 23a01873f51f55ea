// SPDX-License-Identifier: Apache-2.0
#include "record/ocsf.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "codec/data/json.h"
#include "codec/data/json_line.h"
#include "codec/text/neutral.h"
#include "record/limits.h"

namespace record {
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
  constexpr std::array<std::pair<std::string_view, Activity>, 9> kKnown = {
      {{"CONNECT", {1, "Connect"}},
       {"DELETE", {2, "Delete"}},
       {"GET", {3, "Get"}},
       {"HEAD", {4, "Head"}},
       {"OPTIONS", {5, "Options"}},
       {"POST", {6, "Post"}},
       {"PUT", {7, "Put"}},
       {"TRACE", {8, "Trace"}},
       {"PATCH", {9, "Patch"}}}};
  for (const auto& [known, activity] : kKnown) {
    if (known == method) return activity;
  }
  return {99, "Other"};
}

// In the order of Event::Outcome.
constexpr std::array<std::string_view, 5> kDecisions = {"none", "allowed", "audited", "denied",
                                                        "failed"};

constexpr int64_t kActionDenied = 2;

constexpr int64_t kNetworkActivity = 4001;
constexpr int64_t kHttpActivity = 4002;
constexpr char kSuccess[] = "Success";
constexpr char kFailure[] = "Failure";

constexpr char kVersion[] = "1.9.0";
constexpr std::string_view kMetadata =
    R"("metadata":{"version":"1.9.0","product":{"name":"agentic-ci gateway",)"
    R"("vendor_name":"agentic-ci"},"profiles":["security_control","container"]})";

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

constexpr std::string_view kFine =
    R"("severity_id":1,"severity":"Informational","status_id":1,"status":"Success")";
// In the order of Event::Outcome.
constexpr std::array<Constants, 5> kConstants = {
    {{kFine, ""},
     {kFine, R"("action_id":1,"action":"Allowed","disposition_id":1,"disposition":"Allowed")"},
     {kFine, R"("action_id":1,"action":"Allowed","disposition_id":17,"disposition":"Logged")"},
     {R"("severity_id":3,"severity":"Medium","status_id":2,"status":"Failure")",
      R"("action_id":2,"action":"Denied","disposition_id":2,"disposition":"Blocked")"},
     {R"("severity_id":2,"severity":"Low","status_id":2,"status":"Failure")", ""}}};

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
  json.Object("unmapped").Text("decision", kDecisions[static_cast<size_t>(event.outcome)]);
  json.Text("host", event.host).Number("port", event.port);
  if (event.kind == Event::Kind::kRequest) json.Text("method", event.method).Text("path", path);
  if (!event.protocol.empty()) json.Text("protocol", event.protocol);
  if (!event.operations.empty()) {
    json.Members("\"operations\":" + RenderOperations(event.operations));
  }
  json.Text("binary", event.binary).Number("pid", event.pid).Array("ancestors");
  for (const std::string& ancestor : event.ancestors) json.Element(ancestor);
  json.CloseArray().Text("policy", event.policy).Text("engine", EngineName(event));
  if (!event.reason.empty()) json.Text("reason", event.reason);
  if (!event.position.empty()) {
    json.Text("position", event.position);
    if (event.by_deny_rule) json.Text("deny_rule", event.position);
  }
  for (const auto& [key, value] : event.context) json.Text(key, value);
  if (event.count > 0) json.Number("count", event.count);
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

struct NoticeClass {
  Notice::Kind kind;
  int64_t uid;
  std::string_view name;
  int category_uid;
  std::string_view category;
  Activity activity;
};

constexpr std::string_view kApplication = "Application Activity";
// In the order of Notice::Kind.
constexpr std::array<NoticeClass, 4> kNoticeClasses = {
    {{Notice::Kind::kInference, 6003, "API Activity", 6, kApplication, {1, "Create"}},
     {Notice::Kind::kFinding, 2004, "Detection Finding", 2, "Findings", {1, "Create"}},
     {Notice::Kind::kConfig, 5019, "Device Config State Change", 5, "Discovery", {1, "Log"}},
     {Notice::Kind::kLifecycle, 6002, "Application Lifecycle", 6, kApplication, {3, "Start"}}}};

// By Notice::Severity, from 1.
constexpr std::array<std::string_view, 5> kSeverities = {"", "Informational", "Low", "Medium",
                                                         "High"};

void SetSubject(const Notice& notice, codec::Json* json) {
  codec::Json subject;
  switch (notice.kind) {
    case Notice::Kind::kInference:
      subject.Set("operation", notice.method + " " + notice.path);
      subject.Set("service", codec::Json().Set("name", notice.provider));
      json->Set("api", std::move(subject));
      json->Set("ai_model", codec::Json().Set("name", notice.model));
      json->Set("duration", notice.duration_ms);
      return;
    case Notice::Kind::kFinding:
      json->Set("finding_info", subject.Set("uid", notice.type).Set("title", notice.title));
      return;
    case Notice::Kind::kConfig:
      json->Set("state", notice.activity);
      return;
    case Notice::Kind::kLifecycle:
      json->Set("app", subject.Set("name", "agentic-ci gateway"));
  }
}

constexpr size_t kOperationsMax = 64;  // More than the gateway writes of one request.

std::vector<std::string> TextsAt(const codec::Json& object, std::string_view name) {
  std::vector<std::string> texts;
  const codec::Json* list = object.Find(name);
  if (list == nullptr || list->array() == nullptr) return texts;
  for (const codec::Json& text : *list->array()) {
    if (text.string() != nullptr) texts.push_back(*text.string());
  }
  return texts;
}

std::vector<policy::Operation> ParseOperations(const codec::Json& facts) {
  std::vector<policy::Operation> operations;
  const codec::Json* list = facts.Find("operations");
  if (list == nullptr || list->array() == nullptr) return operations;
  for (const codec::Json& one : *list->array()) {
    if (operations.size() == kOperationsMax) return {};
    operations.push_back({one.StringAt("operation_type"), one.StringAt("operation_name"),
                          TextsAt(one, "fields"), one.StringAt("persisted_query"),
                          one.StringAt("method"), one.StringAt("tool")});
  }
  return operations;
}

// A record of several runs has an action alone.
Event::Outcome ParseOutcome(const codec::Json& json, const codec::Json& facts) {
  using Outcome = Event::Outcome;
  const int64_t action = json.IntegerAt("action_id");
  const auto word = std::find(kDecisions.begin(), kDecisions.end(), facts.StringAt("decision"));
  if (word == kDecisions.end()) return action == kActionDenied ? Outcome::kDenied : Outcome::kNone;
  const auto outcome = static_cast<Outcome>(word - kDecisions.begin());
  const bool agrees = action == 0 || (action == kActionDenied) == (outcome == Outcome::kDenied);
  return agrees ? outcome : Outcome::kNone;
}

// The members that OCSF scatters over its objects are repeated in `unmapped`.
Record ParseEvent(const codec::Json& json, int64_t kind) {
  Event event;
  if (kind == kHttpActivity) event.kind = Event::Kind::kRequest;
  const codec::Json* found = json.Find("unmapped");
  const codec::Json& facts = found != nullptr ? *found : json;
  event.outcome = ParseOutcome(json, facts);
  if (found == nullptr) return event;
  event.host = facts.StringAt("host");
  const int64_t port = facts.IntegerAt("port");
  if (port > 0 && port <= 65535) event.port = static_cast<uint16_t>(port);
  event.method = facts.StringAt("method");
  event.path = facts.StringAt("path");
  event.protocol = facts.StringAt("protocol");
  event.operations = ParseOperations(facts);
  event.binary = facts.StringAt("binary");
  event.ancestors = TextsAt(facts, "ancestors");
  SetEngine(facts.StringAt("engine"), &event);
  event.policy = facts.StringAt("policy");
  event.reason = facts.StringAt("reason");
  if (event.reason.empty()) event.reason = json.StringAt("status_detail");
  event.position = facts.StringAt("deny_rule");
  event.by_deny_rule = !event.position.empty();
  if (!event.by_deny_rule) event.position = facts.StringAt("position");
  event.count = facts.IntegerAt("count");
  if (const codec::Json* connection = json.Find("connection_info")) {
    event.transport = connection->StringAt("protocol_name");
  }
  return event;
}

Record ParseNotice(const codec::Json& json, int64_t uid) {
  Notice notice;
  const auto kind = std::find_if(kNoticeClasses.begin(), kNoticeClasses.end(),
                                 [&](const NoticeClass& one) { return one.uid == uid; });
  if (kind == kNoticeClasses.end()) return {};
  notice.kind = kind->kind;
  const codec::Json* finding = json.Find("finding_info");
  if (notice.kind == Notice::Kind::kFinding && finding == nullptr) return {};
  notice.succeeded = json.StringAt("status") != kFailure;
  if (finding != nullptr) {
    notice.type = finding->StringAt("uid");
    notice.title = finding->StringAt("title");
  }
  if (const codec::Json* model = json.Find("ai_model")) notice.model = model->StringAt("name");
  const codec::Json* api = json.Find("api");
  if (const codec::Json* service = api != nullptr ? api->Find("service") : nullptr) {
    notice.provider = service->StringAt("name");
  }
  if (api != nullptr) {
    const std::string operation = api->StringAt("operation");  // "POST /v1/messages"
    const size_t blank = std::min(operation.find(' '), operation.size());
    notice.method = operation.substr(0, blank);
    notice.path = operation.substr(std::min(blank + 1, operation.size()));
  }
  const codec::Json* facts = json.Find("unmapped");
  if (facts == nullptr || facts->object() == nullptr) return notice;
  for (const auto& [name, value] : *facts->object()) {
    if (value.string() != nullptr) notice.context.emplace_back(name, *value.string());
    if (value.integer()) notice.counts.emplace_back(name, *value.integer());
  }
  return notice;
}

}  // namespace

void AppendOcsf(const Event& event, int64_t time_ms, std::string& out) {
  const Constants& constants = kConstants[static_cast<size_t>(event.outcome)];
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
    json.Object("firewall_rule").Text("name", event.policy).Text("type", EngineName(event)).Close();
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

std::string RenderSandbox(std::string_view uid) {
  return R"("device":{"type_id":99,"type":"Other","container":{"uid":)" +
         codec::RenderJsonLine(codec::Json(uid)) + "}}";
}

void AddMember(std::string_view member, std::string& json) {
  json.back() = ',';
  json.append(member).append("}");
}

std::string RenderDenial(const Event& denied) {
  std::string out;
  codec::JsonLine json(out);
  json.Number("class_uid", denied.kind == Event::Kind::kRequest ? kHttpActivity : kNetworkActivity);
  json.Number("action_id", kActionDenied);
  AddUnmapped(json, denied, denied.path);
  json.Close();
  return out;
}

std::string RenderOcsf(const Notice& notice, int64_t time_ms) {
  const NoticeClass& kind = kNoticeClasses[static_cast<size_t>(notice.kind)];
  Activity activity = kind.activity;
  if (notice.kind == Notice::Kind::kLifecycle && notice.activity == "STOP") activity = {4, "Stop"};
  codec::Json json;
  json.Set("class_uid", kind.uid).Set("class_name", kind.name);
  json.Set("category_uid", kind.category_uid).Set("category_name", kind.category);
  json.Set("activity_id", activity.id).Set("activity_name", activity.name);
  json.Set("type_uid", kind.uid * 100 + activity.id);
  json.Set("type_name", std::string(kind.name) + ": " + std::string(activity.name));
  json.Set("time", time_ms);
  json.Set("severity_id", static_cast<int>(notice.severity));
  json.Set("severity", kSeverities[static_cast<size_t>(notice.severity)]);
  json.Set("status_id", notice.succeeded ? 1 : 2);
  json.Set("status", notice.succeeded ? kSuccess : kFailure);
  if (!notice.title.empty()) json.Set("message", codec::ValidUtf8(notice.title));
  codec::Json product;
  product.Set("name", "agentic-ci gateway").Set("vendor_name", "agentic-ci");
  codec::Json metadata;
  metadata.Set("version", kVersion).Set("product", std::move(product));
  metadata.Set("profiles", codec::Json::FromStrings({"container"}));
  json.Set("metadata", std::move(metadata));
  codec::Json unmapped = codec::Json::EmptyObject();
  for (const auto& [key, value] : notice.context) unmapped.Set(key, codec::ValidUtf8(value));
  for (const auto& [key, value] : notice.counts) unmapped.Set(key, value);
  json.Set("unmapped", std::move(unmapped));
  SetSubject(notice, &json);
  return codec::RenderJsonLine(json);
}

std::optional<Record> ParseOcsf(std::string_view line) {
  const Result<codec::Json> json = codec::ParseJson(
      line, {.bytes_max = kRecordLineBytesMax, .depth_max = 16, .values_max = 5000});
  if (!json.ok() || json.value().object() == nullptr) return std::nullopt;
  const int64_t kind = json.value().IntegerAt("class_uid");
  if (kind == kNetworkActivity || kind == kHttpActivity) return ParseEvent(json.value(), kind);
  return ParseNotice(json.value(), kind);
}

bool MayBeNotice(std::string_view line) {
  constexpr std::string_view kBeginning = "{\"class_uid\":400";
  return !line.starts_with(kBeginning);
}

// No text can forge these marks, since a quote in a text has a backslash before it.
std::optional<std::string_view> FindAllowed(std::string_view line) {
  if (line.find("\"action_id\":1,") == std::string_view::npos) return std::nullopt;
  const size_t begin = line.find("\"unmapped\":{");
  if (begin == std::string_view::npos) return std::nullopt;
  const size_t end = line.find(",\"pid\":", begin);
  if (end == std::string_view::npos) return std::nullopt;
  return line.substr(begin, end - begin);
}

}  // namespace record
