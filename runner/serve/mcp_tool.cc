// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp_tool.h"

#include <algorithm>

#include "serve/output.h"

namespace serve {
namespace {

constexpr size_t kShownBytesMax = 24000;  // About 6,000 to 8,000 tokens.

Member Handle() {
  return {"sandbox", Form::kText,
          "The sandbox, as an earlier result named it. If not given, the present one."};
}

int64_t Truncated(const codec::Json& result, std::string_view name) {
  return result.IntegerAt(name);
}

void SetCommand(const codec::Json& result, codec::Json* told) {
  int64_t omitted = Truncated(result, "truncated_stdout") + Truncated(result, "truncated_stderr");
  told->Set("status", result.IntegerAt("status"));
  told->Set("reason", result.StringAt("reason"));
  told->Set("output", HeadAndTail(result.StringAt("stdout"), kShownBytesMax, &omitted));
  told->Set("omitted_bytes", omitted);
  told->Set("directory", result.StringAt("cwd"));
  for (const char* list : {"changes", "refused"}) {
    if (const codec::Json* found = result.Find(list)) told->Set(list, *found);
  }
}

void SetFile(const codec::Json& result, int64_t offset, codec::Json* told) {
  if (const codec::Json* base64 = result.Find("base64")) {
    // A part of what is not text would be of no use.
    const bool fits = base64->string()->size() <= kShownBytesMax;
    told->Set("base64", fits ? *base64->string() : "");
    told->Set("omitted_bytes", fits ? int64_t{0} : static_cast<int64_t>(base64->string()->size()));
    return;
  }
  const std::string all = result.StringAt("text");
  const size_t from = std::min(static_cast<size_t>(std::max<int64_t>(offset, 0)), all.size());
  const std::string_view shown = WholeText(std::string_view(all).substr(from, kShownBytesMax));
  told->Set("text", shown);
  told->Set("omitted_bytes", static_cast<int64_t>(all.size() - from - shown.size()) +
                                 Truncated(result, "truncated"));
}

}  // namespace

const std::vector<Tool>& Tools() {
  static const std::vector<Tool> kTools = {
      {{"run_command",
        "Runs a shell command in the sandbox. Its shell keeps the directory and variables for the "
        "next command. Network requests that the policy refuses are listed in `refused`.",
        {{"command", Form::kText, "Text for the shell.", true},
         {"directory", Form::kText, "Where to run it, this time only."},
         {"timeout", Form::kCount, "Seconds after which it is ended."},
         {"stdin", Form::kText, "What it reads from standard input."},
         Handle()}},
       "Run a command",
       "exec"},
      {{"read_file",
        "Reads a file in the sandbox.",
        {{"path", Form::kText, "The file; relative to the checkout.", true},
         {"offset", Form::kCount, "The byte to begin at, where an earlier result left some out."},
         Handle()}},
       "Read a file",
       "get",
       true},
      {{"write_file",
        "Writes a file in the sandbox, in place of one that is there.",
        {{"path", Form::kText, "The file; relative to the checkout.", true},
         {"text", Form::kText, "Its content."},
         {"base64", Form::kText, "Its content in Base64, instead of `text`."},
         {"executable", Form::kFlag, "True: it can be executed."},
         Handle()}},
       "Write a file",
       "put"},
      {{"diff", "Shows what has changed in the checkout, as a patch.", {Handle()}},
       "Show the changes",
       "diff",
       true},
      {{"reset", "Discards everything that was written in the sandbox.", {Handle()}},
       "Start over",
       "reset",
       false,
       true},
      {{"snapshot",
        "Keeps everything written in the sandbox, for its user, and tells the digest.",
        {Handle()}},
       "Take a snapshot",
       "snapshot"},
  };
  return kTools;
}

codec::Json ListOfTools() {
  codec::Json list = codec::Json::EmptyArray();
  for (const Tool& tool : Tools()) {
    codec::Json text;
    text.Set("type", "string");
    codec::Json properties;
    properties.Set("sandbox", std::move(text));
    codec::Json output;
    output.Set("type", "object");
    output.Set("properties", std::move(properties));
    output.Set("required", codec::Json::FromStrings({"sandbox"}));
    codec::Json hints;
    hints.Set("readOnlyHint", tool.reads_only);
    hints.Set("destructiveHint", tool.destroys);
    hints.Set("idempotentHint", tool.reads_only || tool.destroys);
    hints.Set("openWorldHint", tool.request == "exec");
    codec::Json one;
    one.Set("name", tool.method.name);
    one.Set("title", tool.title);
    one.Set("description", tool.method.doc);
    one.Set("inputSchema", SchemaOf(tool.method));
    one.Set("outputSchema", std::move(output));
    one.Set("annotations", std::move(hints));
    list.Push(std::move(one));
  }
  return list;
}

codec::Json RequestOf(const Tool& tool, const codec::Json& arguments, const std::string& sandbox,
                      int64_t timeout_s) {
  codec::Json params;
  params.Set("sandbox", sandbox);
  auto pass = [&](const char* from, const char* to) {
    if (const codec::Json* value = arguments.Find(from)) params.Set(to, *value);
  };
  if (tool.request == "exec") {
    const int64_t asked = arguments.IntegerAt("timeout");
    const int64_t limit = asked > 0 ? std::min(asked, timeout_s) : timeout_s;
    params.Set("timeout", std::to_string(limit) + "s");
    params.Set("merge", true);
    params.Set("collect", true);
    pass("command", "script");
    pass("directory", "directory");
    if (const codec::Json* input = arguments.Find("stdin")) {
      codec::Json bytes;
      bytes.Set("text", *input);
      params.Set("stdin", std::move(bytes));
    }
  } else if (tool.request == "get") {
    params.Set("collect", true);
    pass("path", "source");
  } else if (tool.request == "diff") {
    params.Set("collect", true);
  } else if (tool.request == "put") {
    pass("path", "target");
    for (const char* name : {"text", "base64", "executable"}) pass(name, name);
  }
  return params;
}

codec::Json ToolResult(const Tool& tool, const codec::Json& arguments, const std::string& sandbox,
                       const Result<codec::Json>& result) {
  codec::Json told;
  std::string text;
  if (result.ok()) {
    told.Set("sandbox", sandbox);
    if (tool.request == "exec") SetCommand(result.value(), &told);
    if (tool.request == "get") SetFile(result.value(), arguments.IntegerAt("offset"), &told);
    if (tool.request == "diff") {
      int64_t omitted = result.value().IntegerAt("truncated");
      const codec::Json* patch = result.value().Find("patch");
      Result<std::string> large = BytesOf(result.value());  // It was collected.
      const std::string shown = patch != nullptr ? result.value().StringAt("patch")
                                : large.ok()     ? std::move(large).value()
                                                 : std::string();
      told.Set("patch", HeadAndTail(shown, kShownBytesMax, &omitted));
      told.Set("omitted_bytes", omitted);
      told.Set("changes_complete", result.value().BooleanAt("changes_complete"));
    }
    if (tool.request == "snapshot") told.Set("digest", result.value().StringAt("digest"));
    text = codec::RenderJsonLine(told);
  } else {
    text = result.error().what;
    if (!result.error().hint.empty()) text += " (" + result.error().hint + ")";
  }
  codec::Json block;
  block.Set("type", "text");
  block.Set("text", std::move(text));
  codec::Json content;
  content.Push(std::move(block));
  codec::Json answer;
  answer.Set("content", std::move(content));
  if (result.ok()) answer.Set("structuredContent", std::move(told));
  answer.Set("isError", !result.ok());
  return answer;
}

std::string HeadAndTail(std::string_view text, size_t bytes_max, int64_t* omitted) {
  if (text.size() <= bytes_max) return std::string(text);
  const std::string_view head = WholeText(text.substr(0, bytes_max / 2));
  std::string_view tail = text.substr(text.size() - bytes_max / 2);
  while (!tail.empty() && (static_cast<unsigned char>(tail.front()) & 0xc0) == 0x80) {
    tail.remove_prefix(1);
  }
  const size_t cut = text.size() - head.size() - tail.size();
  *omitted += static_cast<int64_t>(cut);
  return std::string(head) + "\n[" + std::to_string(cut) + " bytes left out]\n" + std::string(tail);
}

}  // namespace serve
