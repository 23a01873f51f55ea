// SPDX-License-Identifier: Apache-2.0
// The protocol as data: its methods, and what each takes. Requests are checked by these tables, and
// the JSON Schema is made from them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/data/json.h"

namespace serve {

inline constexpr int kProtocol = 1;

// What a member's value is. kBytes is an object with one of `text` and `base64`; kOption is the
// text of a command line's option, or a number; kOptions a list of such, or one.
enum class Form { kText, kFlag, kCount, kTexts, kVariables, kId, kObject, kOption, kOptions };

struct Member {
  std::string name;
  Form form = Form::kText;
  std::string doc = {};  // Sentences.
  bool required = false;
};

struct Method {
  std::string name;
  std::string doc;
  std::vector<Member> members;
};

// Returns all methods that a client may call. `options` are the members of `create`.
std::vector<Method> Methods(const std::vector<Member>& options);

// Returns the method of that name. Fails with kNotFound; the hint is the nearest name.
Result<const Method*> FindMethod(const std::vector<Method>& methods, const std::string& name);

// Checks `params` by the method's members. Fails with kUsage: a member that is missing, of another
// form, or unknown (the hint is the nearest).
Status CheckParams(const Method& method, const codec::Json& params);

// Returns the bytes that `params` has as `text` or `base64`; nothing if it has neither. Fails with
// kUsage for both, or text that is not Base64.
Result<std::string> BytesOf(const codec::Json& params);

// Returns the JSON Schema (2020-12) of a method's params.
codec::Json SchemaOf(const Method& method);

// Renders the JSON Schema (2020-12) of all messages, either way.
std::string RenderSchema(const std::vector<Method>& methods);

}  // namespace serve
