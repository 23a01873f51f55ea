// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/named_path.h"
#include "base/sys.h"
#include "base/umask.h"
#include "base/wire.h"
#include "codec/text/quantity.h"
#include "serve/method.h"
#include "serve/result_json.h"
#include "serve/work.h"
#include "session/answer.h"
#include "session/client.h"
#include "session/snapshot/snapshot.h"
#include "session/transfer/stream.h"

namespace serve {
namespace {

constexpr std::chrono::milliseconds kStateTime{500};

codec::Json LeftOut(const std::string& text) {
  codec::Json json = codec::Json::EmptyObject();
  if (!text.empty()) json.Set("left_out", text);
  return json;
}

// Writes a file, by the same way as a copy of one.
Result<codec::Json> PutBytes(const session::Place& place, const codec::Json& params) {
  const std::string bytes = TRY(BytesOf(params));
  const std::string target = params.StringAt("target");
  Fd file(::memfd_create("put", MFD_CLOEXEC));
  if (!file.valid()) return Errno("memfd_create");
  constexpr mode_t kExecutable = 0755;
  constexpr mode_t kPlain = 0644;
  if (::fchmod(file.get(), params.BooleanAt("executable") ? kExecutable : kPlain) != 0) {
    return Errno("fchmod");
  }
  TRY(sys::WriteAll(file.get(), bytes));
  Fd connection = TRY(place.Connect(params.StringAt("sandbox")));
  auto [reads, writes] = TRY(sys::Pipe());
  const session::TransferRequest request{target, "file", false};
  TRY(session::Send(connection, wire::Write(session::MessageKind::kPut, request), reads.get()));
  reads.Close();
  Fd source = TRY(sys::Open("/proc/self/fd/" + std::to_string(file.get()), O_RDONLY));
  Result<session::Sent> sent = session::SendTransferred(source, target, writes.get());
  writes.Close();
  TRY(session::AwaitDone(connection));
  if (!sent.ok()) return std::move(sent).error();
  return codec::Json::EmptyObject();
}

// The sandbox reads the archive as the client sends it.
Result<codec::Json> PutArchive(const session::Place& place, const codec::Json& params) {
  if (params.Find("source") != nullptr || params.Find("executable") != nullptr) {
    return Error{Code::kUsage, "an archive is put without 'source' and 'executable'"};
  }
  Fd connection = TRY(place.Connect(params.StringAt("sandbox")));
  const session::TransferRequest request{params.StringAt("target"), {}, true};
  TRY(session::Send(connection, wire::Write(session::MessageKind::kPut, request), STDIN_FILENO));
  ::close(STDIN_FILENO);
  TRY(session::AwaitDone(connection));
  return codec::Json::EmptyObject();
}

Result<codec::Json> Put(const session::Place& place, const codec::Json& params) {
  if (params.BooleanAt("archive")) return PutArchive(place, params);
  if (params.Find("end") != nullptr) {
    return Error{Code::kUsage, "'end' is for an archive", "\"archive\": true"};
  }
  if (params.Find("source") == nullptr) return PutBytes(place, params);
  return LeftOut(TRY(session::Put(place, params.StringAt("sandbox"), params.StringAt("source"),
                                  params.StringAt("target"))));
}

// Sends the archive as the sandbox writes it.
Result<codec::Json> GetArchive(const session::Place& place, const codec::Json& params) {
  Fd connection = TRY(place.Connect(params.StringAt("sandbox")));
  const session::TransferRequest request{params.StringAt("source"), {}, true};
  TRY(session::Send(connection, wire::Write(session::MessageKind::kGet, request), STDOUT_FILENO));
  ::close(STDOUT_FILENO);
  return LeftOut(TRY(session::AwaitDone(connection)));
}

Result<codec::Json> Get(const session::Place& place, const codec::Json& params) {
  if (params.BooleanAt("archive")) return GetArchive(place, params);
  session::ReceiveLimits limits;
  limits.bytes_max = TRY(
      codec::ParseSize(params.StringAt("max-size").empty() ? "8GiB" : params.StringAt("max-size"))
          .Context("max-size"));
  std::string target = params.StringAt("target");
  if (target.empty()) target = "-";
  ::umask(StartersUmask());
  return LeftOut(TRY(
      session::Get(place, params.StringAt("sandbox"), params.StringAt("source"), target, limits)));
}

// A patch that is too large for the result goes to standard output, which becomes `data`
// notifications.
Result<codec::Json> Diff(const session::Place& place, const codec::Json& params) {
  constexpr size_t kPatchBytesMax = size_t{1} << 20;
  const session::Diff diff = TRY(session::AskDiff(place, params.StringAt("sandbox")));
  if (diff.patch.size() <= kPatchBytesMax) return JsonOf(diff);
  TRY(sys::WriteAll(STDOUT_FILENO, diff.patch));
  codec::Json json;
  json.Set("changes", JsonOf(diff.changes));
  json.Set("changes_complete", diff.complete);
  return json;
}

Result<codec::Json> Apply(const session::Place& place, const codec::Json& params) {
  session::Applied applied = TRY(session::Apply(place, params.StringAt("sandbox")));
  codec::Json json;
  json.Set("files", applied.files);
  json.Set("conflicts", codec::Json::FromStrings(applied.conflicts));
  return json;
}

Result<codec::Json> Policy(const session::Place& place, const codec::Json& params) {
  const codec::Json* given = params.Find("text");
  const std::string file = params.StringAt("file");
  if (given != nullptr && params.Find("file") != nullptr) {
    return Error{Code::kUsage, "'text' and 'file' exclude each other"};
  }
  std::string text = params.StringAt("text");
  if (given == nullptr) {
    text = TRY(ReadNamedFile(file, session::kPolicyTextBytesMax).Context("reading the policy"));
  }
  std::string sha256 = TRY(session::ReplacePolicy(place, params.StringAt("sandbox"), text,
                                                  given != nullptr ? "policy" : file));
  codec::Json json;
  json.Set("sha256", std::move(sha256));
  return json;
}

Result<codec::Json> Restore(const session::Place& place, const codec::Json& params) {
  session::FoundSnapshot found =
      TRY(session::FindSnapshot(params.StringAt("snapshot"), params.StringAt("key")));
  session::SandboxState state =
      TRY(session::RestoreSnapshot(place, params.StringAt("sandbox"), found));
  codec::Json json;
  json.Set("digest", found.digest);
  AddState(state, &json);
  return json;
}

Result<codec::Json> Delete(const session::Place& place, const codec::Json& params) {
  const session::DeleteRequest request{params.BooleanAt("apply"),
                                       params.BooleanAt("apply-ignored")};
  session::EndReport report = TRY(session::Delete(place, params.StringAt("sandbox"), request));
  codec::Json json;
  json.Set("exit_code", static_cast<int64_t>(report.exit_code));
  if (sys::Exists(report.report_dir)) json.Set("report_dir", report.report_dir);
  return json;
}

Result<codec::Json> List(const session::Place& place) {
  codec::Json list = codec::Json::EmptyArray();
  for (const session::Facts& facts : place.List()) {
    codec::Json json = JsonOf(facts);
    Result<session::SandboxState> state =
        session::AskState(place, facts.name, Deadline::After(kStateTime));
    if (state.ok()) AddState(state.value(), &json);
    list.Push(std::move(json));
  }
  codec::Json json;
  json.Set("sandboxes", std::move(list));
  return json;
}

Result<codec::Json> State(const session::Place& place, const codec::Json& params) {
  const session::ShellState state = TRY(session::AskShellState(place, params.StringAt("sandbox")));
  codec::Json limits = codec::Json::EmptyArray();
  for (const session::LimitUse& use : state.sandbox.limits) limits.Push(JsonOf(use));
  codec::Json json;
  AddState(state.sandbox, &json);
  json.Set("seconds_left", state.sandbox.seconds_left);
  json.Set("limits", std::move(limits));
  codec::Json history = codec::Json::EmptyArray();
  for (const session::PastCommand& past : state.history) history.Push(JsonOf(past));
  json.Set("history", std::move(history));
  // Left out rather than cut: a part of it would restore another shell.
  const bool whole = CollectRoom().Take(state.commands).size() == state.commands.size() &&
                     WholeText(state.commands).size() == state.commands.size();
  if (whole) json.Set("script", state.commands);
  return json;
}

Result<codec::Json> ResetSandbox(const session::Place& place, const std::string& name) {
  codec::Json json;
  AddState(TRY(session::Reset(place, name)), &json);
  return json;
}

Result<codec::Json> Snapshot(const session::Place& place, const codec::Json& params) {
  std::string directory = params.StringAt("output");
  if (directory.empty()) directory = session::DefaultSnapshots();
  session::WrittenSnapshot written = TRY(
      session::WriteSnapshot(place, params.StringAt("sandbox"), directory, params.StringAt("tag")));
  return JsonOf(written, directory);
}

}  // namespace

Result<Job> JobOf(const session::Place& place, const std::string& method,
                  const codec::Json& params) {
  const std::string name = params.StringAt("sandbox");
  if (method == "list") return Job([&place] { return List(place); });
  const session::Facts facts = TRY(place.Find(name));
  if (!facts.pool.empty() || facts.backend != "native") {
    return Error{Code::kUnsupported, "'" + name + "' is not a sandbox of this protocol"};
  }
  using Carried = Result<codec::Json> (*)(const session::Place&, const codec::Json&);
  constexpr std::pair<std::string_view, Carried> kJobs[] = {
      {"put", Put},       {"get", Get},           {"diff", Diff},
      {"apply", Apply},   {"snapshot", Snapshot}, {"restore", Restore},
      {"delete", Delete}, {"policy", Policy},     {"state", State}};
  for (const auto& [known, carry] : kJobs) {
    if (method == known) return Job([&place, params, carry] { return carry(place, params); });
  }
  return Job([&place, name] { return ResetSandbox(place, name); });
}

}  // namespace serve
