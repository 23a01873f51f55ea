// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "codec/text/nearest.h"

namespace cli {
namespace {

Error UnknownOption(const std::vector<OptionSpec>& options, const std::string& word) {
  std::string name = word.substr(0, word.find('='));
  std::string bare = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  std::vector<std::string_view> names = {"help"};
  for (const OptionSpec& option : options) names.push_back(option.name);
  std::string nearest(codec::NearestName(bare, names));
  return Usage("unknown option '" + name + "'", nearest.empty() ? "" : "--" + nearest);
}

// The library names the option at the front of its message: "--timeout: 1 required ...".
Error MissingValue(const std::vector<OptionSpec>& options, std::string_view message) {
  for (const OptionSpec& option : options) {
    std::string dashed = "--" + std::string(option.name);
    if (message.starts_with(dashed + ":")) {
      return Usage(dashed + " needs a value", dashed + " " + std::string(option.value));
    }
  }
  return Usage(std::string(message));
}

// "--NAME" or "--NAME=VALUE".
bool Names(const std::string& word, std::string_view name) {
  return word.starts_with("--") && std::string_view(word).substr(2).starts_with(name) &&
         (word.size() == name.size() + 2 || word[name.size() + 2] == '=');
}

Status Split(const std::vector<OptionSpec>& options, std::vector<std::string> words,
             Arguments* arguments) {
  // Our own errors are better than the library's, so it is asked to let everything through: every
  // value as text, every option any number of times, every word it does not know.
  std::map<std::string, std::vector<std::string>> texts;
  std::map<std::string, bool> switches;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.add_flag("-h,--help", arguments->help);
  for (const OptionSpec& option : options) {
    std::string name(option.name);
    // The library compares each option with all before it, which takes longer than all else here.
    auto names = [&](const std::string& word) { return Names(word, name); };
    if (std::none_of(words.begin(), words.end(), names)) continue;
    if (option.value.empty()) {
      app.add_flag("--" + name, switches[name])->take_last();
    } else {
      app.add_option("--" + name, texts[name])->allow_extra_args(false)->take_all();
    }
  }
  std::reverse(words.begin(), words.end());  // The library takes them from the back.
  try {
    app.parse(words);
    for (const std::string& word : app.remaining()) {
      if (word.size() > 1 && word.front() == '-' && !arguments->help) {
        return UnknownOption(options, word);
      }
      arguments->operands.push_back(word);
    }
  } catch (const CLI::ArgumentMismatch& mismatch) {
    return MissingValue(options, mismatch.what());
  } catch (const CLI::Error& error) {
    return Usage(error.what());
  }
  for (auto& [name, values] : texts) {
    if (!values.empty()) arguments->values[name] = std::move(values);
  }
  for (const auto& [name, given] : switches) {
    if (given) arguments->values[name] = {"true"};
  }
  return Ok();
}

}  // namespace

std::string Arguments::Get(std::string_view name, std::string_view fallback) const {
  auto found = values.find(name);
  return found == values.end() ? std::string(fallback) : found->second.back();
}

std::vector<std::string> Arguments::All(std::string_view name) const {
  auto found = values.find(name);
  return found == values.end() ? std::vector<std::string>{} : found->second;
}

Result<Arguments> ParseArguments(const std::vector<OptionSpec>& options,
                                 const std::vector<std::string>& words) {
  Arguments arguments;
  auto separator = std::find(words.begin(), words.end(), "--");
  if (separator != words.end()) arguments.command.assign(separator + 1, words.end());
  TRY(Split(options, {words.begin(), separator}, &arguments));
  for (const OptionSpec& option : options) {
    if (!option.repeatable && arguments.All(option.name).size() > 1) {
      return Usage("--" + std::string(option.name) + " is given twice");
    }
  }
  return arguments;
}

}  // namespace cli
