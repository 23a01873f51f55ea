// SPDX-License-Identifier: Apache-2.0
#include "component.h"

#include <regex>
#include <variant>

#include "base/version.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/options.h"

namespace tools {
namespace {

// One input of a template. What GitLab can check, it checks when it creates the pipeline.
struct Input {
  std::string name;
  std::string type;      // "string", "number", "boolean" or "array".
  std::string fallback;  // As YAML; empty: the input is required.
  std::string doc;
  std::string pattern = {};  // A regular expression that both RE2 and ECMAScript read alike.
  std::vector<std::string> choices = {};
  std::string variable = {};  // That carries it into the job; empty: it is a keyword's value.
};

constexpr std::string_view kDuration = "([0-9]+h)?([0-9]+m)?([0-9]+s)?";
constexpr std::string_view kSize = "[0-9]+(KiB|MiB|GiB)?";
constexpr std::string_view kDecimal = "[0-9]+(\\.[0-9]+)?";

// What an option's value looks like. Looser than its parser where only that can tell, and never
// stricter: CheckPattern() holds the two together.
std::string PatternOf(const cli::RunOption& option) {
  const cli::Field& field = option.field;
  std::string pattern;
  if (const auto* duration = std::get_if<cli::Duration>(&field)) {
    pattern = std::string(kDuration) + (duration->may_be_off ? "|off" : "");
  } else if (const auto* size = std::get_if<cli::Size>(&field)) {
    pattern = std::string(kSize) + (size->may_be_off ? "|off" : "");
  } else if (std::holds_alternative<cli::Cpus>(field)) {
    pattern = std::string(kDecimal) + "|all";
  } else if (std::holds_alternative<cli::Dollars>(field)) {
    pattern = kDecimal;
  } else if (std::holds_alternative<cli::Count>(field) && option.spec.fallback.empty()) {
    pattern = "[0-9]+";
  }
  if (pattern.empty()) return "";
  return "^(" + pattern + (option.spec.fallback.empty() ? "|" : "") + ")$";
}

// Whatever the option's parser takes, its pattern takes too, and some of what it does not, neither.
Status CheckPattern(const cli::RunOption& option, const std::string& pattern) {
  const std::regex regex(pattern);
  const std::string_view name = option.spec.name;
  for (const char* text : {"off", "all", "90s", "20m", "1h30m", "2h5s", "0s", "1", "4096", "4GiB",
                           "512KiB", "64MiB", "1.5", "0.25", "2", "1000000"}) {
    run::Request request = cli::DefaultRequest();
    if (!cli::SetOption(option, text, &request).ok() || std::regex_match(text, regex)) continue;
    return Error{Code::kInvalid, "--" + std::string(name) + " takes " + text + ", not " + pattern};
  }
  for (const char* text : {"soon", "4GB", "-1", "1 2", "$(id)", "1\n"}) {
    if (!std::regex_match(text, regex)) continue;
    return Error{Code::kInvalid, "--" + std::string(name) + ": " + pattern + " takes " + text};
  }
  return Ok();
}

std::string TypeOf(const cli::OptionSpec& spec, bool number) {
  if (spec.value.empty()) return "boolean";
  return number && !spec.fallback.empty() ? "number" : "string";
}

Input InputOf(const cli::OptionSpec& spec, const std::string& type) {
  Input input;
  input.name = spec.name;
  input.type = type;
  input.fallback = type == "boolean"  ? "false"
                   : type == "number" ? std::string(spec.fallback)
                                      : Quoted(spec.fallback);
  input.doc = spec.doc;
  if (spec.repeatable && !input.doc.ends_with("per line.")) input.doc += " One per line.";
  input.variable = cli::InputVariable(spec.name);
  return input;
}

// Options of `post` that the component `forks` gives a value, or that are about branches, which
// forks keep to themselves.
bool IsOfOneProposal(std::string_view option) {
  return option == "repository" || option == "number" || option == "api-url" ||
         option == "branch" || option == "title";
}

Result<std::vector<Input>> OptionInputs(Template which) {
  std::vector<Input> inputs;
  if (which == Template::kRun) {
    for (const cli::RunOption& option : cli::kRunOptions) {
      bool number = std::holds_alternative<cli::Count>(option.field);
      inputs.push_back(InputOf(option.spec, TypeOf(option.spec, number)));
      if (option.spec.name == "isolation") inputs.back().choices = {"namespaces", "landlock"};
      if (option.spec.name == "report-dir") inputs.back().pattern = "^[A-Za-z0-9._/-]+$";
      std::string pattern = inputs.back().type == "string" ? PatternOf(option) : "";
      if (pattern.empty()) continue;
      TRY(CheckPattern(option, pattern));
      inputs.back().pattern = pattern;
    }
    inputs.push_back(InputOf(cli::kCommandInput, "string"));
  } else {
    inputs.push_back(InputOf(cli::kReportDirInput, "string"));
    cli::Command post = TRY(cli::SelectCommand(cli::Commands(), {"post"}));
    for (const cli::OptionSpec& spec : post.options) {
      if (which == Template::kForks && IsOfOneProposal(spec.name)) continue;
      inputs.push_back(InputOf(spec, TypeOf(spec, false)));
      if (spec.name == "number") inputs.back().pattern = "^[0-9]*$";
    }
  }
  return inputs;
}

// How a component's job is called by default, and what it needs.
struct JobDefaults {
  std::string name;
  std::string image;
  std::string rules;
  std::string rules_doc;
  std::string timeout;
  std::string timeout_doc;
};

JobDefaults DefaultsOf(Template which) {
  const std::string merge_request = R"(if: '$CI_PIPELINE_SOURCE == "merge_request_event"')";
  switch (which) {
    case Template::kRun:
      return {"agentic-ci",
              "the agent, `git`, `curl` and CA certificates",
              "[{ " + merge_request + " }]",
              "",
              "1h",
              "; longer than `timeout`, so that the report is written"};
    case Template::kPost:
      return {"agentic-ci-post",
              "`curl` and CA certificates",
              "[{ " + merge_request + ", when: always }]",
              " `when: always` posts the report of a failed run, too.",
              "10m",
              ""};
    case Template::kForks:
      return {"agentic-ci-forks",
              "`curl`, `jq` and CA certificates",
              R"([{ if: '$CI_PIPELINE_SOURCE == "schedule"' }])",
              " Only for pipelines of the project's own protected branches: it holds the token.",
              "30m",
              ""};
  }
  return {};
}

// What a component needs beside the options: how the job is called, where it runs, and which
// binary.
std::vector<Input> JobInputs(Template which) {
  const JobDefaults defaults = DefaultsOf(which);
  std::vector<Input> inputs = {
      {"job-name", "string", Quoted(defaults.name),
       "The name of the job. To use the component twice in a pipeline, give each its own.",
       "^[A-Za-z0-9][A-Za-z0-9 ._:/-]*$"},
      {"stage", "string", "\"test\"", "The stage of the job."},
      {"job-image", "string", "",
       "The image of the job: " + defaults.image + ". Pin it by digest."},
      {"rules", "array", defaults.rules, "The rules of the job." + defaults.rules_doc},
      {"job-timeout", "string", Quoted(defaults.timeout),
       "The time limit of the job" + defaults.timeout_doc + "."},
  };
  if (which == Template::kRun) {
    inputs.push_back({"allow-failure", "boolean", "false",
                      "Whether the pipeline goes on, with a warning, if the run fails."});
    inputs.push_back({"expire-in", "string", "\"30 days\"", "How long the report is kept."});
  } else if (which == Template::kPost) {
    inputs.push_back({"run-job",
                      "string",
                      "\"agentic-ci\"",
                      "The job whose report is posted: `job-name` of the component `run`.",
                      "",
                      {},
                      "AGENTIC_CI_RUN_JOB"});
  } else {
    inputs.push_back({"run-job",
                      "string",
                      "\"agentic-ci\"",
                      "The job in the forks' pipelines whose reports are posted: `job-name` of the "
                      "component `run`.",
                      "",
                      {},
                      "AGENTIC_CI_RUN_JOB"});
  }
  inputs.push_back({"path",
                    "string",
                    "\"\"",
                    "An existing agentic-ci binary in the job's image. If not given, the release "
                    "`version` is downloaded.",
                    "",
                    {},
                    "AGENTIC_CI_PATH"});
  inputs.push_back({"version",
                    "string",
                    Quoted(kVersion),
                    "The release to download. Its SHA-256 must be listed in this commit of the "
                    "component.",
                    "^v?[0-9]+\\.[0-9]+\\.[0-9]+(-[0-9A-Za-z.]+)?$",
                    {},
                    "AGENTIC_CI_VERSION"});
  inputs.push_back({"download-url",
                    "string",
                    Quoted(std::string(kHomepage) + "/releases/download"),
                    "Where to download releases from, such as a mirror: URL/vVERSION/ASSET.",
                    "",
                    {},
                    "AGENTIC_CI_DOWNLOAD_URL"});
  return inputs;
}

Result<std::vector<Input>> InputsOf(Template which) {
  std::vector<Input> inputs = JobInputs(which);
  for (Input& input : TRY(OptionInputs(which))) inputs.push_back(std::move(input));
  return inputs;
}

std::string RenderSpec(const std::vector<Input>& inputs) {
  std::string text;
  for (const Input& input : inputs) {
    text += "    " + input.name + ":\n      description: " + Quoted(input.doc) + "\n";
    text += "      type: " + input.type + "\n";
    if (!input.fallback.empty()) text += "      default: " + input.fallback + "\n";
    for (size_t i = 0; i < input.choices.size(); ++i) {
      text += (i == 0 ? "      options: [" : ", ") + input.choices[i];
    }
    if (!input.choices.empty()) text += "]\n";
    if (!input.pattern.empty()) text += "      regex: " + Quoted(input.pattern) + "\n";
  }
  return text;
}

// `expand: false`: a "$" in an input is a dollar sign, and no variable of the job.
std::string RenderVariables(const std::vector<Input>& inputs) {
  std::string text;
  for (const Input& input : inputs) {
    if (input.variable.empty()) continue;
    std::string blank = input.type == "string" ? "" : " ";
    text += "    " + input.variable + ": { value: \"$[[ inputs." + input.name + " ]]" + blank +
            "\", expand: false }\n";
  }
  return text;
}

std::string RenderTable(const std::vector<Input>& inputs) {
  std::string text = "| input | type | default | meaning |\n|---|---|---|---|\n";
  for (const Input& input : inputs) {
    std::string fallback = input.fallback.empty() ? "required" : Code(input.fallback);
    text += "| " + Code(input.name) + " | " + input.type + " | " + fallback + " | " +
            Cell(input.doc) + " |\n";
  }
  return text;
}

// The lines of `text` from the first that is neither empty nor a comment, each behind `indent`.
std::string Indented(std::string_view text, const std::string& indent, bool whole) {
  std::string out;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!whole && (line.empty() || line.front() == '#')) continue;
    whole = true;
    out += line.empty() ? "\n" : indent + std::string(line) + "\n";
  }
  return out;
}

std::string ChecksumLines(std::string_view checksums) {
  std::string lines;
  while (!checksums.empty()) {
    size_t end = checksums.find('\n');
    std::string_view line = checksums.substr(0, end);
    checksums.remove_prefix(end == std::string_view::npos ? checksums.size() : end + 1);
    if (!line.empty() && line.front() != '#') lines += std::string(line) + "\n";
  }
  return "checksums='\n" + lines + "'\n";
}

}  // namespace

Result<std::string> ReplaceBlock(const std::string& file, std::string_view mark,
                                 std::string_view name, const std::string& block) {
  std::string marker = std::string(mark) + "generated: " + std::string(name);
  size_t begin = file.find(marker + " begin");
  size_t end = file.find(marker + " end");
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    return Error{Code::kInvalid, "no lines '" + marker + " begin' and '" + marker + " end'"};
  }
  constexpr std::string_view kClose = "-->";
  size_t first = file.find('\n', begin) + 1;
  size_t last = file.rfind('\n', end) + 1;  // The end marker's line stays, with its indentation.
  if (last <= begin) {
    first = file.find(kClose, begin) + kClose.size();
    last = end;
  }
  return file.substr(0, first) + block + file.substr(last);
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string Cell(std::string_view text) {
  std::string cell;
  for (char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

std::string Code(std::string_view text) { return "`" + Cell(text) + "`"; }

Result<std::string> RenderTemplate(Template which, const std::string& file,
                                   const std::string& install, const std::string& checksums) {
  std::vector<Input> inputs = TRY(InputsOf(which));
  std::string script = TRY(ReplaceBlock(install, "# ", "checksums", ChecksumLines(checksums)));
  std::string text = TRY(ReplaceBlock(file, "# ", "inputs", RenderSpec(inputs)));
  text = TRY(ReplaceBlock(text, "# ", "variables", RenderVariables(inputs)));
  return ReplaceBlock(text, "# ", "install", Indented(script, "      ", false));
}

Result<std::string> RenderComponentReadme(const std::string& file) {
  std::string run = RenderTable(TRY(InputsOf(Template::kRun)));
  std::string post = RenderTable(TRY(InputsOf(Template::kPost)));
  std::string forks = RenderTable(TRY(InputsOf(Template::kForks)));
  std::string text = TRY(ReplaceBlock(file, "<!-- ", "run inputs", run));
  text = TRY(ReplaceBlock(text, "<!-- ", "post inputs", post));
  return ReplaceBlock(text, "<!-- ", "forks inputs", forks);
}

}  // namespace tools
