// SPDX-License-Identifier: Apache-2.0
// `agentic-ci serve`.
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/log.h"
#include "cli/run_command.h"
#include "cli/sandbox_command.h"
#include "codec/text/quantity.h"
#include "serve/server.h"

namespace cli {
namespace {

constexpr std::string_view kServeDoc =
    "Give a program sandboxes, by JSON-RPC on its streams. One message a line, on standard input "
    "and output; docs/reference/serve.md describes them. It has the user's rights and no more, "
    "opens no port, "
    "and ends with the program that started it or its standard input, as do the sandboxes that "
    "were created over it.";

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
  arguments.values.try_emplace("report-dir", std::vector{report_dir});
  serve::CreateOptions::Wanted wanted;
  wanted.request = TRY(ReadCreateRequest(arguments, name));
  wanted.snapshot = arguments.Get("snapshot");
  wanted.snapshot_key = arguments.Get("snapshot-key");
  return wanted;
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

Command ServeCommandSpec() {
  return {.name = "serve",
          .carry_out = ServeCommand,
          .operands = "",
          .doc = kServeDoc,
          .example = "  agentic-ci serve --stdio\n",
          .options = {{"stdio", "", "", "Speak over standard input and output. Required."}}};
}

}  // namespace cli
