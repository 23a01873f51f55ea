// SPDX-License-Identifier: Apache-2.0
// JSON-RPC 2.0, one message a line: what a client's line says, and how answers are written. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "codec/data/json.h"

namespace serve {

inline constexpr size_t kLineBytesMax = size_t{16} << 20;

// JSON-RPC's own codes. The error of a method has the exit code that the command line has for it.
enum class Fault : int {
  kParse = -32700,
  kRequest = -32600,
  kMethod = -32601,
  kParams = -32602,
};

struct Request {
  std::string
      id;  // As it stands in the answer: a number or a string in JSON; empty if none is due.
  std::string method;
  codec::Json params;  // An object, or null.
};

// A line that is not a request.
struct BadMessage {
  std::string id = "null";
  Fault fault = Fault::kRequest;
  std::string what;
};

std::variant<Request, BadMessage> ParseMessage(std::string_view line);

// Returns the id that `value` is, as in Request::id; empty unless it is a string or a whole number.
std::string IdOf(const codec::Json* value);

// Each renders one line, with its end.
std::string RenderResult(const std::string& id, const codec::Json& result);
std::string RenderFault(const std::string& id, Fault fault, const std::string& what,
                        const std::string& hint = {});
std::string RenderError(const std::string& id, const Error& error);
// `members` are those of the params, rendered: "\"a\":1".
std::string RenderNotification(std::string_view method, std::string_view members);
// Renders its beginning; more members may follow, and then kNotificationEnd.
std::string BeginNotification(std::string_view method, std::string_view members);
inline constexpr std::string_view kNotificationEnd = "}}\n";

// Returns the name of a kind of failure: "usage", "not_found".
std::string_view NameOf(Code code);

}  // namespace serve
