// SPDX-License-Identifier: Apache-2.0
#include "serve/message.h"

#include "base/exit_code.h"
#include "codec/data/json_line.h"

namespace serve {
namespace {

constexpr codec::JsonBounds kBounds = {.bytes_max = kLineBytesMax, .values_max = 100000};

std::string Answer(const std::string& id) { return "{\"jsonrpc\":\"2.0\",\"id\":" + id + ","; }

std::string RenderFailure(const std::string& id, int code, std::string_view what,
                          const codec::Json& data) {
  codec::Json error;
  error.Set("code", code);
  error.Set("message", what);
  error.Set("data", data);
  return Answer(id) + "\"error\":" + codec::RenderJsonLine(error) + "}\n";
}

codec::Json DataOf(Code code, const std::string& hint) {
  codec::Json data;
  data.Set("exit_code", static_cast<int>(ExitCodeOf(code)));
  data.Set("kind", NameOf(code));
  data.Set("hint", hint);
  return data;
}

}  // namespace

std::string IdOf(const codec::Json* value) {
  if (value == nullptr || (!value->integer() && value->string() == nullptr)) return {};
  return codec::RenderJsonLine(*value);
}

std::variant<Request, BadMessage> ParseMessage(std::string_view line) {
  Result<codec::Json> parsed = codec::ParseJson(line, kBounds);
  if (!parsed.ok()) return BadMessage{"null", Fault::kParse, parsed.error().what};
  const codec::Json& message = parsed.value();
  if (message.object() == nullptr) {
    return BadMessage{"null", Fault::kRequest, "a message is one object, and there are no batches"};
  }
  const codec::Json* id = message.Find("id");
  Request request{IdOf(id), message.StringAt("method"), {}};
  if (id != nullptr && request.id.empty()) {
    return BadMessage{"null", Fault::kRequest, "an id is a string or a whole number"};
  }
  const std::string shown = request.id.empty() ? "null" : request.id;
  if (message.StringAt("jsonrpc") != "2.0") {
    return BadMessage{shown, Fault::kRequest, "jsonrpc is not \"2.0\""};
  }
  if (request.method.empty()) return BadMessage{shown, Fault::kRequest, "a method is missing"};
  if (const codec::Json* params = message.Find("params")) {
    if (params->object() == nullptr) {
      return BadMessage{shown, Fault::kParams, "params is not an object"};
    }
    request.params = *params;
  }
  return request;
}

std::string RenderResult(const std::string& id, const codec::Json& result) {
  return Answer(id) + "\"result\":" + codec::RenderJsonLine(result) + "}\n";
}

std::string RenderFault(const std::string& id, Fault fault, const std::string& what,
                        const std::string& hint) {
  return RenderFailure(id, static_cast<int>(fault), what, DataOf(Code::kUsage, hint));
}

std::string RenderError(const std::string& id, const Error& error) {
  return RenderFailure(id, static_cast<int>(ExitCodeOf(error.code)), error.what,
                       DataOf(error.code, error.hint));
}

std::string RenderNotification(std::string_view method, std::string_view members) {
  return BeginNotification(method, members).append(kNotificationEnd);
}

std::string BeginNotification(std::string_view method, std::string_view members) {
  std::string line = "{\"jsonrpc\":\"2.0\",\"method\":\"";
  line.reserve(line.size() + method.size() + members.size() + sizeof "\",\"params\":{}}\n");
  line += method;
  line += "\",\"params\":{";
  line += members;
  return line;
}

std::string_view NameOf(Code code) {
  switch (code) {
    case Code::kUsage:
      return "usage";
    case Code::kInvalid:
      return "invalid";
    case Code::kNotFound:
      return "not_found";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kIo:
      return "io";
    case Code::kTemporary:
      return "temporary";
    case Code::kRefused:
      return "refused";
    case Code::kSetup:
      return "setup";
    case Code::kNothingToDo:
      return "nothing_to_do";
    case Code::kBug:
      return "bug";
  }
  return "bug";
}

}  // namespace serve
