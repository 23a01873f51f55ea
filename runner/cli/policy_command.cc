// SPDX-License-Identifier: Apache-2.0
#include "cli/policy_command.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/exit_code.h"
#include "base/sys.h"
#include "cli/error_text.h"
#include "codec/json.h"
#include "codec/position.h"
#include "policy/explain.h"
#include "policy/json_schema.h"
#include "policy/parse.h"
#include "policy/table.h"

namespace cli {
namespace {

// A little above the bound of a policy file, so that parsing says what the bound is.
constexpr size_t kFileBytesMax = size_t{1} << 20;

Status Print(const std::string& text) { return sys::WriteAll(STDOUT_FILENO, text); }

Result<policy::ParsedPolicy> ReadPolicy(const std::string& file, const std::string& agent) {
  std::string text = TRY(sys::ReadFile(file, kFileBytesMax).Context("reading the policy"));
  policy::ParseContext context;
  context.file = file;
  context.agent_name = agent;
  return policy::ParsePolicy(text, context);
}

// As a person reads the file: from its top.
std::vector<policy::Warning> InOrder(std::vector<policy::Warning> warnings) {
  std::stable_sort(warnings.begin(), warnings.end(),
                   [](const policy::Warning& a, const policy::Warning& b) {
                     return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
                   });
  return warnings;
}

Status PrintCheck(const std::string& file, const Result<policy::ParsedPolicy>& parsed) {
  if (!parsed.ok()) return sys::WriteAll(STDERR_FILENO, RenderError(parsed.error()));
  for (const policy::Warning& warning : InOrder(parsed.value().warnings)) {
    TRY(Print(codec::Locate(file, warning.at) + ": warning: " + warning.what + "\n"));
  }
  return Print(file + ": ok\n");
}

codec::Json CheckAsJson(const std::string& file, const Result<policy::ParsedPolicy>& parsed) {
  codec::Json object;
  object.Set("file", file);
  object.Set("valid", parsed.ok());
  if (!parsed.ok()) {
    object.Set("error", parsed.error().what);
    object.Set("hint", parsed.error().hint);
    return object;
  }
  object.Set("form", parsed.value().short_form ? "endpoints" : "openshell");
  codec::Json warnings = codec::Json::EmptyArray();
  for (const policy::Warning& warning : InOrder(parsed.value().warnings)) {
    codec::Json one;
    one.Set("line", warning.at.line);
    one.Set("column", warning.at.column);
    one.Set("what", warning.what);
    warnings.Push(one);
  }
  object.Set("warnings", warnings);
  return object;
}

// What `policy test` adds up over its files.
struct TableTotal {
  int passed = 0;
  int failed = 0;
  codec::Json files = codec::Json::EmptyArray();
};

codec::Json TableAsJson(const std::string& file, const policy::TableReport& report) {
  codec::Json object;
  object.Set("file", file);
  object.Set("about", report.about);
  object.Set("cases", report.cases);
  object.Set("failures", codec::Json::FromStrings(report.failures));
  return object;
}

Status TestTable(const std::string& file, bool json, TableTotal* total) {
  policy::TableReport report = TRY(policy::RunPolicyTable(file));
  int failed = static_cast<int>(report.failures.size());
  total->passed += report.cases - failed;
  total->failed += failed;
  total->files.Push(TableAsJson(file, report));
  if (json) return Ok();
  for (const std::string& failure : report.failures) TRY(Print(failure + "\n"));
  std::string word = failed == 0 ? "ok " : "FAILED ";
  return Print(word + file + " (" + std::to_string(report.cases) +
               (report.cases == 1 ? " case)\n" : " cases)\n"));
}

}  // namespace

Result<int> PolicyCheckCommand(const Arguments& arguments) {
  if (arguments.operands.empty()) {
    return Error{Code::kUsage, "policy check needs a file", "agentic-ci policy check FILE"};
  }
  bool json = arguments.Has("json");
  int status = 0;
  codec::Json files = codec::Json::EmptyArray();
  for (const std::string& file : arguments.operands) {
    Result<policy::ParsedPolicy> parsed = ReadPolicy(file, "command");
    if (!parsed.ok() && status == 0) status = static_cast<int>(ExitCodeOf(parsed.error().code));
    if (json) {
      files.Push(CheckAsJson(file, parsed));
    } else {
      TRY(PrintCheck(file, parsed));
    }
  }
  if (json) {
    codec::Json object;
    object.Set("files", files);
    TRY(Print(codec::RenderJson(object)));
  }
  return status;
}

Result<int> PolicyExplainCommand(const Arguments& arguments) {
  std::string file = arguments.Get("policy");
  if (file.empty()) return Error{Code::kUsage, "policy explain needs a policy", "--policy FILE"};
  if (arguments.operands.size() != 1) {
    return Error{Code::kUsage, "policy explain needs one URL, or HOST:PORT",
                 "agentic-ci policy explain --policy " + file + " URL"};
  }
  policy::ParsedPolicy parsed = TRY(ReadPolicy(file, arguments.Get("agent", "command")));
  policy::Question question;
  question.url = arguments.operands.front();
  question.method = arguments.Get("method", "GET");
  question.binaries = arguments.All("binary");
  policy::Explanation explanation = TRY(policy::Explain(parsed, question));
  TRY(Print(arguments.Has("json") ? policy::RenderExplanationJson(explanation)
                                  : policy::RenderExplanation(explanation)));
  return explanation.allowed ? 0 : static_cast<int>(ExitCode::kRefused);
}

Result<int> PolicyTestCommand(const Arguments& arguments) {
  if (arguments.operands.empty()) {
    return Error{Code::kUsage, "policy test needs a table", "agentic-ci policy test FILE"};
  }
  bool json = arguments.Has("json");
  TableTotal total;
  for (const std::string& file : arguments.operands) TRY(TestTable(file, json, &total));
  if (json) {
    codec::Json object;
    object.Set("passed", total.passed);
    object.Set("failed", total.failed);
    object.Set("files", total.files);
    TRY(Print(codec::RenderJson(object)));
  } else {
    TRY(Print(std::to_string(total.passed) + " passed, " + std::to_string(total.failed) +
              " failed\n"));
  }
  return total.failed == 0 ? 0 : static_cast<int>(ExitCode::kInvalid);
}

Result<int> PolicySchemaCommand(const Arguments&) {
  TRY(Print(policy::RenderPolicySchema()));
  return 0;
}

}  // namespace cli
