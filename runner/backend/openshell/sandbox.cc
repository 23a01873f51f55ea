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

#include "backend/openshell/client/open_client.h"
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
constexpr seconds kRestartTime{60};
constexpr seconds kCreateTime{600};  // An image may have to be fetched.
constexpr seconds kTransferTime{600};
constexpr std::chrono::milliseconds kRemovalPause{200};
constexpr std::chrono::milliseconds kStatePause{200};
// Records that have no marks have come when none does for this long: they are sent every half
// second.
constexpr std::chrono::milliseconds kQuietTime{2000};

// The agent's own login shell has its home. The script comes on standard input: an argument would
// be in the list of processes, and may have 32 KiB.
constexpr char kRunner[] =
    "[ \"$HOME\" = /proc ] || { echo 'a profile of the image sets HOME' >&2; exit 126; }; "
    "export HOME=/sandbox; s=$(command -v bash) || s=sh; exec \"$s\" -lc "
    "'cd /sandbox/workspace 2>/dev/null || cd /sandbox || exit 126; eval \"$(cat)\"'";

// Stops everything at once, so that nothing starts more meanwhile, and kills it but for itself and
// the oldest process: that one keeps the sandbox. Its name would not tell, since the agent may give
// any process the same. Prints "ended" once nothing else is there; one of the same user that cannot
// be reached still is. $first: one more that is kept, or nothing.
constexpr char kEndProcesses[] = R"(exec 2>/dev/null
user() { u=; while read -r k v l; do [ "$k" != Uid: ] || u=$v; done <$1/status; }
each() {
  for p in /proc/[0-9]*; do
    q=${p#/proc/} s=
    kill -0 $q || { user $p; [ "$u" != "$me" ] || left=$q; continue; }
    while read -r l; do s="$s $l"; done <$p/stat
    set -- ${s##*) }
    [ $# -ge 20 ] && [ $1 != Z ] && [ $1 != X ] && [ $q != $$ ] && [ $q != $PPID ] && [ $q != "$first" ] || continue
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

Result<Fd> InputFile(std::string_view input, size_t bytes_max) {
  if (input.size() > bytes_max) {
    return Error{Code::kUsage, "the script is larger than " + std::to_string(bytes_max) +
                                   " bytes, which OpenShell takes"};
  }
  Fd file(::memfd_create("input", MFD_CLOEXEC));
  if (!file.valid()) return Errno("memfd_create");
  TRY(sys::WriteAll(file.get(), input));
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return Errno("lseek");
  return file;
}

// The file that has what `openshell logs` says on standard error.
std::string SaidPath(const std::string& state) { return state + "/events.said"; }

// Says that the run has credentials at the gateway.
std::string CredentialsPath(const std::string& state) { return state + "/credentials"; }

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
  SandboxSpec spec;
  spec.name = name_;
  spec.policy = TRY(RenderPolicy(request.policy, bindings_));
  spec.image = std::move(request.image);
  spec.cpus = request.cpus;
  spec.memory_bytes = request.memory_bytes;
  spec.approval_mode = request.approval_mode;
  spec.labels = std::move(request.labels);
  if (!bindings_.empty()) TRY(sys::WriteFile(CredentialsPath(state_), "", 0600));
  for (size_t i = 0; i < bindings_.size(); ++i) {
    const Credential& credential = request.credentials[i];
    TRY(client_->MakeCredential(bindings_[i].provider, credential.form, credential.value));
    spec.providers.push_back(bindings_[i].provider);
  }
  spec.providers.insert(spec.providers.end(), request.providers.begin(), request.providers.end());
  TRY(client_->Create(spec, Deadline::After(kCreateTime)));
  if (!TRY(IsReady())) return Error{Code::kIo, "the sandbox does not become ready"};
  if (!request.approval_mode.empty()) {
    // Where the gateway does not allow it, what it derives from refusals is proposed all the same.
    Status set = client_->LetPropose(name_);
    if (!set.ok()) {
      logging::Warn("the agent cannot propose network rules itself", {{"why", set.error().what}});
    }
  }
  return CheckHome();
}

// OpenShell's login shell reads the image's profile after it has set HOME. Another failure decides
// nothing here: a command that comes so early may fail, and every later one looks again.
Status Sandbox::CheckHome() const {
  constexpr int kOther = 126;
  const Result<Answer> answer =
      Ask("[ \"$HOME\" = /proc ] || exit 126", Deadline::After(kShortTime));
  if (!answer.ok() || answer.value().status != kOther) return Ok();
  return Error{Code::kSetup, "a profile of the image sets HOME, which OpenShell sets before it",
               "--image REF, whose /etc/profile does not set HOME"};
}

bool MayPass(Code code) {
  return code != Code::kTemporary && code != Code::kSetup && code != Code::kRefused;
}

Result<int> DeleteCredentials(const Client& client, const std::string& name, Deadline deadline) {
  std::set<std::string> all;
  Status deleted = Repeat(deadline, [&]() -> Status {
    const std::set<std::string> left =
        TRY(client.CredentialNames(ProviderName(name, ""), deadline));
    all.insert(left.begin(), left.end());
    Status failed = Ok();
    for (const std::string& one : left) {
      Status done = client.DeleteCredential(one, deadline);  // The sandbox may still have it.
      if (failed.ok()) failed = std::move(done);
    }
    return failed;
  });
  TRY(std::move(deleted));
  return static_cast<int>(all.size());
}

Result<Child> Sandbox::Exec(std::string_view script) const {
  Fd file = TRY(InputFile(script, client_->input_bytes_max()));
  return client_->Exec(name_, kRunner, file.get());
}

Result<Answer> Sandbox::Ask(const std::string& script, Deadline deadline,
                            std::string_view input) const {
  Fd file;
  if (!input.empty()) file = TRY(InputFile(input, client_->input_bytes_max()));
  Child child = TRY(client_->Exec(name_, script, file.get()));
  return AwaitAnswer(std::move(child), deadline, client_->cancel());
}

Status Sandbox::Put(const std::string& from, const std::string& to) const {
  return client_->Put(name_, from, to, Deadline::After(kTransferTime));
}

// Not by `openshell sandbox download`: that has no bound.
Result<Fetched> Sandbox::Fetch(const std::string& script, const std::string& to,
                               const FetchLimits& limits) const {
  Fd directory = TRY(sys::Open(to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  Child child = TRY(client_->Exec(name_, script, -1));
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

Status Sandbox::ReplacePolicy(const policy::Policy& policy) const {
  return client_->SetPolicy(name_, TRY(RenderPolicy(policy, BindingsIn(policy, bindings_))));
}

Status Sandbox::FollowEvents() {
  Fd log = TRY(sys::Open(events_path(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600));
  Fd said = TRY(sys::Open(SaidPath(state_), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600));
  Child child = TRY(client_->FollowRecords(name_, log.get(), said.get()));
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

bool Sandbox::AwaitQuiet(Deadline deadline) const {
  off_t before = -1;
  Deadline quiet = Deadline::After(kQuietTime);
  while (!quiet.passed()) {
    struct stat facts = {};
    if (deadline.passed() || ::stat(events_path().c_str(), &facts) != 0) return false;
    if (std::exchange(before, facts.st_size) != facts.st_size) {
      quiet = Deadline::After(kQuietTime);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return !RecordsFull();
}

// Records come in order; one of a command that was started after all others is the mark. What
// reads like a later one and came before, the agent may have made.
bool Sandbox::AwaitEvents(Deadline deadline) const {
  if (!client_->records_have_marks()) return AwaitQuiet(deadline);
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
  return client_->Proposals(name_, Deadline::After(kShortTime));
}

Sandbox SandboxAt(const std::string& state, const std::string& checkout) {
  return {ClientIn(state, {sys::Environment("PATH").value_or(""), checkout}),
          state.substr(state.rfind('/') + 1), state};
}

bool Sandbox::EndProcesses() const {
  const std::unique_ptr<Client> client = client_->Uncancelled();
  const std::string first = client->supervises_inside() ? "first=1\n" : "first=\n";
  Result<Child> child = client->Exec(name_, first + kEndProcesses, -1);
  if (!child.ok()) return false;
  Result<Answer> answer = AwaitAnswer(std::move(child).value(), Deadline::After(kShortTime));
  return answer.ok() && answer.value().status == 0 && answer.value().output.ends_with("ended\n");
}

Result<bool> Sandbox::IsReady() const {
  const std::optional<SandboxFacts> facts = TRY(client_->Find(name_, Deadline::After(kReadyTime)));
  return facts && facts->name == name_ && facts->ready();
}

Result<bool> Sandbox::Restart() const {
  const Deadline deadline = Deadline::After(kRestartTime);
  for (bool started = false;;) {
    const std::optional<SandboxFacts> facts = TRY(client_->Find(name_, deadline));
    if (!facts || facts->ready() || facts->phase == "Deleting" || deadline.passed()) {
      return started && facts && facts->ready();
    }
    if (facts->stopped() && !started) {
      TRY(client_->Start(name_, deadline));
      started = true;
    } else {
      std::this_thread::sleep_for(kStatePause);
    }
  }
}

Status Sandbox::Delete(std::chrono::seconds each) const {
  const std::unique_ptr<Client> client = client_->Uncancelled();
  const Deadline deadline = Deadline::After(each);
  Status deleted = Repeat(deadline, [&] { return client->Delete(name_, deadline); });
  // However long that took: later commands do not look for a credential that stays.
  const bool credentials = sys::Exists(CredentialsPath(state_));
  Result<int> forgotten =
      credentials ? DeleteCredentials(*client, name_, Deadline::After(each)) : 0;
  if (!deleted.ok()) return deleted;
  if (!forgotten.ok()) return std::move(forgotten).error();
  return Ok();
}

}  // namespace openshell
