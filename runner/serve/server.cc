// SPDX-License-Identifier: Apache-2.0
#include "serve/server.h"

#include "base/log.h"
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
  if (request.id.empty()) return TakeNotice(request);
  Result<const Method*> method = FindMethod(methods(), request.method);
  auto refuse = [&](Fault fault, const std::string& what, const std::string& hint = {}) {
    output().Write(RenderFault(request.id, fault, what, hint));
  };
  if (!method.ok()) return refuse(Fault::kMethod, method.error().what, method.error().hint);
  const bool initializes = request.method == "initialize";
  if (initialized_ == initializes) {
    return refuse(Fault::kRequest,
                  initializes ? "'initialize' comes once" : "the first request is 'initialize'");
  }
  Status fine = CheckParams(*method.value(), request.params);
  if (!fine.ok()) return refuse(Fault::kParams, fine.error().what, fine.error().hint);
  Status begun = Begin(request);
  if (!begun.ok()) output().Write(RenderError(request.id, begun.error()));
}

// A notification has no answer. Those of a newer client mean nothing here.
void Server::TakeNotice(const Request& request) {
  Result<const Method*> method = FindMethod(methods(), request.method);
  if (!method.ok() || !initialized_) return;
  Status fine = CheckParams(*method.value(), request.params);
  if (fine.ok() && !IsNotice(request.method)) {
    fine = Error{Code::kUsage, request.method + ": an id is missing"};
  }
  codec::Json result;
  if (fine.ok()) fine = TakeControl(request, &result);
  if (!fine.ok()) logging::Warn("a notification was refused", {{"why", fine.error().what}});
}

Status Server::Begin(const Request& request) {
  codec::Json result = codec::Json::EmptyObject();
  if (request.method == "initialize") {
    if (request.params.IntegerAt("protocol") < kProtocol) {
      return Error{Code::kUnsupported, "this server speaks protocol 1"};
    }
    initialized_ = true;
    result = Introduce();
  } else if (request.method == "policy" && request.params.Find("text") == nullptr &&
             request.params.Find("file") == nullptr) {
    TRY(ReloadPolicy(request.params.StringAt("sandbox")));
  } else if (IsNotice(request.method)) {
    TRY(TakeControl(request, &result));
  } else {
    return BeginTask(request.id, request.method, request.params);
  }
  output().Write(RenderResult(request.id, result));
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
