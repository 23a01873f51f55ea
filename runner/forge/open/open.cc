// SPDX-License-Identifier: Apache-2.0
#include "forge/open/open.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/sys.h"
#include "forge/event_fields.h"
#include "forge/gitea/forge.h"
#include "forge/github/forge.h"
#include "forge/gitlab/forge.h"

namespace forge {
namespace {

// Gitea and Forgejo set GITHUB_ACTIONS too, so their row stands before GitHub's.
constexpr const Facts* kForges[] = {&kGiteaFacts, &kGitHubFacts, &kGitLabFacts};
static_assert(std::size(kForges) + 1 == static_cast<size_t>(ForgeKind::kCount), "a row is missing");

// Set by one CI system in every job, and by nothing else: beside a forge's own variables
// they show that the event is forged. JENKINS_URL and CODEBUILD_BUILD_ID do not: people set the one
// to reach a Jenkins, and CodeBuild runs GitHub's runner.
constexpr const char* kOtherCis[] = {
    "JENKINS_HOME",     "HUDSON_HOME",
    "CIRCLECI",         "TRAVIS",
    "BUILDKITE",        "DRONE",
    "CI_SYSTEM_NAME",   "TF_BUILD",
    "APPVEYOR",         "BITBUCKET_BUILD_NUMBER",
    "TEAMCITY_VERSION", "SEMAPHORE",
    "bamboo_buildKey",  "bamboo_planKey",
    "GO_PIPELINE_NAME", "TASKCLUSTER_ROOT_URL",
    "PROW_JOB_ID",      "BITRISE_BUILD_NUMBER",
};

// Set by most of them CI; Jenkins, Bamboo, GoCD, TeamCity, Taskcluster, Concourse, builds.sr.ht and
// Cloud Build set others only.
constexpr const char* kSomeCis[] = {
    "JENKINS_URL",
    "CIRRUS_CI",
    "CODEBUILD_BUILD_ID",
    "bamboo_buildNumber",
    "GO_SERVER_URL",
    "TASKCLUSTER_PROXY_URL",
    "TASK_ID",
    "ATC_EXTERNAL_URL",
    "BUILD_PIPELINE_NAME",
    "BUILD_SUBMITTER",
    "BUILD_REASON",
    "BUILDER_OUTPUT",
    "HARNESS_BUILD_ID",
    "CF_BUILD_ID",
    "HEROKU_TEST_RUN_ID",
    "SCREWDRIVER",
    "BUDDY",
    "KOKORO_JOB_NAME",
    "BUILD_NUMBER",
    "BUILD_ID",
};

// The first of `names` that is in the environment, with any value: a job's own YAML can set it to
// "false" or to nothing, and cannot remove it. Empty if none of them is.
std::string FirstThere(const Variables& variables, std::span<const char* const> names) {
  for (const char* name : names) {
    if (variables.Has(name)) return name;
  }
  return "";
}

// The variable that shows a continuous integration whose events ForgeOf() does not know.
std::string UnreadCi(const Variables& variables) {
  std::string name = FirstThere(variables, kOtherCis);
  for (auto forge = std::rbegin(kForges); forge != std::rend(kForges); ++forge) {
    if (name.empty()) name = FirstThere(variables, (*forge)->variables);
  }
  if (name.empty()) name = FirstThere(variables, kSomeCis);
  return name.empty() && variables.IsSet("CI") ? "CI" : name;
}

bool Has(std::span<const char* const> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::span<const Facts* const> AllFacts() { return kForges; }

const Facts& FactsOf(ForgeKind kind) {
  static constexpr Facts kNone;
  for (const Facts* forge : kForges) {
    if (forge->kind == kind) return *forge;
  }
  return kNone;
}

// Never two at once: a merge request's own .gitlab-ci.yml can set GITHUB_* for every job, a step of
// a workflow CI_* for the steps behind it, and a pipeline elsewhere both.
ForgeKind ForgeOf(const EnvironmentReader& environment) {
  const Variables variables(environment);
  if (!FirstThere(variables, kOtherCis).empty()) return ForgeKind::kNone;
  const char* const* list = nullptr;  // The variables of the CI that is there.
  ForgeKind kind = ForgeKind::kNone;
  for (const Facts* forge : kForges) {
    if (FirstThere(variables, forge->variables).empty()) continue;
    if (list != nullptr && list != forge->variables.data()) return ForgeKind::kNone;
    list = forge->variables.data();
    const bool flagged = std::any_of(forge->flags.begin(), forge->flags.end(),
                                     [&](const char* name) { return variables.True(name); });
    if (flagged && kind == ForgeKind::kNone) kind = forge->kind;
  }
  return kind;
}

Result<Event> ReadEvent(const EnvironmentReader& environment) {
  const Facts& forge = FactsOf(ForgeOf(environment));
  if (forge.event_file == nullptr) return ParseEvent(environment, "");
  const std::string path = Variables(environment).Get(forge.event_file);
  if (path.empty()) {
    return Error{Code::kSetup, std::string(forge.variables.front()) + " is set, but " +
                                   forge.event_file + " is not"};
  }
  std::string payload = TRY(sys::ReadFile(path, kEventBytesMax).Context("reading the event"));
  return ParseEvent(environment, payload).Context("reading the event " + path);
}

Result<Event> ParseEvent(const EnvironmentReader& environment, std::string_view payload) {
  const Facts& forge = FactsOf(ForgeOf(environment));
  if (forge.kind != ForgeKind::kNone) return forge.parse_event(environment, payload);
  Event event;
  event.unread_ci = UnreadCi(Variables(environment));
  return event;
}

Result<EventText> ReadEventText(const EnvironmentReader& environment, const Event& event) {
  const Facts& forge = FactsOf(event.forge);
  if (forge.kind == ForgeKind::kNone) return EventText();
  if (forge.event_file == nullptr) return forge.parse_text(environment, "");
  std::optional<std::string> path = environment(forge.event_file);
  if (!path) return EventText();
  std::string payload = TRY(sys::ReadFile(*path, kEventBytesMax).Context("reading the event"));
  return forge.parse_text(environment, payload).Context("reading the event " + *path);
}

bool ReadsWorkflowCommands(ForgeKind forge) {
  return FactsOf(forge).log_commands == codec::LogCommands::kWorkflow;
}

std::optional<codec::LogCommands> LogCommandsOf(const EnvironmentReader& environment) {
  const Facts& forge = FactsOf(ForgeOf(environment));
  // It is not known what the log of another CI carries out: a row that permits nothing.
  if (forge.kind != ForgeKind::kNone || !UnreadCi(Variables(environment)).empty()) {
    return forge.log_commands;
  }
  return std::nullopt;
}

bool ShowsCi(std::string_view name) {
  return name == "CI" || Has(kOtherCis, name) || Has(kSomeCis, name) ||
         std::any_of(std::begin(kForges), std::end(kForges),
                     [&](const Facts* forge) { return Has(forge->variables, name); });
}

bool IsOfCi(std::string_view name) {
  if (ShowsCi(name)) return true;
  return std::any_of(std::begin(kForges), std::end(kForges), [&](const Facts* forge) {
    return std::any_of(forge->prefixes.begin(), forge->prefixes.end(),
                       [&](std::string_view prefix) { return name.starts_with(prefix); });
  });
}

ForgeKind ForgeAt(std::string_view api_url, ForgeKind event) {
  while (api_url.ends_with('/')) api_url.remove_suffix(1);
  for (const Facts* forge : kForges) {
    if (!forge->api_ending.empty() && api_url.ends_with(forge->api_ending)) return forge->kind;
  }
  const Facts& own = FactsOf(event);
  return own.kind != ForgeKind::kNone && own.api_ending.empty() ? own.kind : ForgeKind::kGitHub;
}

ClientOptions OptionsFor(const Place& place, const std::string& api_url) {
  const Facts& forge = FactsOf(place.kind);
  ClientOptions options = forge.client == nullptr ? ClientOptions() : forge.client(place);
  if (!api_url.empty()) options.api_url = api_url;
  return options;
}

Result<std::unique_ptr<Forge>> Open(Client& client, const Place& place) {
  const Facts& forge = FactsOf(place.kind);
  if (forge.open == nullptr) return Error{Code::kInvalid, "there is no forge to post to"};
  if (!forge.valid_repository(place.repository)) {
    return Error{Code::kInvalid,
                 "invalid repository: '" + codec::NeutralLine(place.repository, 200) + "'",
                 "--repository " + std::string(forge.repository_form)};
  }
  if (place.number < 0) {
    return Error{Code::kInvalid, "no pull request to post to", "--number NUMBER"};
  }
  return forge.open(client, place);
}

}  // namespace forge
