// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/client/command_client.h"

#include <algorithm>
#include <cstdio>

#include "base/sys.h"
#include "codec/data/json.h"
#include "codec/text/neutral.h"

namespace openshell {
namespace {

using std::chrono::seconds;

constexpr seconds kShortTime{60};
constexpr seconds kPolicyTime{60};  // The supervisor looks for a new policy every ten seconds.
constexpr size_t kFieldBytesMax = 100;
constexpr size_t kSaidBytesMax = 300;
constexpr int kSandboxesPage = 500;

// OpenShell starts each command with a login shell, which runs what lies in HOME, and the agent
// could put there what decides what this program's own commands do. The kernel lets no file be made
// in this one.
constexpr char kNoHome[] = "HOME=/proc";

// If a command ends before its standard input does, the gateway may report exit status 1 in place
// of its own: about one in a hundred short commands.
constexpr char kReadNothing[] = "read -r nothing; ";

std::string ProfileText(const std::string& id, const std::string& variable) {
  codec::Json value;
  value.Set("name", "value");
  value.Set("description", "a credential of one run");
  value.Set("env_vars", codec::Json::FromStrings({variable}));
  value.Set("required", true);
  codec::Json json;
  json.Set("id", id);
  json.Set("display_name", id);
  json.Set("description", "a credential of one run of agentic-ci");
  json.Set("category", "other");
  codec::Json list = codec::Json::EmptyArray();
  list.Push(std::move(value));
  json.Set("credentials", std::move(list));
  json.Set("endpoints", codec::Json::EmptyArray());
  json.Set("binaries", codec::Json::EmptyArray());
  return codec::RenderJson(json);
}

// Adds each name that is `start` and digits in `text` to `names`.
void TakeNames(std::string_view text, const std::string& start, std::set<std::string>* names) {
  for (size_t at = text.find(start); at != std::string_view::npos; at = text.find(start, at + 1)) {
    const size_t digits = at + start.size();
    const size_t end = std::min(text.find_first_not_of("0123456789", digits), text.size());
    if (end > digits) names->insert(std::string(text.substr(at, end - at)));
  }
}

// Asks for the deletion of something; it is fine if that is not there.
Status DoDelete(const CommandLine& openshell, std::vector<std::string> words, Deadline deadline) {
  Result<std::string> done = openshell.Do(std::move(words), deadline);
  if (done.ok() || done.error().code == Code::kNotFound) return Ok();
  return std::move(done).error();
}

SandboxFacts FactsOf(const codec::Json& json) {
  SandboxFacts facts;
  facts.name = codec::NeutralLine(json.StringAt("name"), kFieldBytesMax);
  facts.phase = codec::NeutralLine(json.StringAt("phase"), kFieldBytesMax);
  facts.created = codec::NeutralLine(json.StringAt("created_at"), kFieldBytesMax);
  const codec::Json* labels = json.Find("labels");
  if (labels == nullptr || labels->object() == nullptr) return facts;
  for (const auto& [key, value] : *labels->object()) {
    if (value.string() != nullptr) facts.labels.emplace_back(key, *value.string());
  }
  return facts;
}

}  // namespace

std::unique_ptr<Client> CommandClient::Uncancelled() const {
  return std::make_unique<CommandClient>(openshell_.Uncancelled(), state_);
}

Result<std::string> CommandClient::CheckAnswer(Deadline deadline) const {
  codec::Json json = TRY(
      openshell_.AskJson({"status", "-o", "json"}, deadline).Context("asking OpenShell's gateway"));
  if (!json.StringAt("status").starts_with("connected")) {
    return Error{Code::kTemporary,
                 "OpenShell's gateway does not respond: " +
                     codec::NeutralLine(json.StringAt("error"), kSaidBytesMax),
                 "openshell status"};
  }
  // It says that it is connected where it refuses who asks, too.
  const codec::Json* login = json.Find("authentication");
  if (login != nullptr && login->StringAt("status") == "failed") {
    return Error{Code::kSetup,
                 "OpenShell's gateway refuses the credentials: " +
                     codec::NeutralLine(login->StringAt("error"), kSaidBytesMax),
                 "--gateway NAME, after openshell gateway login NAME"};
  }
  return ParseVersion("openshell " + json.StringAt("version"));
}

Status CommandClient::Create(const SandboxSpec& spec, Deadline deadline) const {
  const std::string policy = state_ + "/policy.yaml";
  TRY(sys::WriteFile(policy, spec.policy, 0600));
  std::vector<std::string> words = {
      "sandbox",  "create", "--name", spec.name, "--detach", "--no-tty", "--no-auto-providers",
      "--policy", policy};
  auto add = [&](const std::string& option, const std::string& value) {
    words.push_back(option);
    words.push_back(value);
  };
  if (!spec.image.empty()) add("--from", spec.image);
  if (spec.cpus > 0) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", spec.cpus);
    add("--cpu", text);
  }
  if (spec.memory_bytes > 0) add("--memory", std::to_string(spec.memory_bytes / kMebibyte) + "Mi");
  if (!spec.approval_mode.empty()) add("--approval-mode", spec.approval_mode);
  for (const auto& [key, value] : spec.labels) add("--label", key + "=" + value);
  for (const std::string& provider : spec.providers) add("--provider", provider);
  words.insert(words.end(), {"--env", kNoHome, "--", "sleep", "infinity"});
  TRY(openshell_.Do(words, deadline));
  return Ok();
}

Status CommandClient::LetPropose(const std::string& name) const {
  TRY(openshell_.Do(
      {"settings", "set", name, "--key", "agent_policy_proposals_enabled", "--value", "true"},
      Deadline::After(kShortTime)));
  return Ok();
}

Result<std::optional<SandboxFacts>> CommandClient::Find(const std::string& name,
                                                        Deadline deadline) const {
  Result<codec::Json> said = openshell_.AskJson({"sandbox", "get", name, "-o", "json"}, deadline);
  if (!said.ok() && said.error().code == Code::kNotFound) return std::optional<SandboxFacts>();
  return std::optional(FactsOf(TRY(std::move(said))));
}

Result<std::vector<SandboxFacts>> CommandClient::List(const std::string& key,
                                                      const std::string& value,
                                                      Deadline deadline) const {
  std::vector<SandboxFacts> all;
  for (int offset = 0;; offset += kSandboxesPage) {
    codec::Json page = TRY(openshell_.AskJson(
        {"sandbox", "list", "-o", "json", "--selector", key + "=" + value, "--limit",
         std::to_string(kSandboxesPage), "--offset", std::to_string(offset)},
        deadline));
    if (page.array() == nullptr) return Error{Code::kIo, "the gateway lists no sandboxes"};
    if (all.size() + page.array()->size() > kSandboxesMax) return TooManySandboxes();
    for (const codec::Json& one : *page.array()) all.push_back(FactsOf(one));
    if (page.array()->size() < static_cast<size_t>(kSandboxesPage)) return all;
  }
}

Status CommandClient::Start(const std::string& name, Deadline deadline) const {
  TRY(openshell_.Do({"sandbox", "start", name}, deadline));
  return Ok();
}

Status CommandClient::Delete(const std::string& name, Deadline deadline) const {
  return DoDelete(openshell_, {"sandbox", "delete", name}, deadline);
}

Result<Child> CommandClient::Exec(const std::string& name, const std::string& script,
                                  int input) const {
  const std::string whole = (input < 0 ? kReadNothing : "") + script;
  return openshell_.Start({"sandbox", "exec", "-n", name, "--no-tty", "--", "sh", "-c", whole},
                          input);
}

Status CommandClient::Put(const std::string& name, const std::string& from, const std::string& to,
                          Deadline deadline) const {
  TRY(openshell_.Do({"sandbox", "upload", name, from, to, "--no-git-ignore"}, deadline));
  return Ok();
}

Result<Child> CommandClient::FollowRecords(const std::string& name, int log, int said) const {
  return openshell_.Start({"logs", name, "--tail", "-n", "10000", "--source", "sandbox"}, -1, log,
                          "openshell", said);
}

// The gateway's policy is put back, not the one that this program sent: approved proposals are in
// it.
Status CommandClient::SetPolicy(const std::string& name, const std::string& policy) const {
  const std::string next = state_ + "/policy-next.yaml";
  const std::string before = state_ + "/policy-before.yaml";
  TRY(sys::WriteFile(next, policy, 0600));
  const codec::Json now = TRY(openshell_.AskJson({"policy", "get", name, "--base", "-o", "json"},
                                                 Deadline::After(kShortTime)));
  const codec::Json* whole = now.Find("policy");
  if (whole == nullptr) return Error{Code::kIo, "the gateway does not say which policy it has"};
  TRY(sys::WriteFile(before, codec::RenderJson(*whole), 0600));
  auto set = [&](const std::string& file) {
    return openshell_.Ask({"policy", "set", name, "--policy", file, "--wait", "--timeout",
                           std::to_string(kPolicyTime.count())},
                          Deadline::After(kPolicyTime + kShortTime));
  };
  const Answer answer = TRY(set(next));
  const std::string said = answer.error + answer.output;
  auto says = [&](const char* word) { return said.find(word) != std::string::npos; };
  if (answer.status == 0 && (says("loaded (") || says("unchanged"))) return Ok();
  if (answer.status == 0) return Error{Code::kTemporary, "another policy took its place meanwhile"};
  // The gateway has it then, and the supervisor refuses it or is not heard of.
  if (says("submitted")) (void)set(before);
  return ErrorOf("openshell policy set", said);
}

Result<std::vector<Proposal>> CommandClient::Proposals(const std::string& name,
                                                       Deadline deadline) const {
  return ParseProposals(TRY(openshell_.Do({"rule", "get", name}, deadline)));
}

Result<Child> CommandClient::AskProposals(const std::string& name) const {
  return openshell_.Start({"rule", "get", name, "--status", "pending"}, -1);
}

std::vector<Proposal> CommandClient::ReadProposals(std::string_view text) const {
  return ParseProposals(text);
}

// A profile without endpoints goes where the policy binds it, and nowhere else. The value is in the
// environment of one process for as long as that lives.
Status CommandClient::MakeCredential(const std::string& id, const CredentialForm& form,
                                     const Secret& value) const {
  const std::string& variable = form.variable;
  const std::string file = state_ + "/profile-" + id + ".yaml";
  TRY(sys::WriteFile(file, ProfileText(id, variable), 0600));
  const Deadline deadline = Deadline::After(kShortTime);
  TRY(openshell_.Do({"provider", "profile", "import", "--file", file}, deadline));
  TRY(openshell_.Do({"provider", "create", "--name", id, "--type", id, "--credential", variable},
                    deadline, {{variable, std::string(value.reveal())}}));
  return Ok();
}

Result<std::set<std::string>> CommandClient::CredentialNames(const std::string& start,
                                                             Deadline deadline) const {
  constexpr size_t kPage = 500;
  std::set<std::string> names;
  TakeNames(TRY(openshell_.Do({"provider", "list-profiles", "-o", "json"}, deadline)), start,
            &names);
  for (size_t offset = 0;; offset += kPage) {
    const std::string page =
        TRY(openshell_.Do({"provider", "list", "--names", "--limit", std::to_string(kPage),
                           "--offset", std::to_string(offset)},
                          deadline));
    TakeNames(page, start, &names);
    if (std::count(page.begin(), page.end(), '\n') < static_cast<int64_t>(kPage)) return names;
  }
}

Status CommandClient::DeleteCredential(const std::string& id, Deadline deadline) const {
  TRY(DoDelete(openshell_, {"provider", "delete", id}, deadline));
  return DoDelete(openshell_, {"provider", "profile", "delete", id}, deadline);
}

Result<bool> CommandClient::HoldsProvider(const std::string& name, Deadline deadline) const {
  Result<std::string> shown = openshell_.Do({"provider", "get", "--", name}, deadline);
  if (shown.ok()) return true;
  if (shown.error().code == Code::kNotFound) return false;
  return std::move(shown).error();
}

}  // namespace openshell
