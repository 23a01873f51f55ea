// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>

#include "base/named_path.h"
#include "cli/eval_command.h"
#include "cli/output.h"
#include "cli/run_command.h"
#include "eval/kubernetes/manifests.h"
#include "eval/run/run_plan.h"
#include "image/source/reference.h"
#include "run/credentials.h"

namespace cli {
namespace {

constexpr size_t kNamedFileBytesMax = size_t{1} << 20;  // The size of a whole ConfigMap.
// What agentic-ci itself needs in a pod, in addition to the limits of its cells.
constexpr int64_t kMemoryBytes = int64_t{512} << 20;
constexpr int64_t kDiskBytes = int64_t{1} << 30;

constexpr auto kOfAll =
    std::to_array<std::string_view>({"user-task", "injection-task", "trials", "tools"});
constexpr auto kOfShards = std::to_array<std::string_view>({"jobs", "model-host"});
constexpr auto kOfMerge =
    std::to_array<std::string_view>({"max-succeeded", "max-undecided", "json"});
// Where the pods have something else, and what a volume must not cover.
constexpr auto kMounts =
    std::to_array<std::string_view>({"/evaluation", "/results", "/scratch", "/bin", "/dev", "/etc",
                                     "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr"});
// A pod says which shard it is, and always resumes.
constexpr auto kOfOneMachine =
    std::to_array<std::string_view>({"shard", "resume", "backend", "agent-url"});

Result<std::string> ImageOf(const std::string& text) {
  image::Reference reference = TRY(image::ParseReference(text).Context("--kubernetes"));
  if (reference.kind == image::Reference::Kind::kRegistry && !reference.digest.empty()) {
    return reference.ToString();
  }
  return Usage("--kubernetes: '" + text + "' is not an image of a registry by its digest",
               "--kubernetes HOST/REPOSITORY@sha256:...");
}

bool NamesFile(std::string_view name) {
  if (name == "tools") return true;
  for (const RunOption& option : kRunOptions) {
    if (option.spec.name == name) return option.spec.value == "FILE";
  }
  return false;
}

Result<eval::ClusterFile> FileOf(const std::string& path, std::string shown) {
  std::string text = TRY(ReadNamedFile(path, kNamedFileBytesMax).Context("reading " + path));
  return eval::ClusterFile{std::move(shown), std::move(text)};
}

// The suite, and its verifiers and payloads beneath its directory, in a directory with the name
// that results give it; and the sets that it names of the option --payloads, in another.
Status AddSuite(const eval::Suite& suite, eval::ClusterRun* run) {
  const size_t name = suite.file.rfind('/') + 1;
  const std::string top = suite.name + "/";
  run->files.push_back(TRY(FileOf(suite.file, top + suite.file.substr(name))));
  std::set<std::string> sources;
  for (const eval::Verifier& verifier : suite.verifiers) {
    for (const auto& [path, text] : verifier.files) {
      if (sources.insert(path).second) run->files.push_back({top + path.substr(2), text});
    }
  }
  for (const eval::InjectionTask& task : suite.injection_tasks) {
    for (const eval::Probe& probe : task.probes) {
      if (probe.file.empty() || !sources.insert(probe.file).second) continue;
      constexpr std::string_view kBeneath = "file:";
      const bool beneath = probe.source.starts_with(kBeneath);
      const std::string path = beneath ? top + probe.source.substr(kBeneath.size())
                                       : "payloads/" + probe.file.substr(probe.file.rfind('/') + 1);
      run->files.push_back(TRY(FileOf(probe.file, path)));
      if (beneath || !run->merge_options.empty()) continue;
      const std::string word = "--payloads=" + std::string(eval::kClusterFiles) + "payloads";
      run->options.push_back(word);
      run->merge_options.push_back(word);
    }
  }
  return Ok();
}

// The options as given, with the places that pods have the named files in.
Status AddOptions(const Arguments& arguments, eval::ClusterRun* run) {
  for (const auto& [name, values] : arguments.values) {
    const bool of_all = IsIn(kOfAll, name);
    for (const std::string& value : values) {
      std::string word = "--" + name + (name == "json" ? "" : "=" + value);
      if (NamesFile(name)) {
        const std::string number = std::to_string(run->files.size());
        run->files.push_back(
            TRY(FileOf(value, "options/" + number + "-" + value.substr(value.rfind('/') + 1))));
        word = "--" + name + "=" + std::string(eval::kClusterFiles) + run->files.back().path;
      }
      if (of_all || IsIn(kOfMerge, name)) run->merge_options.push_back(word);
      if (of_all || IsIn(kOfShards, name) || eval::TakenByCells(name)) {
        run->options.push_back(std::move(word));
      }
    }
  }
  if (arguments.command.empty()) return Ok();
  run->options.emplace_back("--");
  run->options.insert(run->options.end(), arguments.command.begin(), arguments.command.end());
  return Ok();
}

Error BadTokenFile(const std::string& path, const std::string& what) {
  return Usage("--kubernetes: token_file: '" + path + "' " + what,
               "token_file=/var/run/secrets/NAME/token");
}

// Splits the path of a token into a directory, which becomes a volume, and a name in it.
Result<eval::ClusterToken> TokenOf(const gateway::TokenFile& file, const eval::ClusterRun& run) {
  const size_t slash = file.path.rfind('/');
  eval::ClusterToken token{file.path.substr(0, slash), file.path.substr(slash + 1), file.audience};
  const std::string whole = file.path + "/";
  for (std::string_view part : {"//", "/./", "/../", ":"}) {
    if (whole.find(part) == std::string::npos) continue;
    return BadTokenFile(file.path, "is not a path that a volume can have");
  }
  if (token.directory.empty()) return BadTokenFile(file.path, "is in no directory of its own");
  for (std::string_view place : kMounts) {
    if (!whole.starts_with(std::string(place) + "/")) continue;
    return BadTokenFile(file.path, "is in a directory that the pods have for something else");
  }
  for (const eval::ClusterToken& other : run.tokens) {
    if (!whole.starts_with(other.directory + "/") &&
        !(other.directory + "/").starts_with(token.directory + "/")) {
      continue;
    }
    return BadTokenFile(file.path, "is in the directory of another token");
  }
  return token;
}

// What the pods need for credentials: variables of a Secret, and tokens that Kubernetes writes.
Status AddCredentials(run::Request request, eval::ClusterRun* run) {
  for (const gateway::TokenFile& file : run::TokenFiles(request)) {
    run->tokens.push_back(TRY(TokenOf(file, *run)));
  }
  std::erase_if(request.providers, [](const run::ProviderBinding& binding) {
    return std::any_of(binding.identity.begin(), binding.identity.end(),
                       [](const auto& one) { return one.first == gateway::kIdentityFile; });
  });
  run->variables = run::CredentialVariables(request);
  return Ok();
}

}  // namespace

Result<int> PrintManifests(Arguments arguments, const eval::Suite& suite,
                           const ClusterShape& shape) {
  for (std::string_view name : kOfOneMachine) {
    if (!arguments.Has(name)) continue;
    return Usage("--kubernetes and --" + std::string(name) + " are mutually exclusive");
  }
  if (arguments.Get("isolation", "landlock") != "landlock") {
    return Usage("--isolation: a pod without privileges gives tier landlock alone",
                 "--isolation landlock");
  }
  if (shape.shards > shape.cells) {
    return Usage("--shards: there are only " + std::to_string(shape.cells) + " cells",
                 "--shards " + std::to_string(shape.cells));
  }
  eval::ClusterRun run;
  run.name = arguments.Get("results", "agentic-ci-eval");
  if (!eval::IsClusterName(run.name)) {
    return Usage("--results: '" + run.name +
                     "' is not a name for objects of Kubernetes: a letter, then letters, digits "
                     "and '-', in lower case, at most " +
                     std::to_string(eval::kClusterNameBytesMax),
                 "--results agentic-ci-eval");
  }
  run.image = TRY(ImageOf(arguments.Get("kubernetes")));
  arguments.values["isolation"] = {"landlock"};
  Arguments of_cells = arguments;
  of_cells.operands.clear();
  run::Request request = TRY(ReadRequest(of_cells));
  run.shards = shape.shards;
  run.cells = shape.cells;
  run.cpus = shape.jobs * (request.cpus > 0 ? request.cpus : 1);
  run.memory_bytes = shape.jobs * request.memory_bytes + kMemoryBytes;
  run.disk_bytes = shape.jobs * request.disk_bytes + kDiskBytes;
  TRY(AddCredentials(std::move(request), &run));
  TRY(AddSuite(suite, &run));
  TRY(AddOptions(arguments, &run));
  const std::string manifests = TRY(eval::RenderManifests(run));
  TRY(Print(manifests));
  return 0;
}

}  // namespace cli
