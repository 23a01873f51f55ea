// SPDX-License-Identifier: Apache-2.0
// `agentic-ci serve`.
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/log.h"
#include "cli/run_command.h"
#include "cli/sandbox_command.h"
#include "serve/mcp_server.h"
#include "serve/server.h"

namespace cli {
namespace {

constexpr std::string_view kServeDoc =
    "Give a program sandboxes, by JSON-RPC on its streams. One message a line, on standard input "
    "and output; docs/reference/serve.md describes them. It has the user's rights and no more, "
    "opens no port, "
    "and ends with the program that started it or its standard input, as do the sandboxes that "
    "were created over it.";

constexpr std::string_view kMcpDoc =
    "Give an agent a sandbox in place of your shell, by MCP. A Model Context Protocol server on "
    "standard input and output, with tools that run commands and read and write files in one "
    "sandbox. Policy, limits and image are those of the options here; the model cannot change "
    "them. docs/reference/mcp.md shows the configuration of agents.";

// A session of a person with an agent: longer than that of a program.
constexpr std::string_view kMcpTtl = "24h";

bool IsServed(const OptionSpec& option) {
  constexpr std::string_view kNotServed[] = {"json", "quiet", "backend"};
  return std::find(std::begin(kNotServed), std::end(kNotServed), option.name) ==
         std::end(kNotServed);
}

std::vector<OptionSpec> CreationOptions() {
  std::vector<OptionSpec> options = SandboxCreation("serve", nullptr, "", "").options;
  std::erase_if(options, [](const OptionSpec& option) { return !IsServed(option); });
  return options;
}

std::string TextOf(const codec::Json& value) {
  return value.string() != nullptr ? *value.string() : std::to_string(value.integer().value_or(0));
}

Result<serve::CreateOptions::Wanted> ReadWanted(Arguments arguments, const std::string& name,
                                                const std::string& report_dir) {
  arguments.values.try_emplace("report-dir", std::vector{report_dir});
  serve::CreateOptions::Wanted wanted;
  wanted.request = TRY(ReadCreateRequest(arguments, name));
  wanted.snapshot = arguments.Get("snapshot");
  wanted.snapshot_key = arguments.Get("snapshot-key");
  return wanted;
}

Result<serve::CreateOptions::Wanted> ReadCreation(const codec::Json& params,
                                                  const std::string& name,
                                                  const std::string& report_dir) {
  Arguments arguments;
  for (const auto& [option, value] :
       params.object() != nullptr ? *params.object() : codec::Json::Object()) {
    if (value.boolean() == false) continue;
    std::vector<std::string>& given = arguments.values[option];
    if (value.boolean()) {
      given = {"true"};
    } else if (value.array() != nullptr) {
      for (const codec::Json& one : *value.array()) given.push_back(TextOf(one));
    } else {
      given = {TextOf(value)};
    }
  }
  return ReadWanted(arguments, name, report_dir);
}

Result<int> McpCommand(const Arguments& given) {
  if (!given.operands.empty()) return Usage("mcp takes no operands");
  logging::SetQuiet(true);
  Arguments arguments = given;
  arguments.values.try_emplace("ttl", std::vector{std::string(kMcpTtl)});
  // Invalid options are reported before a client sends anything.
  session::CreateRequest create = TRY(ReadCreateRequest(arguments, ""));
  serve::McpConfig config{arguments.Get("sandbox"), create.run.timeout_s};
  session::Place place = TRY(session::Place::Open());
  if (!config.sandbox.empty()) TRY(place.Find(config.sandbox));
  serve::CreateOptions options;
  options.read = [&arguments](const codec::Json&, const std::string& name,
                              const std::string& report_dir) {
    return ReadWanted(arguments, name, report_dir);
  };
  serve::McpServer server(std::move(config), std::move(place), std::move(options), STDIN_FILENO,
                          STDOUT_FILENO);
  TRY(server.Serve());
  return 0;
}

Result<int> ServeCommand(const Arguments& arguments) {
  if (!arguments.operands.empty()) return Usage("serve takes no operands");
  if (!arguments.Has("stdio")) {
    return Usage("serve speaks over standard input and output", "agentic-ci serve --stdio");
  }
  logging::SetQuiet(true);
  session::Place place = TRY(session::Place::Open());
  serve::Server server(std::move(place), ServeOptions(), STDIN_FILENO, STDOUT_FILENO);
  TRY(server.Serve());
  return 0;
}

}  // namespace

serve::CreateOptions ServeOptions() {
  serve::CreateOptions options;
  for (const OptionSpec& option : CreationOptions()) {
    const serve::Form form = option.value.empty() ? serve::Form::kFlag
                             : option.repeatable  ? serve::Form::kOptions
                                                  : serve::Form::kOption;
    options.members.push_back({std::string(option.name), form, std::string(option.doc)});
  }
  options.read = ReadCreation;
  return options;
}

Command McpCommandSpec() {
  Command command = SandboxCreation("mcp", McpCommand, kMcpDoc,
                                    "  agentic-ci mcp --policy policy.yml --timeout 5m\n"
                                    "  claude mcp add sandbox -- agentic-ci mcp\n");
  // Its sandbox has a name of its own, which says that it is another one after a restart.
  std::erase_if(command.options, [](const OptionSpec& option) {
    return option.name == "name" || !IsServed(option);
  });
  for (OptionSpec& option : command.options) {
    if (option.name == "ttl") option.fallback = kMcpTtl;
    if (option.name == "report-dir") {
      option.fallback = {};
      option.doc =
          "The directory to write the report to, when the sandbox ends. If not given, no report is "
          "kept.";
    }
  }
  command.options.insert(command.options.begin(),
                         {"sandbox", "NAME", "",
                          "Use this sandbox, of `sandbox create`, and leave it. If not given, one "
                          "is created, which ends with the server."});
  return command;
}

Command ServeCommandSpec() {
  return {.name = "serve",
          .carry_out = ServeCommand,
          .operands = "",
          .doc = kServeDoc,
          .example = "  agentic-ci serve --stdio\n",
          .options = {{"stdio", "", "", "Speak over standard input and output. Required."}}};
}

}  // namespace cli
