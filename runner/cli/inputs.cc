// SPDX-License-Identifier: Apache-2.0
#include "cli/inputs.h"

#include <algorithm>
#include <optional>

#include "base/ascii.h"
#include "codec/data/json.h"

namespace cli {
namespace {

// One value per line; blanks around it and empty lines mean nothing.
std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = ascii::Trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.empty()) lines.emplace_back(line);
  }
  return lines;
}

// Only the text of a Text is kept as it is. Around a number or a switch, blanks mean nothing: the
// component puts one there, because a variable of GitLab must be a string.
Status SetInput(const RunOption& option, const std::string& text, run::Request* request) {
  if (option.spec.repeatable) {
    for (const std::string& line : Lines(text)) TRY(SetOption(option, line, request));
    return Ok();
  }
  if (std::holds_alternative<Text>(option.field)) return SetOption(option, text, request);
  return SetOption(option, ascii::Trimmed(text), request);
}

std::string_view DefaultOf(const RunOption& option) {
  return option.spec.value.empty() ? "false" : option.spec.fallback;
}

Error WrongInput(const OptionSpec& option, std::string_view what) {
  return Usage("--" + std::string(option.name) + ": " + std::string(what));
}

}  // namespace

std::string InputVariable(std::string_view name) {
  std::string variable = "AGENTIC_CI_INPUT_";
  for (char c : name) variable += c == '-' ? '_' : ascii::ToUpper(c);
  return variable;
}

Result<Inputs> ParseInputs(std::string_view json) {
  codec::Json inputs = TRY(codec::ParseJson(json).Context("reading INPUTS"));
  if (inputs.object() == nullptr) return Error{Code::kInvalid, "INPUTS is not a JSON object"};
  return Inputs(
      [object = std::move(inputs)](std::string_view name) { return object.StringAt(name); });
}

Result<Inputs> ReadInputs(const forge::EnvironmentReader& environment,
                          const std::vector<OptionSpec>& options) {
  std::optional<std::string> json = environment("INPUTS");
  if (json) return ParseInputs(*json);
  auto is_set = [&](const OptionSpec& option) {
    return environment(InputVariable(option.name)).has_value();
  };
  if (std::none_of(options.begin(), options.end(), is_set)) {
    return Error{Code::kSetup, "INPUTS is not set", "INPUTS: ${{ toJSON(inputs) }}"};
  }
  return Inputs([environment](std::string_view name) {
    return environment(InputVariable(name)).value_or("");
  });
}

Result<run::Request> ReadRunInputs(const Inputs& inputs) {
  run::Request request = DefaultRequest();
  for (const RunOption& option : kRunOptions) {
    std::string text = inputs(option.spec.name);
    if (text.empty()) continue;
    TRY(SetInput(option, text, &request));
    // The action and the component give every input its default.
    if (ascii::Trimmed(text) != DefaultOf(option)) request.given.emplace_back(option.spec.name);
  }
  request.command = Lines(inputs(kCommandInput.name));
  TRY(CheckRequest(request));
  return request;
}

Result<Arguments> ReadPostInputs(const Inputs& inputs, const std::vector<OptionSpec>& options) {
  Arguments arguments;
  for (const OptionSpec& option : options) {
    std::string text(ascii::Trimmed(inputs(option.name)));
    if (text.empty() || (option.value.empty() && text == "false")) continue;
    if (option.value.empty() && text != "true") return WrongInput(option, "must be true or false");
    arguments.values[std::string(option.name)] =
        option.repeatable ? Lines(text) : std::vector<std::string>{text};
  }
  std::string directory = inputs(kReportDirInput.name);
  if (directory.empty()) directory = kReportDirInput.fallback;
  if (directory.find('\0') != std::string::npos) {
    return WrongInput(kReportDirInput, "the value has a null byte");
  }
  arguments.operands = {directory};
  return arguments;
}

}  // namespace cli
