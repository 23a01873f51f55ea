// SPDX-License-Identifier: Apache-2.0
// The tools that `agentic-ci mcp` gives a model: what each takes, which request it becomes, and
// what the model is told. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec/data/json.h"
#include "serve/method.h"

namespace serve {

struct Tool {
  Method method;  // Its name, what it is for, and its arguments.
  std::string title;
  std::string request;  // The protocol's method that carries it out.
  bool reads_only = false;
  bool destroys = false;
};

const std::vector<Tool>& Tools();

// Returns the tools as `tools/list` has them.
codec::Json ListOfTools();

// Returns the params of `tool.request` for `arguments` (checked). A command runs for `timeout_s` at
// most, whatever the model asks for.
codec::Json RequestOf(const Tool& tool, const codec::Json& arguments, const std::string& sandbox,
                      int64_t timeout_s);

// Returns the result of a call, from the result of its request.
codec::Json ToolResult(const Tool& tool, const codec::Json& arguments, const std::string& sandbox,
                       const Result<codec::Json>& result);

// Returns the beginning and the end of a text that is longer than `bytes_max`, with how much is
// left out between them; adds that to `omitted`.
std::string HeadAndTail(std::string_view text, size_t bytes_max, int64_t* omitted);

}  // namespace serve
