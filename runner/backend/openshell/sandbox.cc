// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <functional>
#include <set>
#include <thread>

#include "backend/openshell/event_line.h"
#include "base/log.h"
#include "base/sys.h"
#include "codec/data/json.h"
#include "codec/text/neutral.h"
#include "codec/text/shell_word.h"
#include "policy/model/host_pattern.h"
#include "session/shell.h"

namespace openshell {
namespace {

using std::chrono::seconds;

constexpr seconds kShortTime{60};
constexpr seconds kReadyTime{20};
constexpr seconds kCreateTime{600};  // An image may have to be fetched.
constexpr seconds kTransferTime{600};
constexpr std::chrono::milliseconds kRemovalPause{200};
constexpr seconds kPolicyTime{60};  // The supervisor looks for a new policy every ten seconds.

// OpenShell starts each command with a login shell, which runs what lies in HOME, and the agent
// could put there what decides what this program's own commands do. The kernel lets no file be made
// in this one.
constexpr char kNoHome[] = "HOME=/proc";

// The agent's own login shell has its home. The script comes on standard input: an argument would
// be in the list of processes, and may have 32 KiB.
constexpr char kRunner[] =
    "[ \"$HOME\" = /proc ] || { echo 'a profile of the image sets HOME' >&2; exit 126; }; "
    "export HOME=/sandbox; s=$(command -v bash) || s=sh; exec \"$s\" -lc "
    "'cd /sandbox/workspace 2>/dev/null || cd /sandbox || exit 126; eval \"$(cat)\"'";

// Stops everything at once, so that nothing starts more meanwhile, and kills it but for itself and
// the oldest process: that one keeps the sandbox. Its name would not tell, since the agent may give
// any process the same. Prints "ended" once nothing else is there; one of the same user that cannot
// be reached still is.
constexpr char kEndProcesses[] = R"(exec 2>/dev/null
user() { u=; while read -r k v l; do [ "$k" != Uid: ] || u=$v; done <$1/status; }
each() {
  for p in /proc/[0-9]*; do
    q=${p#/proc/} s=
    kill -0 $q || { user $p; [ "$u" != "$me" ] || left=$q; continue; }
    while read -r l; do s="$s $l"; done <$p/stat
    set -- ${s##*) }
    [ $# -ge 20 ] && [ $1 != Z ] && [ $1 != X ] && [ $q != $$ ] && [ $q != $PPID ] || continue
    if [ $ends = no ]; then
      [ -n "$kept" ] && [ ${20} -ge $since ] || { kept=$q since=${20}; }
    elif [ $q != $kept ]; then
      kill -9 $q; left=$q
    fi
  done
}
user /proc/$$; me=$u
kill -STOP -1
kept= ends=no; each
ends=yes n=0 left=x
while [ -n "$left" ] && [ $n -lt 200 ]; do left= n=$((n+1)); each; [ -z "$left" ] || sleep 0.05; done
kill -CONT $kept $PPID
[ -z "$left" ] || exit 1
echo ended)";

// A link in place of the directory is not followed.
constexpr char kReach[] =
    "[ ! -L \"$d\" ] || { echo \"$d is a symbolic link now\" >&2; exit 1; }; cd \"$d\" || exit 1; ";
// Unreadable files are made readable, as in a layer of agentic-ci's own sandbox, and directories
// before what is in them. Only an image without find gets an X, which makes a file that others may
// execute executable for its owner.
constexpr char kMakeReadable[] = R"({ if command -v find; then
  find . -type d ! -perm -500 -exec chmod u+rx {} \;
  find . -type f ! -perm -400 -exec chmod u+r {} +
else
  chmod -R u+rX .
fi; } >/dev/null 2>&1
)";

Result<Fd> InputFile(std::string_view input) {
  if (input.size() > kInputBytesMax) {
    return Error{Code::kUsage, "the script is larger than " + std::to_string(kInputBytesMax) +
                                   " bytes, which OpenShell takes"};
  }
  Fd file(::memfd_create("input", MFD_CLOEXEC));
  if (!file.valid()) return Errno("memfd_create");
  TRY(sys::WriteAll(file.get(), input));
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return Errno("lseek");
  return file;
}

std::vector<std::string> ExecArguments(const std::string& name, const std::string& script) {
  return {"sandbox", "exec", "-n", name, "--no-tty", "--", "sh", "-c", script};
}

std::string ProfileText(const std::string& id, const Credential& credential) {
  codec::Json value;
  value.Set("name", "value");
  value.Set("description", "a credential of one run");
  value.Set("env_vars", codec::Json::FromStrings({credential.name}));
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

// The file that has what `openshell logs` says on standard error.
std::string SaidPath(const std::string& state) { return state + "/events.said"; }

std::string ProviderName(const std::string& run, const std::string& index) {
  return run + "-" + index;
}

// Returns the time of the last record for which `wanted` is true, among those behind the first
// `after` bytes; -1 without such a record.
int64_t LastTime(const std::string& path, size_t after,
                 const std::function<bool(const LogLine&, std::string_view)>& wanted) {
  Result<std::string> text = sys::ReadFile(path, kRecordsBytesMax);
  if (!text.ok()) return -1;
  std::string_view lines = text.value();
  lines.remove_prefix(std::min(after, lines.size()));
  while (!lines.empty()) {
    const size_t end = lines.find_last_not_of('\n');
    if (end == std::string_view::npos) break;
    const size_t begin = lines.rfind('\n', end) + 1;  // npos + 1 is 0.
    std::string_view text_of_line = lines.substr(begin, end + 1 - begin);
    std::optional<LogLine> line = ParseLogLine(text_of_line);
    if (line && wanted(*line, text_of_line)) return line->time_ms;
    lines = lines.substr(0, begin);
  }
  return -1;
}

bool IsAny(const LogLine&, std::string_view) { return true; }

bool IsRefusal(const LogLine& line, std::string_view) {
  return line.event && line.event->outcome == record::Event::Outcome::kDenied;
}

// The supervisor has told the gateway what it refused.
bool IsAnalysis(const LogLine& line, std::string_view text) {
  return !line.event && text.find("Flushed denial analysis") != std::string_view::npos;
}

// Adds each name of a provider or a profile of the run that is in `text` to `names`.
void TakeNames(std::string_view text, const std::string& run, std::set<std::string>* names) {
  const std::string start = ProviderName(run, "");
  for (size_t at = text.find(start); at != std::string_view::npos; at = text.find(start, at + 1)) {
    const size_t digits = at + start.size();
    const size_t end = std::min(text.find_first_not_of("0123456789", digits), text.size());
    if (end > digits) names->insert(std::string(text.substr(at, end - at)));
  }
}

// Returns the names that are left of the run's credentials: of a provider, a profile or both.
Result<std::set<std::string>> CredentialNames(const CommandLine& openshell, const std::string& run,
                                              Deadline deadline) {
  constexpr size_t kPage = 500;
  std::set<std::string> names;
  TakeNames(TRY(openshell.Do({"provider", "list-profiles", "-o", "json"}, deadline)), run, &names);
  for (size_t offset = 0;; offset += kPage) {
    const std::string page =
        TRY(openshell.Do({"provider", "list", "--names", "--limit", std::to_string(kPage),
                          "--offset", std::to_string(offset)},
                         deadline));
    TakeNames(page, run, &names);
    if (std::count(page.begin(), page.end(), '\n') < static_cast<int64_t>(kPage)) return names;
  }
}

// Asks for the deletion of something; it is fine if that is not there.
Status DoDelete(const CommandLine& openshell, std::vector<std::string> words, Deadline deadline) {
  Result<std::string> done = openshell.Do(std::move(words), deadline);
  if (done.ok() || done.error().code == Code::kNotFound) return Ok();
  return std::move(done).error();
}

// Returns the bindings of hosts that an endpoint of `policy` can have.
std::vector<CredentialBinding> BindingsIn(const policy::Policy& policy,
                                          const std::vector<CredentialBinding>& all) {
  auto is_there = [&](const std::string& host) {
    for (const policy::NetworkPolicy& entry : policy.network) {
      for (const policy::Endpoint& endpoint : entry.endpoints) {
        if (policy::HostMatches(endpoint.host, host)) return true;
      }
    }
    return false;
  };
  std::vector<CredentialBinding> bindings = all;
  for (CredentialBinding& binding : bindings) {
    std::erase_if(binding.hosts, [&](const std::string& host) { return !is_there(host); });
  }
  std::erase_if(bindings, [](const CredentialBinding& one) { return one.hosts.empty(); });
  return bindings;
}

// Calls `remove` until it succeeds, fails for good or the deadline has passed. A gateway that has
// said that it is busy, and then no more, is busy: that error is given.
Status Repeat(Deadline deadline, const std::function<Status()>& remove) {
  std::optional<Error> busy;
  for (;;) {
    Status done = remove();
    if (done.ok()) return done;
    if (busy && done.error().code == Code::kTemporary) return std::move(*busy);
    if (!MayPass(done.error().code) || deadline.passed()) return done;
    busy = std::move(done).error();
    std::this_thread::sleep_for(kRemovalPause);
  }
}

}  // namespace

Status Sandbox::Create(SandboxRequest request) {
  for (size_t i = 0; i < request.credentials.size(); ++i) {
    bindings_.push_back({request.credentials[i].hosts, ProviderName(name_, std::to_string(i))});
  }
  const std::string policy = state_ + "/policy.yaml";
  std::string rendered = TRY(RenderPolicy(request.policy, bindings_));
  TRY(sys::WriteFile(policy, rendered, 0600));
  std::vector<std::string> words = {
      "sandbox",  "create", "--name", name_, "--detach", "--no-tty", "--no-auto-providers",
      "--policy", policy};
  auto add = [&](const std::string& option, const std::string& value) {
    words.push_back(option);
    words.push_back(value);
  };
  if (!request.image.empty()) add("--from", request.image);
  if (request.cpus > 0) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", request.cpus);
    add("--cpu", text);
  }
  if (request.memory_bytes > 0) {
    add("--memory", std::to_string(request.memory_bytes / kMebibyte) + "Mi");
  }
  if (!request.approval_mode.empty()) add("--approval-mode", request.approval_mode);
  for (const auto& [key, value] : request.labels) add("--label", key + "=" + value);
  for (size_t i = 0; i < bindings_.size(); ++i) {
    TRY(MakeProvider(request.credentials[i], i, bindings_[i].provider));
    add("--provider", bindings_[i].provider);
  }
  for (const std::string& provider : request.providers) add("--provider", provider);
  words.insert(words.end(), {"--env", kNoHome, "--", "sleep", "infinity"});
  TRY(openshell_.Do(words, Deadline::After(kCreateTime)));
  if (!TRY(IsReady())) return Error{Code::kIo, "the sandbox does not become ready"};
  if (!request.approval_mode.empty()) LetPropose();
  return CheckHome();
}

// The setting is the sandbox's own and goes with it, so that nothing is to be put back. Where the
// gateway's does not allow it, what OpenShell derives from refusals is proposed all the same.
void Sandbox::LetPropose() const {
  Result<std::string> set = openshell_.Do(
      {"settings", "set", name_, "--key", "agent_policy_proposals_enabled", "--value", "true"},
      Deadline::After(kShortTime));
  if (set.ok()) return;
  logging::Warn("the agent cannot propose network rules itself", {{"why", set.error().what}});
}

// OpenShell's login shell reads the image's profile after it has set HOME. Another failure decides
// nothing here: a command that comes so early may fail, and every later one looks again.
Status Sandbox::CheckHome() const {
  constexpr int kOther = 126;
  const Result<Answer> answer = openshell_.Ask(
      ExecArguments(name_, "[ \"$HOME\" = /proc ] || exit 126"), Deadline::After(kShortTime));
  if (!answer.ok() || answer.value().status != kOther) return Ok();
  return Error{Code::kSetup, "a profile of the image sets HOME, which OpenShell sets before it",
               "--image REF, whose /etc/profile does not set HOME"};
}

// A profile without endpoints goes where the policy binds it, and nowhere else. The value is in the
// environment of one process for as long as that lives.
Status Sandbox::MakeProvider(const Credential& credential, size_t index,
                             const std::string& provider) const {
  const std::string file = state_ + "/profile-" + std::to_string(index) + ".yaml";
  TRY(sys::WriteFile(file, ProfileText(provider, credential), 0600));
  const Deadline deadline = Deadline::After(kShortTime);
  TRY(openshell_.Do({"provider", "profile", "import", "--file", file}, deadline));
  TRY(openshell_.Do({"provider", "create", "--name", provider, "--type", provider, "--credential",
                     credential.name},
                    deadline, {{credential.name, std::string(credential.value.reveal())}}));
  return Ok();
}

bool MayPass(Code code) {
  return code != Code::kTemporary && code != Code::kSetup && code != Code::kRefused;
}

Result<int> DeleteCredentials(const CommandLine& openshell, const std::string& name,
                              Deadline deadline) {
  std::set<std::string> all;
  Status deleted = Repeat(deadline, [&]() -> Status {
    const std::set<std::string> left = TRY(CredentialNames(openshell, name, deadline));
    all.insert(left.begin(), left.end());
    Status failed = Ok();
    for (const std::string& one : left) {
      // The sandbox may have it for a while longer. The profile, which says what it is, goes last.
      Status done = DoDelete(openshell, {"provider", "delete", one}, deadline);
      if (done.ok()) done = DoDelete(openshell, {"provider", "profile", "delete", one}, deadline);
      if (failed.ok()) failed = std::move(done);
    }
    return failed;
  });
  TRY(std::move(deleted));
  return static_cast<int>(all.size());
}

Result<Child> Sandbox::Exec(std::string_view script) const {
  Fd file = TRY(InputFile(script));
  return openshell_.Start(ExecArguments(name_, kRunner), file.get());
}

Result<Answer> Sandbox::Ask(const std::string& script, Deadline deadline,
                            std::string_view input) const {
  Fd file = TRY(InputFile(input));
  return openshell_.Ask(ExecArguments(name_, script), deadline, {}, "openshell", file.get());
}

Status Sandbox::Put(const std::string& from, const std::string& to) const {
  TRY(openshell_.Do({"sandbox", "upload", name_, from, to, "--no-git-ignore"},
                    Deadline::After(kTransferTime)));
  return Ok();
}

// Not by `openshell sandbox download`: that has no bound.
Result<Fetched> Sandbox::Fetch(const std::string& script, const std::string& to,
                               const FetchLimits& limits) const {
  Fd directory = TRY(sys::Open(to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  Child child = TRY(openshell_.Start(ExecArguments(name_, script), -1));
  return FetchArchive(std::move(child), directory.get(), limits);
}

Result<Fetched> Sandbox::Get(const std::string& from, const std::string& to, bool ended,
                             const FetchLimits& limits) const {
  return Fetch("d=" + codec::ShellWord(from) + "; " + kReach + (ended ? kMakeReadable : "") +
                   "exec tar -cf - .",
               to, limits);
}

Result<Fetched> Sandbox::GetFile(const std::string& from, const std::string& to,
                                 const FetchLimits& limits) const {
  return Fetch(
      "f=" + codec::ShellWord(from) + "; cd \"${f%/*}/\" || exit 1; exec tar -chf - \"./${f##*/}\"",
      to, limits);
}

// What was approved meanwhile is in the policy before, too: it is the gateway's that comes back.
Status Sandbox::ReplacePolicy(const policy::Policy& policy) const {
  const std::string next = state_ + "/policy-next.yaml";
  const std::string before = state_ + "/policy-before.yaml";
  const std::string rendered = TRY(RenderPolicy(policy, BindingsIn(policy, bindings_)));
  TRY(sys::WriteFile(next, rendered, 0600));
  const codec::Json now = TRY(openshell_.AskJson({"policy", "get", name_, "--base", "-o", "json"},
                                                 Deadline::After(kShortTime)));
  const codec::Json* whole = now.Find("policy");
  if (whole == nullptr) return Error{Code::kIo, "the gateway does not say which policy it has"};
  TRY(sys::WriteFile(before, codec::RenderJson(*whole), 0600));
  auto set = [&](const std::string& file) {
    return openshell_.Ask({"policy", "set", name_, "--policy", file, "--wait", "--timeout",
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

Status Sandbox::FollowEvents() {
  Fd log = TRY(sys::Open(events_path(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600));
  Fd said = TRY(sys::Open(SaidPath(state_), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600));
  Child child =
      TRY(openshell_.Start({"logs", name_, "--tail", "-n", "10000", "--source", "sandbox"}, -1,
                           log.get(), "openshell", said.get()));
  // The kernel ends it at the bound; its memory, in which a token may be, becomes no file.
  // This process may have a lower one, which it cannot raise.
  rlimit bound{};
  const rlimit nothing{0, 0};
  if (::prlimit(child.pid(), RLIMIT_FSIZE, nullptr, &bound) != 0) return Errno("prlimit");
  bound.rlim_cur = bound.rlim_max = std::min<rlim_t>(bound.rlim_max, kRecordsBytesMax);
  if (::prlimit(child.pid(), RLIMIT_FSIZE, &bound, nullptr) != 0 ||
      ::prlimit(child.pid(), RLIMIT_CORE, &nothing, nullptr) != 0) {
    return Errno("prlimit");
  }
  records_max_ = static_cast<int64_t>(bound.rlim_cur);
  follower_ = std::make_unique<Child>(std::move(child));
  return Ok();
}

bool Sandbox::RecordsFull() const {
  struct stat facts = {};
  return ::stat(events_path().c_str(), &facts) == 0 && facts.st_size >= records_max_;
}

std::string Sandbox::SaidOfRecords() const {
  constexpr size_t kShownBytesMax = 300;
  Result<std::string> said = sys::ReadFile(SaidPath(state_), kRecordsBytesMax);
  return said.ok() ? codec::NeutralLine(said.value(), kShownBytesMax) : "";
}

// Records come in order; one of a command that was started after all others is the mark. What
// reads like a later one and came before, the agent may have made.
bool Sandbox::AwaitEvents(Deadline deadline) const {
  struct stat facts = {};
  if (::stat(events_path().c_str(), &facts) != 0) return false;
  const auto before = static_cast<size_t>(facts.st_size);
  Result<Answer> time = Ask("date +%s%N", deadline);
  if (!time.ok() || time.value().status != 0) return false;
  constexpr size_t kSecondDigits = 10;
  const std::string& said = time.value().output;
  std::string digits = said.substr(0, said.find_first_not_of("0123456789"));
  if (digits.size() < kSecondDigits) return false;
  digits.resize(kSecondDigits + 3, '0');
  int64_t mark = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), mark);
  while (LastTime(events_path(), before, IsAny) < mark) {
    if (deadline.passed() || RecordsFull()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

void Sandbox::AwaitProposals(Deadline deadline) const {
  while (LastTime(events_path(), 0, IsRefusal) > LastTime(events_path(), 0, IsAnalysis)) {
    if (deadline.passed()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

Result<std::vector<Proposal>> Sandbox::Proposals() const {
  return ParseProposals(TRY(openshell_.Do({"rule", "get", name_}, Deadline::After(kShortTime))));
}

Sandbox SandboxAt(const std::string& state, const std::string& checkout) {
  return {CommandLineAt(state, checkout), state.substr(state.rfind('/') + 1), state};
}

bool Sandbox::EndProcesses() const {
  Result<Answer> answer = openshell_.Uncancelled().Ask(ExecArguments(name_, kEndProcesses),
                                                       Deadline::After(kShortTime));
  return answer.ok() && answer.value().status == 0 && answer.value().output.ends_with("ended\n");
}

Result<bool> Sandbox::IsReady() const {
  Result<codec::Json> said =
      openshell_.AskJson({"sandbox", "get", name_, "-o", "json"}, Deadline::After(kReadyTime));
  if (!said.ok() && said.error().code == Code::kNotFound) return false;
  codec::Json json = TRY(std::move(said));
  return json.StringAt("name") == name_ && json.StringAt("phase") == "Ready";
}

Status Sandbox::Delete(std::chrono::seconds each) const {
  const CommandLine openshell = openshell_.Uncancelled();
  const Deadline deadline = Deadline::After(each);
  Status deleted = Repeat(deadline, [&] {
    return DoDelete(openshell, {"sandbox", "delete", name_}, deadline);
  });
  // However long that took: later commands do not look for a credential that stays.
  const bool credentials = sys::Exists(state_ + "/profile-0.yaml");
  Result<int> forgotten =
      credentials ? DeleteCredentials(openshell, name_, Deadline::After(each)) : 0;
  if (!deleted.ok()) return deleted;
  if (!forgotten.ok()) return std::move(forgotten).error();
  return Ok();
}

}  // namespace openshell
