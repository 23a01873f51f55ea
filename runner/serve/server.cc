// SPDX-License-Identifier: Apache-2.0
#include "serve/server.h"

#include "base/version.h"

namespace serve {
namespace {

bool IsNotice(const std::string& method) {
  return method == "input" || method == "ack" || method == "cancel";
}

}  // namespace

void Server::TakeEnd(const std::string& sandbox) {
  output().Write(
      RenderNotification("ended", "\"sandbox\":" + codec::RenderJsonLine(codec::Json(sandbox))));
}

void Server::Take(const Request& request) {
  Result<const Method*> method = FindMethod(methods(), request.method);
  const std::string id = request.id.empty() ? "null" : request.id;
  if (!method.ok()) {
    // There is no answer to a notification, and those of a newer client mean nothing here.
    if (request.id.empty()) return;
    return output().Write(
        RenderFault(id, Fault::kMethod, method.error().what, method.error().hint));
  }
  const bool initializes = request.method == "initialize";
  if (initialized_ == initializes) {
    return output().Write(
        RenderFault(id, Fault::kRequest,
                    initializes ? "'initialize' comes once" : "the first request is 'initialize'"));
  }
  Status fine = CheckParams(*method.value(), request.params);
  if (!fine.ok()) {
    return output().Write(RenderFault(id, Fault::kParams, fine.error().what, fine.error().hint));
  }
  if (request.id.empty() && !IsNotice(request.method)) {
    return output().Write(RenderFault(id, Fault::kRequest, request.method + ": an id is missing"));
  }
  Status begun = Begin(request);
  if (!begun.ok()) output().Write(RenderError(id, begun.error()));
}

Status Server::Begin(const Request& request) {
  codec::Json result = codec::Json::EmptyObject();
  if (request.method == "initialize") {
    if (request.params.IntegerAt("protocol") < kProtocol) {
      return Error{Code::kUnsupported, "this server speaks protocol 1"};
    }
    initialized_ = true;
    result = Introduce();
  } else if (request.method == "policy") {
    TRY(ReloadPolicy(request.params.StringAt("sandbox")));
  } else if (IsNotice(request.method)) {
    TRY(TakeControl(request, &result));
  } else {
    return BeginTask(request.id, request.method, request.params);
  }
  if (!request.id.empty()) output().Write(RenderResult(request.id, result));
  return Ok();
}

Status Server::TakeControl(const Request& request, codec::Json* result) {
  Task* task = FindTask(IdOf(request.params.Find("request")));
  // It may have ended just now.
  if (task == nullptr && request.id.empty()) return Ok();
  if (task == nullptr) return Error{Code::kNotFound, "no such request goes on"};
  *result = codec::Json::EmptyObject();
  if (request.method == "cancel") {
    task->Cancel();
    return Ok();
  }
  if (request.method == "ack") return task->Acknowledge(request.params.IntegerAt("bytes"));
  return task->Input(TRY(BytesOf(request.params)), request.params.BooleanAt("end"));
}

codec::Json Server::Introduce() const {
  std::vector<std::string> names;
  for (const Method& method : methods()) names.push_back(method.name);
  codec::Json server;
  server.Set("name", "agentic-ci");
  server.Set("version", kVersion);
  codec::Json result;
  result.Set("protocol", kProtocol);
  result.Set("server", std::move(server));
  result.Set("methods", codec::Json::FromStrings(names));
  codec::Json limits;
  limits.Set("line_bytes", static_cast<int64_t>(kLineBytesMax));
  limits.Set("requests", static_cast<int64_t>(kTasksMax));
  result.Set("limits", std::move(limits));
  return result;
}

}  // namespace serve
