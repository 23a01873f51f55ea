// SPDX-License-Identifier: Apache-2.0
// These tests have a stand-in for `openshell`; those in tests/openshell have the real one.
#include "backend/openshell/sandbox.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <string>

#include "backend/openshell/attend.h"
#include "backend/openshell/client/command_client.h"
#include "backend/openshell/fleet.h"
#include "backend/openshell/gateway.h"
#include "backend/openshell/state_directory.h"
#include "base/sys.h"

namespace openshell {
namespace {

// A directory with an `openshell` that is this script.
class StandIn {
 public:
  explicit StandIn(const std::string& script) {
    REQUIRE(::mkdtemp(top_) != nullptr);
    REQUIRE(sys::WriteFile(top() + "/openshell", "#!/bin/sh\n" + script + "\n").ok());
    REQUIRE(::chmod((top() + "/openshell").c_str(), 0755) == 0);
  }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;
  ~StandIn() { std::filesystem::remove_all(top_); }

  std::string top() const { return top_; }
  ProgramPlaces places() const { return {top() + ":/usr/bin:/bin", ""}; }

 private:
  char top_[32] = "/tmp/stand-in-XXXXXX";
};

// A client that asks that `openshell`.
std::unique_ptr<Client> ClientOf(const StandIn& place) {
  return std::make_unique<CommandClient>(CommandLine(place.places(), {}), place.top());
}

constexpr std::chrono::seconds kPatience{120};
constexpr std::chrono::milliseconds kMoment{500};
constexpr std::chrono::seconds kAWhile{5};

// Writes once the file `go` is there, so that no order of events decides.
std::string Records(const std::string& bytes) {
  return "until [ -e \"${0%/*}/go\" ]; do sleep 0.01; done; exec head -c " + bytes + " /dev/zero";
}

// The bound of records, which this process's hard limit may lower.
uintmax_t RecordsMax() {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &limit) == 0);
  return std::min<uintmax_t>(limit.rlim_max, kRecordsBytesMax);
}

struct Followed {
  uintmax_t bytes = 0;
  bool full = false;
  run::EndCause end = run::EndKind::kExited;
};

// Follows a sandbox that has records of so many bytes, whose agent then ends by itself if `ends`.
Followed Follow(const std::string& bytes, bool ends) {
  StandIn place(Records(bytes));
  Sandbox sandbox(ClientOf(place), "name", place.top());
  REQUIRE(sandbox.FollowEvents().ok());
  REQUIRE(sys::WriteFile(place.top() + "/go", "").ok());
  Result<bool> ended = sys::WaitReadable(sandbox.records_ended(), Deadline::After(kPatience));
  REQUIRE(ended.ok());
  REQUIRE(ended.value());
  Followed followed;
  followed.bytes = std::filesystem::file_size(sandbox.events_path());
  followed.full = sandbox.RecordsFull();
  Result<Child> agent =
      Child::Start(place.places(), {.argv = {"sleep", ends ? "0" : "infinity"}, .environment = {}});
  REQUIRE(agent.ok());
  run::Request request;
  request.timeout_s = 600;
  request.idle_timeout_s = 0;
  request.output_bytes = 1000;
  const codec::SecretMask secrets;
  const run::OutputFiles files;
  Result<run::AgentEnd> end =
      Attend(std::move(agent).value(), -1, -1, sandbox, request, files, secrets, nullptr);
  REQUIRE(end.ok());
  followed.end = end.value().kind;
  return followed;
}

TEST_CASE("A sandbox's records are bounded, and an agent with more is ended") {
  const Followed many = Follow("100000000", false);
  CHECK(many.bytes == RecordsMax());
  CHECK(many.full);
  CHECK(many.end == sandbox::LimitName::kRecords);

  const Followed few = Follow("1000", true);
  CHECK(few.bytes == 1000);
  CHECK_FALSE(few.full);
  CHECK(few.end == run::EndKind::kExited);
}

TEST_CASE("A signal ends the wait for OpenShell's version") {
  StandIn silent("exec sleep infinity");
  auto [read, write] = sys::Pipe().value();
  write.Close();  // As a signal does, it makes `read` readable.
  Result<std::unique_ptr<Gateway>> attached =
      Gateway::Attach(silent.places(), "http://127.0.0.1:1", "", read.get());
  REQUIRE_FALSE(attached.ok());
  CHECK(attached.error().what.ends_with("interrupted"));

  StandIn old("echo openshell 0.0.1");
  attached = Gateway::Attach(old.places(), "http://127.0.0.1:1", "");
  REQUIRE_FALSE(attached.ok());
  CHECK(attached.error().code == Code::kUnsupported);
}

// Lists the sandboxes of a gateway whose first page has so many, and whose others are full.
Result<std::vector<SandboxFacts>> List(int first) {
  StandIn place(R"(page() { printf '['; seq "$1" | sed 's/.*/{"name":"n&"},/'; echo '{}]'; }
case "$*" in
--version) echo openshell 0.0.112;;
*status*) echo '{"status":"connected","version":"0.0.112"}';;
*'--offset 0') page )" +
                std::to_string(first - 1) + R"(;;
*) page 499;;
esac)");
  const std::string path = sys::Environment("PATH").value_or("");
  const std::optional<std::string> runtime = sys::Environment("XDG_RUNTIME_DIR");
  ::setenv("PATH", (place.top() + ":/usr/bin:/bin").c_str(), 1);
  ::setenv("XDG_RUNTIME_DIR", place.top().c_str(), 1);
  Result<std::vector<SandboxFacts>> all = ListFleet({"http://127.0.0.1:1", ""});
  ::setenv("PATH", path.c_str(), 1);
  runtime ? ::setenv("XDG_RUNTIME_DIR", runtime->c_str(), 1) : ::unsetenv("XDG_RUNTIME_DIR");
  return all;
}

TEST_CASE("A gateway that lists sandboxes without end is an error") {
  for (int first : {500, 20000}) {
    Result<std::vector<SandboxFacts>> all = List(first);
    REQUIRE_FALSE(all.ok());
    CHECK(all.error().what == "the gateway lists more than 10000 sandboxes");
  }
  Result<std::vector<SandboxFacts>> some = List(499);
  REQUIRE(some.ok());
  CHECK(some.value().size() == 499);
}

// Attaches to a gateway that is registered at `endpoint`, and answers.
Result<std::unique_ptr<Gateway>> AttachRegistered(const std::string& endpoint) {
  StandIn place(R"(case "$*" in
--version) echo openshell 0.0.112;;
*) echo '{"status":"connected","version":"0.0.112"}';;
esac)");
  const std::string entry = place.top() + "/config/openshell/gateways/fleet";
  REQUIRE(sys::MakeDirectories(entry).ok());
  REQUIRE(
      sys::WriteFile(entry + "/metadata.json", "{\"gateway_endpoint\":\"" + endpoint + "\"}").ok());
  const std::optional<std::string> config = sys::Environment("XDG_CONFIG_HOME");
  ::setenv("XDG_CONFIG_HOME", (place.top() + "/config").c_str(), 1);
  Result<std::unique_ptr<Gateway>> gateway = Gateway::Attach(place.places(), "fleet", "");
  config ? ::setenv("XDG_CONFIG_HOME", config->c_str(), 1) : ::unsetenv("XDG_CONFIG_HOME");
  return gateway;
}

TEST_CASE("A gateway on another machine is contacted over https only, registered or not") {
  CHECK(AttachRegistered("https://192.0.2.1:443").ok());
  CHECK(AttachRegistered("http://127.0.0.1:17670").ok());
  for (const char* endpoint : {"http://192.0.2.1:17670", "http://gateway.example:80"}) {
    Result<std::unique_ptr<Gateway>> gateway = AttachRegistered(endpoint);
    REQUIRE_FALSE(gateway.ok());
    CHECK(gateway.error().code == Code::kUsage);
  }
  CHECK_FALSE(AttachRegistered("").ok());
}

// A gateway that keeps the names of providers and profiles as files, and still needs a provider as
// often as `busy` says.
constexpr char kKeeping[] = R"(cd "${0%/*}"
case "$1 $2" in
'provider list-profiles') ls profiles;;
'provider list') [ "$7" != 0 ] || ls providers;;
'provider delete')
  if read -r n <busy && [ "$n" -gt 0 ]; then
    echo $((n - 1)) >busy; echo 'Error: it is attached to sandbox(es)' >&2; exit 1
  fi
  rm "providers/$3" || { echo 'Error: Some requested entity was not found' >&2; exit 1; };;
'provider profile')
  [ ! -e "providers/$4" ] || touch early
  rm "profiles/$4" || { echo 'Error: Some requested entity was not found' >&2; exit 1; };;
esac)";

class Keeping : public StandIn {
 public:
  explicit Keeping(const std::string& busy) : StandIn(kKeeping) {
    REQUIRE(sys::MakeDirectories(top() + "/providers").ok());
    REQUIRE(sys::MakeDirectories(top() + "/profiles").ok());
    SetBusy(busy);
  }
  void SetBusy(const std::string& busy) const {
    REQUIRE(sys::WriteFile(top() + "/busy", busy + "\n").ok());
  }
  void Add(const std::string& path) const { REQUIRE(sys::WriteFile(top() + "/" + path, "").ok()); }
  bool Has(const std::string& path) const { return sys::Exists(top() + "/" + path); }
};

TEST_CASE("Every credential of a run is deleted, each before its profile, once it is not needed") {
  for (const char* busy : {"0", "3"}) {
    Keeping gateway(busy);
    for (const char* there :
         {"providers/aci-1-0", "profiles/aci-1-0", "providers/aci-1-2", "profiles/aci-1-12",
          "providers/aci-2-0", "profiles/aci-2-0", "providers/theirs"}) {
      gateway.Add(there);
    }
    const std::unique_ptr<Client> openshell = ClientOf(gateway);
    CHECK(DeleteCredentials(*openshell, "aci-1", Deadline::After(kPatience)).value() == 3);
    for (const char* gone :
         {"providers/aci-1-0", "profiles/aci-1-0", "providers/aci-1-2", "profiles/aci-1-12"}) {
      CHECK_FALSE(gateway.Has(gone));
    }
    for (const char* stays : {"providers/aci-2-0", "profiles/aci-2-0", "providers/theirs"}) {
      CHECK(gateway.Has(stays));
    }
    CHECK_FALSE(gateway.Has("early"));
    CHECK(DeleteCredentials(*openshell, "aci-1", Deadline::After(kPatience)).value() == 0);
  }
}

TEST_CASE("A gateway that was busy, and then does not answer in time, is busy") {
  for (const char* then :
       {"exec sleep infinity", "echo 'Error: transport error' >&2; exit 1", "exit 0"}) {
    StandIn gateway(std::string(R"(cd "${0%/*}"
case "$*" in
'provider list '*) echo aci-1-0;;
*delete*) [ -e asked ] || { touch asked; echo 'Error: it is needed' >&2; exit 1; }; )") +
                    then + ";;\nesac");
    const std::unique_ptr<Client> openshell = ClientOf(gateway);
    const Status sandbox = Sandbox(ClientOf(gateway), "aci-1", gateway.top()).Delete(kAWhile);
    std::filesystem::remove(gateway.top() + "/asked");
    const Result<int> credentials =
        DeleteCredentials(*openshell, "aci-1", Deadline::After(kAWhile));
    const bool succeeds = std::string(then) == "exit 0";
    CHECK(sandbox.ok() == succeeds);
    CHECK(credentials.ok() == succeeds);
    if (succeeds) continue;
    CHECK(sandbox.error().what.ends_with("it is needed"));
    CHECK(credentials.error().what.ends_with("it is needed"));
    CHECK(MayPass(sandbox.error().code));
    CHECK(MayPass(credentials.error().code));
  }
}

// Makes the state of a run that has a credential on that gateway, and ends. Returns its path.
std::string MakeState(const Keeping& gateway, bool keep) {
  Result<StateDirectory> state = StateDirectory::Make(gateway.places());
  REQUIRE(state.ok());
  const std::string path = state.value().path();
  gateway.Add("providers/" + state.value().name() + "-0");
  REQUIRE(WriteLaterCommand(state.value(), "g", "").ok());
  REQUIRE(sys::MakeDirectories(path + "/config/openshell").ok());
  REQUIRE(sys::WriteFile(path + "/config/openshell/active_gateway", "g").ok());
  REQUIRE(sys::WriteFile(path + "/credentials", "").ok());
  if (keep) state.value().Keep();
  return path;
}

TEST_CASE("State that is kept is removed by the sweep that removes what it knows of") {
  Keeping gateway("0");
  const std::optional<std::string> runtime = sys::Environment("XDG_RUNTIME_DIR");
  ::setenv("XDG_RUNTIME_DIR", gateway.top().c_str(), 1);
  for (bool keep : {true, false}) {
    const std::string path = MakeState(gateway, keep);
    CHECK(sys::Exists(path) == keep);
    CHECK(LaterCommand(path).ends_with(" --backend openshell --gateway g") == keep);
    SweepRemains(gateway.places());
    CHECK_FALSE(sys::Exists(path));
    CHECK(gateway.Has("providers" + path.substr(path.rfind('/')) + "-0") != keep);
  }
  // While the gateway is busy, it stays; but not for ever.
  const std::string path = MakeState(gateway, true);
  gateway.SetBusy("1000000");
  SweepRemains(gateway.places(), kAWhile);
  CHECK(sys::Exists(path));
  gateway.SetBusy("0");
  SweepRemains(gateway.places());
  CHECK_FALSE(sys::Exists(path));
  const std::string old = MakeState(gateway, true);
  const auto before = std::filesystem::last_write_time(old + "/lock");
  std::filesystem::last_write_time(old + "/lock", before - std::chrono::hours(2));
  gateway.SetBusy("1000000");
  SweepRemains(gateway.places(), kAWhile);
  CHECK_FALSE(sys::Exists(old));
  runtime ? ::setenv("XDG_RUNTIME_DIR", runtime->c_str(), 1) : ::unsetenv("XDG_RUNTIME_DIR");
}

TEST_CASE("Only a record that comes after the question says that all have come") {
  const std::string early = "[9999999999.000] [sandbox] [INFO ] [x] from a program's path\n";
  for (bool comes : {true, false}) {
    StandIn place(
        std::string("echo 1795570914925000000\n") +
        (comes ? "echo '[1795570914.930] [sandbox] [INFO ] [x] y' >>\"${0%/*}/events.log\"" : "") +
        "\ntouch \"${0%/*}/asked\"");
    REQUIRE(sys::WriteFile(place.top() + "/events.log", early).ok());
    const Sandbox sandbox(ClientOf(place), "name", place.top());
    auto patience = comes ? std::chrono::milliseconds(kPatience) : kMoment;
    for (; !sys::Exists(place.top() + "/asked"); patience *= 2) {  // The machine may be busy.
      CHECK(sandbox.AwaitEvents(Deadline::After(patience)) == comes);
    }
  }
}

TEST_CASE("What the command line says of the records is not among them") {
  StandIn place("echo of itself >&2; echo a record");
  Sandbox sandbox(ClientOf(place), "name", place.top());
  CHECK(sandbox.SaidOfRecords().empty());
  REQUIRE(sandbox.FollowEvents().ok());
  REQUIRE(sys::WaitReadable(sandbox.records_ended(), Deadline::After(kPatience)).value());
  CHECK(sys::ReadFile(sandbox.events_path(), 100).value() == "a record\n");
  CHECK(sandbox.SaidOfRecords() == "of itself");
}

TEST_CASE("Only a script that has succeeded has ended all processes") {
  for (bool succeeds : {true, false}) {
    StandIn place(std::string("echo welcome; echo ended; exit ") + (succeeds ? "0" : "1"));
    CHECK(Sandbox(ClientOf(place), "name", place.top()).EndProcesses() == succeeds);
  }
}

TEST_CASE("An image whose profile sets HOME is refused before anything runs in it") {
  for (const char* home : {"/proc", "/proc; exit 1", "/root"}) {
    StandIn place(std::string(R"(case "$2" in
get) echo '{"name":"name","phase":"Ready"}';;
exec) for last; do :; done; export HOME=)") +
                  home + "; eval \"$last\";;\nesac");
    Sandbox sandbox(ClientOf(place), "name", place.top());
    const Status created = sandbox.Create({});
    CHECK(created.ok() == (std::string(home) != "/root"));
    if (!created.ok()) CHECK(created.error().code == Code::kSetup);
  }
}

}  // namespace
}  // namespace openshell
