// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp_server.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/sys.h"
#include "base/version.h"

namespace serve {
namespace {

constexpr std::string_view kModern = "2026-07-28";
constexpr auto kVersions = std::to_array<std::string_view>(
    {kModern, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"});
constexpr std::string_view kVersionKey = "io.modelcontextprotocol/protocolVersion";
constexpr int kUnsupportedVersion = -32022;
constexpr int64_t kListTime_ms = 3600 * 1000;
constexpr std::chrono::seconds kProgressInterval{10};
constexpr char kCreationId[] = " create";  // Not the id of any request.

constexpr std::string_view kInstructions =
    "The tools work in a sandbox: a copy of the user's checkout, with a shell, limits and a "
    "network "
    "policy that the user chose. Nothing reaches the checkout itself. Each result names the "
    "sandbox; "
    "if an error says that it has ended, what was done in it is lost.";

codec::Json ServerInfo() {
  codec::Json info;
  info.Set("name", "agentic-ci");
  info.Set("version", kVersion);
  return info;
}

codec::Json Capabilities() {
  codec::Json capabilities;
  capabilities.Set("tools", codec::Json::EmptyObject());
  return capabilities;
}

std::vector<std::string> Versions() { return {kVersions.begin(), kVersions.end()}; }

std::string RenderVersionError(const std::string& id, const std::string& requested) {
  codec::Json data;
  data.Set("supported", codec::Json::FromStrings(Versions()));
  data.Set("requested", requested);
  codec::Json error;
  error.Set("code", kUnsupportedVersion);
  error.Set("message", "unsupported protocol version");
  error.Set("data", std::move(data));
  return "{\"jsonrpc\":\"2.0\",\"id\":" + id + ",\"error\":" + codec::RenderJsonLine(error) + "}\n";
}

}  // namespace

McpServer::McpServer(McpConfig config, session::Place place, CreateOptions options, int in, int out)
    : Loop(std::move(place), std::move(options), in, out), config_(std::move(config)) {
  handle_ = config_.sandbox;
  ready_ = !handle_.empty();
}

void McpServer::Take(const Request& request) {
  if (request.id.empty()) {
    if (request.method == "notifications/cancelled") {
      CancelCall(IdOf(request.params.Find("requestId")));
    }
    return;
  }
  if (request.method == "initialize") return Initialize(request);
  const std::optional<bool> modern = FindEra(request);
  if (!modern) return;
  if (request.method == "server/discover" && *modern) return Discover(request);
  if (request.method == "tools/call") return CallTool(request, *modern);
  if (request.method == "tools/list") {
    codec::Json result;
    result.Set("tools", ListOfTools());
    if (*modern) {
      result.Set("ttlMs", kListTime_ms);
      result.Set("cacheScope", "private");
    }
    return Reply(request.id, std::move(result), *modern);
  }
  if (request.method == "ping" && !*modern) {
    return Reply(request.id, codec::Json::EmptyObject(), false);
  }
  output().Write(
      RenderFault(request.id, Fault::kMethod, "there is no method '" + request.method + "'"));
}

std::optional<bool> McpServer::FindEra(const Request& request) {
  const codec::Json* meta = request.params.Find("_meta");
  const codec::Json* version = meta != nullptr ? meta->Find(kVersionKey) : nullptr;
  if (version == nullptr && initialized_) return false;
  if (version == nullptr || version->string() == nullptr) {
    output().Write(
        RenderFault(request.id, Fault::kParams, std::string(kVersionKey) + " is missing in _meta"));
    return std::nullopt;
  }
  if (*version->string() == kModern) return true;
  output().Write(RenderVersionError(request.id, *version->string()));
  return std::nullopt;
}

void McpServer::Initialize(const Request& request) {
  const std::string asked = request.params.StringAt("protocolVersion");
  // By `initialize`, the newest is the one before the modern revision.
  const auto known = std::find(kVersions.begin() + 1, kVersions.end(), asked);
  initialized_ = true;
  codec::Json result;
  result.Set("protocolVersion", known != kVersions.end() ? *known : kVersions[1]);
  result.Set("capabilities", Capabilities());
  result.Set("serverInfo", ServerInfo());
  result.Set("instructions", kInstructions);
  Reply(request.id, std::move(result), false);
}

void McpServer::Discover(const Request& request) {
  codec::Json meta;
  meta.Set("io.modelcontextprotocol/serverInfo", ServerInfo());
  codec::Json result;
  result.Set("_meta", std::move(meta));
  result.Set("supportedVersions", codec::Json::FromStrings(Versions()));
  result.Set("capabilities", Capabilities());
  result.Set("instructions", kInstructions);
  result.Set("ttlMs", kListTime_ms);
  result.Set("cacheScope", "private");
  Reply(request.id, std::move(result), true);
}

void McpServer::Reply(const std::string& id, codec::Json result, bool modern) {
  if (modern) result.Set("resultType", "complete");
  output().Write(RenderResult(id, result));
}

void McpServer::CallTool(const Request& request, bool modern) {
  const std::string name = request.params.StringAt("name");
  const auto tool = std::find_if(Tools().begin(), Tools().end(),
                                 [&](const Tool& one) { return one.method.name == name; });
  if (tool == Tools().end() || going_.contains(request.id)) {
    const std::string what = tool == Tools().end() ? "there is no tool '" + name + "'"
                                                   : "a request with that id goes on";
    return output().Write(RenderFault(request.id, Fault::kParams, what));
  }
  Call call{request.id, &*tool, codec::Json::EmptyObject(), modern, {}};
  if (const codec::Json* arguments = request.params.Find("arguments")) call.arguments = *arguments;
  if (const codec::Json* meta = request.params.Find("_meta")) {
    call.progress_token = IdOf(meta->Find("progressToken"));
  }
  if (call.arguments.object() == nullptr) {
    return Answer(call, Error{Code::kUsage, "'arguments' is not an object"});
  }
  Status fine = CheckParams(tool->method, call.arguments);
  if (!fine.ok()) return Answer(call, fine.error());
  const std::string wanted = call.arguments.StringAt("sandbox");
  if (!wanted.empty() && wanted != handle_) {
    return Answer(call, Error{Code::kNotFound,
                              "the sandbox '" + wanted +
                                  "' has ended, and with it what was done there: leave `sandbox` "
                                  "out to work in the present one"});
  }
  if (ready_) return Begin(std::move(call));
  if (handle_.empty()) {
    Status started = StartSandbox();
    if (!started.ok()) return Answer(call, started.error());
  }
  waiting_.push_back(std::move(call));
}

Status McpServer::StartSandbox() {
  handle_ = "mcp-" + sys::RandomHex().substr(0, 8);
  codec::Json params;
  params.Set("name", handle_);
  Status begun = BeginTask(kCreationId, "create", params, [this](const auto& result) {
    ready_ = result.ok();
    if (!result.ok()) failed_ = result.error();
  });
  if (!begun.ok()) handle_.clear();
  return begun;
}

void McpServer::TakeEnd(const std::string& sandbox) {
  if (sandbox != handle_ || !ready_) return;
  handle_.clear();
  ready_ = false;
}

void McpServer::Turn() {
  if (failed_) {
    handle_.clear();
    for (const Call& call : std::exchange(waiting_, {})) Answer(call, *failed_);
    failed_.reset();
  }
  if (ready_) {
    for (Call& call : std::exchange(waiting_, {})) Begin(std::move(call));
  }
  if (!next_progress_.passed()) return;
  for (auto& [id, call] : going_) {
    if (call.progress_token.empty()) continue;
    output().Write(RenderNotification("notifications/progress",
                                      "\"progressToken\":" + call.progress_token +
                                          ",\"progress\":" + std::to_string(++call.progress)));
  }
  next_progress_ = Deadline::After(kProgressInterval);
}

Deadline McpServer::next_turn() const {
  const bool wanted = std::any_of(going_.begin(), going_.end(), [](const auto& entry) {
    return !entry.second.progress_token.empty();
  });
  return wanted ? next_progress_ : Deadline::Never();
}

void McpServer::Begin(Call call) {
  const codec::Json params = RequestOf(*call.tool, call.arguments, handle_, config_.timeout_s);
  const std::string id = call.id;
  Status begun = BeginTask(id, call.tool->request, params, [this, id](const auto& result) {
    auto found = going_.extract(id);
    if (!found.empty()) Answer(found.mapped(), result);
  });
  if (!begun.ok()) return Answer(call, begun.error());
  if (next_turn().never()) next_progress_ = Deadline::After(kProgressInterval);
  going_.insert_or_assign(id, std::move(call));
}

void McpServer::Answer(const Call& call, const Result<codec::Json>& result) {
  Reply(call.id, ToolResult(*call.tool, call.arguments, handle_, result), call.modern);
}

// Nothing more is said about it.
void McpServer::CancelCall(const std::string& id) {
  std::erase_if(waiting_, [&](const Call& call) { return call.id == id; });
  going_.erase(id);
  if (Task* task = FindTask(id)) task->Cancel();
}

}  // namespace serve
