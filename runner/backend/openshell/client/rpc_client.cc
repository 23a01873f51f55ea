// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/client/rpc_client.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "backend/openshell/client/rpc_access.h"
#include "backend/openshell/client/rpc_policy.h"
#include "backend/openshell/client/rpc_process.h"
#include "base/ascii.h"
#include "base/sys.h"
#include "codec/text/neutral.h"
#include "codec/text/shell_word.h"
#include "session/transfer/stream.h"

namespace openshell {
namespace {

using codec::Json;
using std::chrono::seconds;

constexpr seconds kRpcTime{60};
constexpr seconds kRpcPolicyTime{60};
constexpr std::chrono::milliseconds kPause{200};
constexpr size_t kRpcSaidBytesMax = 300;
constexpr int64_t kPageSize = 200;
constexpr size_t kPagesMax = 1000;
constexpr size_t kSmallFileBytesMax = 65536;
constexpr int64_t kLogLines = 10000;
// A message has 4 MiB at most, of which the script and what is around it need a part.
constexpr size_t kInputBytesMax = (size_t{4} << 20) - (size_t{64} << 10);

std::string WorkspacePath(const std::string& state) { return state + "/workspace-name"; }

// A UUID of version 4 (RFC 9562, 5.4).
std::string NewId() {
  std::string hex = sys::RandomHex();
  hex[12] = '4';
  hex[16] = '8';
  for (const size_t at : {8, 13, 18, 23}) hex.insert(at, "-");
  return hex;
}

// "2026-11-26 16:42:11", as the command line of 0.0 has it.
std::string TimeText(const Json* time) {
  if (time == nullptr) return {};
  const time_t at = time->IntegerAt("seconds");
  tm parts = {};
  char text[32];
  if (::gmtime_r(&at, &parts) == nullptr) return {};
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts));
}

SandboxFacts SandboxOf(const Json& sandbox) {
  const Json& metadata = MemberOf(sandbox, "metadata");
  SandboxFacts facts;
  facts.name = NeutralMember(metadata, "name");
  facts.phase = NeutralMember(MemberOf(sandbox, "status"), "phase");
  facts.created = TimeText(metadata.Find("created_time"));
  const Json& labels = MemberOf(metadata, "labels");
  if (labels.object() == nullptr) return facts;
  for (const auto& [key, value] : *labels.object()) {
    if (value.string() != nullptr) facts.labels.emplace_back(key, *value.string());
  }
  return facts;
}

// Returns why a sandbox is not going to be ready.
std::string WhyNot(const Json& sandbox) {
  std::string why;
  for (const Json& condition : ListOf(MemberOf(sandbox, "status"), "conditions")) {
    if (condition.StringAt("status") == "True" && condition.StringAt("type") == "Ready") continue;
    const std::string said = condition.StringAt("reason") + ": " + condition.StringAt("message");
    why += (why.empty() ? "" : "; ") + codec::NeutralLine(said, kRpcSaidBytesMax);
  }
  return why.empty() ? "the gateway does not say why" : why;
}

// Without a placement, 0.1.8 and later replace in `authorization` alone.
void SetPlacement(const CredentialForm& form, Json* credential) {
  if (form.header.empty()) return;
  const std::string header = ascii::LowerCase(form.header);
  const std::string scheme = ascii::LowerCase(form.scheme);
  const bool own = header == "authorization" && (scheme == "bearer" || scheme == "basic");
  credential->Set("auth_style", own ? scheme : "header");
  credential->Set("header_name", header);
}

Json ProfileOf(const std::string& id, const CredentialForm& form) {
  Json credential;
  credential.Set("name", "value");
  credential.Set("description", "a credential of one run");
  credential.Set("env_vars", Json::FromStrings({form.variable}));
  credential.Set("required", true);
  SetPlacement(form, &credential);
  Json profile;
  profile.Set("id", id);
  profile.Set("display_name", id);
  profile.Set("description", "a credential of one run of agentic-ci");
  profile.Set("category", "other");
  profile.Set("credentials", Json::EmptyArray().Push(std::move(credential)));
  Json item;
  item.Set("profile", std::move(profile));
  item.Set("source", "agentic-ci");
  return item;
}

bool IsNumbered(const std::string& name, const std::string& start) {
  return name.size() > start.size() && name.starts_with(start) &&
         name.find_first_not_of("0123456789", start.size()) == std::string::npos;
}

}  // namespace

Status WriteWorkspace(const std::string& state) {
  std::string name = sys::Environment("OPENSHELL_WORKSPACE").value_or("");
  return sys::WriteFile(WorkspacePath(state), name.empty() ? "default" : name, 0600);
}

bool HasWorkspace(const std::string& state) { return sys::Exists(WorkspacePath(state)); }

std::unique_ptr<Client> RpcClient::Uncancelled() const {
  return std::make_unique<RpcClient>(state_);
}

size_t RpcClient::input_bytes_max() const { return kInputBytesMax; }

Json RpcClient::Scope() const {
  Json scope;
  scope.Set("workspace", sys::ReadFile(WorkspacePath(state_), kSmallFileBytesMax).ok()
                             ? sys::ReadFile(WorkspacePath(state_), kSmallFileBytesMax).value()
                             : std::string("default"));
  return scope;
}

Result<Json> RpcClient::Ask(const RpcMethod& method, Json request, Deadline deadline) const {
  RpcConnection connection =
      TRY(RpcConnection::Open(state_, RpcConnection::Login::kWithToken, cancel_));
  request.Set("workspace_scope", Scope());
  return connection.Call(method, request, deadline);
}

Result<Json> RpcClient::DoOnce(const RpcMethod& method, Json request, Deadline deadline) const {
  request.Set("request_id", NewId());
  return Ask(method, std::move(request), deadline);
}

Result<std::string> RpcClient::CheckAnswer(Deadline deadline) const {
  const std::string release = TRY(AskRelease(state_, deadline, cancel_));
  RpcConnection connection =
      TRY(RpcConnection::Open(state_, RpcConnection::Login::kWithToken, cancel_));
  TRY(connection.Call(rpc::kGetCurrentUser, {}, deadline));
  return release;
}

Status RpcClient::Create(const SandboxSpec& wanted, Deadline deadline) const {
  Json form = Json::EmptyObject();
  if (!wanted.image.empty()) form.Set("image", wanted.image);
  Json limits = Json::EmptyObject();
  auto limit = [&](const char* name, const std::string& value) {
    Json text;
    text.Set("string_value", value);
    limits.Set(name, std::move(text));
  };
  if (wanted.cpus > 0) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", wanted.cpus);
    limit("cpu", text);
  }
  if (wanted.memory_bytes > 0) {
    limit("memory", std::to_string(wanted.memory_bytes / kMebibyte) + "Mi");
  }
  if (!limits.object()->empty()) {
    Json fields = Json().Set("fields", std::move(limits));
    Json value = Json().Set("struct_value", std::move(fields));
    form.Set("resources", Json().Set("fields", Json().Set("limits", std::move(value))));
  }
  Json spec;
  spec.Set("template", std::move(form));
  spec.Set("policy", TRY(PolicyMessage(wanted.policy)));
  spec.Set("providers", Json::FromStrings(wanted.providers));
  spec.Set("command", Json::FromStrings({"sleep", "infinity"}));
  Json labels = Json::EmptyObject();
  for (const auto& [key, value] : wanted.labels) labels.Set(key, value);
  Json request;
  request.Set("name", wanted.name);
  request.Set("spec", std::move(spec));
  request.Set("labels", std::move(labels));
  TRY(DoOnce(rpc::kCreateSandbox, std::move(request), deadline));
  TRY(AwaitReady(wanted.name, deadline));
  if (wanted.approval_mode.empty()) return Ok();
  Json mode;
  mode.Set("string_value", wanted.approval_mode);
  return Change(wanted.name, "proposal_approval_mode", std::move(mode));
}

Status RpcClient::AwaitReady(const std::string& name, Deadline deadline) const {
  for (;;) {
    const Json response = TRY(Ask(rpc::kGetSandbox, Json().Set("name", name), deadline));
    const Json& sandbox = MemberOf(response, "sandbox");
    const std::string phase = SandboxOf(sandbox).phase;
    if (phase == "Ready") return Ok();
    if (phase == "Error" || phase == "Completed" || phase == "Stopped" || phase == "Deleting") {
      return Error{Code::kIo, "the sandbox is '" + phase + "': " + WhyNot(sandbox)};
    }
    if (deadline.passed()) {
      return Error{Code::kTemporary,
                   "the sandbox does not become ready in time: " + WhyNot(sandbox)};
    }
    std::this_thread::sleep_for(kPause);
  }
}

Status RpcClient::Change(const std::string& name, const char* setting, Json value) const {
  Json request;
  request.Set("sandbox", name);
  request.Set("setting_key", setting);
  request.Set("setting_value", std::move(value));
  TRY(DoOnce(rpc::kUpdateConfig, std::move(request), Deadline::After(kRpcTime)));
  return Ok();
}

Status RpcClient::LetPropose(const std::string& name) const {
  return Change(name, "agent_policy_proposals_enabled", Json().Set("bool_value", true));
}

Result<std::optional<SandboxFacts>> RpcClient::Find(const std::string& name,
                                                    Deadline deadline) const {
  Result<Json> response = Ask(rpc::kGetSandbox, Json().Set("name", name), deadline);
  if (!response.ok() && response.error().code == Code::kNotFound) {
    return std::optional<SandboxFacts>();
  }
  return std::optional(SandboxOf(MemberOf(TRY(std::move(response)), "sandbox")));
}

// Calls `take` with each page of a list.
Status RpcClient::ForEachPage(const RpcMethod& method, const Json& request, Deadline deadline,
                              const std::function<Status(const Json&)>& take) const {
  std::string token;
  for (size_t pages = 0; pages < kPagesMax; ++pages) {
    Json page = request;
    page.Set("page_size", kPageSize);
    if (!token.empty()) page.Set("page_token", token);
    const Json response = TRY(Ask(method, std::move(page), deadline));
    TRY(take(response));
    token = response.StringAt("next_page_token");
    if (token.empty()) return Ok();
  }
  return Error{Code::kIo, "a list of the gateway does not end"};
}

Result<std::vector<SandboxFacts>> RpcClient::List(const std::string& key, const std::string& value,
                                                  Deadline deadline) const {
  std::vector<SandboxFacts> all;
  const Json request = Json().Set("label_selector", key + "=" + value);
  TRY(ForEachPage(rpc::kListSandboxes, request, deadline, [&](const Json& page) -> Status {
    for (const Json& one : ListOf(page, "sandboxes")) all.push_back(SandboxOf(one));
    if (all.size() > kSandboxesMax) return TooManySandboxes();
    return Ok();
  }));
  return all;
}

Status RpcClient::Start(const std::string& name, Deadline deadline) const {
  TRY(DoOnce(rpc::kStartSandbox, Json().Set("name", name), deadline));
  return Ok();
}

Status RpcClient::Delete(const std::string& name, Deadline deadline) const {
  return Drop(rpc::kDeleteSandbox, Json().Set("name", name), deadline);
}

// The whole workspace may be missing: the gateway answers that with NOT_FOUND all the same.
Status RpcClient::Drop(const RpcMethod& method, Json request, Deadline deadline) const {
  request.Set("allow_missing", true);
  Result<Json> done = DoOnce(method, std::move(request), deadline);
  if (done.ok() || done.error().code == Code::kNotFound) return Ok();
  return std::move(done).error();
}

// The script is a part of the request, so that no list of processes has it.
Json RpcClient::ExecRequest(const std::string& name, const std::string& script) const {
  Json request;
  request.Set("sandbox", name);
  request.Set("command", Json::FromStrings({"sh", "-c", script}));
  request.Set("environment", Json().Set("HOME", "/proc").Set("BASH_ENV", "").Set("ENV", ""));
  request.Set("no_login_shell", true);
  request.Set("workspace_scope", Scope());
  return request;
}

Result<Child> RpcClient::Exec(const std::string& name, const std::string& script, int input) const {
  Json request = ExecRequest(name, script);
  if (input >= 0) {
    std::string content = TRY(sys::ReadAll(input, kInputBytesMax));
    request.Set("stdin", std::move(content));
  }
  return StartExec(state_, request, -1, Deadline::Never(), {});
}

std::string RpcClient::WhyBroken(pid_t pid) const { return TakeWhyBroken(state_, pid); }

// The outputs of tar go to a file, since this process is busy writing the archive.
Status RpcClient::Put(const std::string& name, const std::string& from, const std::string& to,
                      Deadline deadline) const {
  const std::string target = codec::ShellWord(to + "/" + from.substr(from.rfind('/') + 1));
  const std::string script = "mkdir -p " + target + " && exec tar -xf - -C " + target;
  Fd source = TRY(sys::Open(from, O_RDONLY | O_DIRECTORY));
  Fd said(::memfd_create("said", MFD_CLOEXEC));
  if (!said.valid()) return Errno("memfd_create");
  auto [read_end, write_end] = TRY(sys::Pipe());
  Child child = TRY(StartExec(state_, ExecRequest(name, script), read_end.get(), deadline,
                              {read_end.get(), said.get(), said.get()}));
  read_end.Close();
  Result<session::Sent> sent = session::SendTree(source, from, write_end.get());
  write_end.Close();
  const int status = TRY(child.Wait(deadline));
  if (status == 0 && sent.ok()) return Ok();
  std::string text(kRpcSaidBytesMax, '\0');
  text.resize(std::max<ssize_t>(::pread(said.get(), text.data(), text.size(), 0), 0));
  if (status == 0) return std::move(sent).error();
  return Error{Code::kIo, "copying into the sandbox failed: " + codec::NeutralLine(text)};
}

Result<Child> RpcClient::FollowRecords(const std::string& name, int log, int said) const {
  Json request;
  request.Set("sandbox", name);
  request.Set("follow_logs", true);
  request.Set("log_tail_lines", kLogLines);
  request.Set("log_sources", Json::FromStrings({"sandbox"}));
  request.Set("workspace_scope", Scope());
  return StartRecords(state_, request, {-1, log, said});
}

Result<Json> RpcClient::AwaitPolicy(const std::string& name, int64_t version) const {
  const Deadline deadline = Deadline::After(kRpcPolicyTime);
  for (;;) {
    Json request;
    request.Set("sandbox", name);
    request.Set("version", version);
    const Json response = TRY(Ask(rpc::kGetSandboxPolicyStatus, std::move(request), deadline));
    const Json& revision = MemberOf(response, "revision");
    if (revision.StringAt("status") != "pending" || deadline.passed()) return revision;
    std::this_thread::sleep_for(kPause);
  }
}

// The gateway's policy is put back, not the one that this program sent: approved proposals are in
// it.
Status RpcClient::SetPolicy(const std::string& name, const std::string& policy) const {
  const Deadline deadline = Deadline::After(kRpcTime);
  const Json before = TRY(Ask(rpc::kGetSandboxConfig, Json().Set("name", name), deadline));
  Json request;
  request.Set("sandbox", name);
  request.Set("policy", TRY(PolicyMessage(policy)));
  const Json set = TRY(DoOnce(rpc::kUpdateConfig, std::move(request), deadline));
  const Json revision = TRY(AwaitPolicy(name, set.IntegerAt("version")));
  const std::string state = revision.StringAt("status");
  if (state == "loaded") return Ok();
  if (state == "superseded") {
    return Error{Code::kTemporary, "another policy took its place meanwhile"};
  }
  Json back;
  back.Set("sandbox", name);
  back.Set("policy_bytes", before.StringAt("policy"));
  (void)DoOnce(rpc::kUpdateConfig, std::move(back), Deadline::After(kRpcTime));
  if (state == "pending") {
    return Error{Code::kTemporary, "the sandbox's supervisor does not load the policy"};
  }
  return Error{Code::kInvalid,
               "the sandbox's supervisor refuses the policy: " +
                   codec::NeutralLine(revision.StringAt("load_error"), kRpcSaidBytesMax)};
}

Result<std::vector<Proposal>> RpcClient::Proposals(const std::string& name,
                                                   Deadline deadline) const {
  return ProposalsOf(TRY(Ask(rpc::kGetDraftPolicy, Json().Set("sandbox", name), deadline)));
}

Result<Child> RpcClient::AskProposals(const std::string& name) const {
  Json request;
  request.Set("sandbox", name);
  request.Set("status_filter", "pending");
  request.Set("workspace_scope", Scope());
  return StartCall(state_, rpc::kGetDraftPolicy, request);
}

std::vector<Proposal> RpcClient::ReadProposals(std::string_view text) const {
  const Result<Json> response = codec::ParseJson(text);
  return response.ok() ? ProposalsOf(response.value()) : std::vector<Proposal>();
}

// The profile is there for this one provider: a gateway of 0.1 has none of its own.
Status RpcClient::MakeCredential(const std::string& id, const CredentialForm& form,
                                 const Secret& value) const {
  const Deadline deadline = Deadline::After(kRpcTime);
  Json import;
  import.Set("profiles", Json::EmptyArray().Push(ProfileOf(id, form)));
  const Json imported = TRY(DoOnce(rpc::kImportProviderProfiles, std::move(import), deadline));
  if (!imported.BooleanAt("imported")) {
    std::string why;
    for (const Json& one : ListOf(imported, "diagnostics")) why += " " + one.StringAt("message");
    return Error{Code::kInvalid, "the gateway takes no profile for " + form.variable + ":" +
                                     codec::NeutralLine(why, kRpcSaidBytesMax)};
  }
  Json provider;
  provider.Set("metadata", Json().Set("name", id));
  provider.Set("type", id);
  provider.Set("credentials", Json().Set(form.variable, std::string(value.reveal())));
  TRY(DoOnce(rpc::kCreateProvider, Json().Set("provider", std::move(provider)), deadline));
  return Ok();
}

Result<std::set<std::string>> RpcClient::CredentialNames(const std::string& start,
                                                         Deadline deadline) const {
  std::set<std::string> names;
  auto take = [&](const std::string& name) {
    if (IsNumbered(name, start)) names.insert(name);
  };
  TRY(ForEachPage(rpc::kListProviderProfiles, {}, deadline, [&](const Json& page) {
    for (const Json& one : ListOf(page, "profiles")) take(one.StringAt("id"));
    return Ok();
  }));
  TRY(ForEachPage(rpc::kListProviders, {}, deadline, [&](const Json& page) {
    for (const Json& one : ListOf(page, "providers")) {
      take(MemberOf(one, "metadata").StringAt("name"));
    }
    return Ok();
  }));
  return names;
}

Status RpcClient::DeleteCredential(const std::string& id, Deadline deadline) const {
  TRY(Drop(rpc::kDeleteProvider, Json().Set("name", id), deadline));
  return Drop(rpc::kDeleteProviderProfile, Json().Set("id", id), deadline);
}

Result<bool> RpcClient::HoldsProvider(const std::string& name, Deadline deadline) const {
  Result<Json> found = Ask(rpc::kGetProvider, Json().Set("name", name), deadline);
  if (found.ok()) return true;
  if (found.error().code == Code::kNotFound) return false;
  return std::move(found).error();
}

}  // namespace openshell
