// SPDX-License-Identifier: Apache-2.0

#include <sys/stat.h>
#include <time.h>

#include <string>
#include <utility>

#include "base/log.h"
#include "base/named_path.h"
#include "base/umask.h"
#include "cli/output.h"
#include "cli/sandbox_command.h"
#include "codec/data/json.h"
#include "codec/text/neutral.h"
#include "codec/text/quantity.h"
#include "image/progress.h"
#include "serve/result_json.h"
#include "session/client.h"
#include "session/snapshot/snapshot.h"
#include "session/snapshot/snapshot_list.h"

namespace cli {
namespace {

constexpr std::string_view kPutDoc =
    "Copy a file or directory of the host into the sandbox. TARGET is where the copy will be, "
    "relative to the checkout unless it starts with `/`; if it is a directory or ends in `/`, the "
    "copy goes into it. Missing directories are made. It is written with the agent's rights: only "
    "where the agent may write. A link in the checkout that leads out of it is not followed (exit "
    "status 77). What may not be read is left out, with a warning.";
constexpr std::string_view kGetDoc =
    "Copy a file or directory of the sandbox to the host. TARGET is as with `sandbox put`, without "
    "it the current directory; `-` is standard output. A file is also written to a pipe or "
    "character device at TARGET, which is never replaced. Files are read with the agent's rights, "
    "and what those do not let it read is left out with a warning. Links are copied, and "
    "nothing is written through them, nor through a link in the checkout that leads out of it; "
    "owners and set-user-ID bits are not copied.";
constexpr std::string_view kApplyDoc =
    "Apply a sandbox's changes to the checkout it began with. The gates must let them pass (exit "
    "status 77 otherwise). Prints the number of files. The sandbox goes on, and `sandbox diff` "
    "then "
    "shows only later changes.";
constexpr std::string_view kPolicyDoc =
    "Replace the network rules of a sandbox. Those of another policy take their place. The sandbox "
    "must have been "
    "created with `--policy`, and its other sections cannot change: FILE is checked as a file that "
    "is read again. If it is not accepted, the policy in force stays. Open connections that it "
    "does not allow are closed. Prints the SHA-256 of FILE.";
constexpr std::string_view kSnapshotDoc =
    "Save what was written in a sandbox as a snapshot. Its shell's variables, functions, "
    "options and directory are saved too. Prints the snapshot's digest. Processes are paused "
    "meanwhile and not kept. Snapshots are images in an OCI layout and can be copied and signed "
    "like other images.";
constexpr std::string_view kSnapshotsDoc =
    "List this user's snapshots, the oldest first. Shows digest, size, when each was taken, "
    "and its tag. `image prune` removes those whose tag was given to a newer one.";
constexpr std::string_view kRestoreDoc =
    "Replace what was written in a sandbox by a snapshot. The snapshot may be of another sandbox. "
    "Everything that runs in NAME ends. SNAPSHOT is a tag, a digest, or "
    "`oci:DIRECTORY[:TAG][@DIGEST]`. If anything "
    "fails, the sandbox is as before.";

Status CheckOperands(const Arguments& arguments, size_t least, size_t most,
                     const std::string& hint) {
  size_t count = arguments.operands.size();
  if (count < least) return Usage("an operand is missing", hint);
  if (count > most) return Usage("unexpected '" + arguments.operands[most] + "'", hint);
  return Ok();
}

void WarnLeftOut(const std::string& left_out) {
  if (!left_out.empty())
    logging::Warn("not all was copied", {{"why", codec::NeutralLine(left_out)}});
}

// "2026-11-21T20:55:32Z".
std::string UtcTime(time_t seconds) {
  tm parts{};
  char text[sizeof "2026-11-21T20:55:32Z"] = "";
  if (::gmtime_r(&seconds, &parts) == nullptr) return "";
  return std::string(text, ::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts));
}

// Opens the place of the sandboxes, if this one may be worked in.
Result<session::Place> OpenPlaceOf(const std::string& name) {
  NamedSandbox sandbox = TRY(FindSandbox(name));
  return std::move(sandbox.place);
}

}  // namespace

std::vector<Command> SandboxFileCommands() {
  return {
      {.name = "sandbox put",
       .carry_out = SandboxPutCommand,
       .operands = "NAME SOURCE TARGET",
       .doc = kPutDoc,
       .example = "  agentic-ci sandbox put work data.csv .\n  agentic-ci sandbox put work tools/ "
                  "/tmp/tools\n"},
      {.name = "sandbox get",
       .carry_out = SandboxGetCommand,
       .operands = "NAME SOURCE [TARGET]",
       .doc = kGetDoc,
       .example = "  agentic-ci sandbox get work result.json\n  agentic-ci sandbox get work "
                  "build/log.txt -\n",
       .options = {{"max-size", "SIZE", "8GiB", "How much is copied at most."}}},
      {.name = "sandbox apply",
       .carry_out = SandboxApplyCommand,
       .operands = "NAME",
       .doc = kApplyDoc,
       .example = "  agentic-ci sandbox apply work\n"},
      {.name = "sandbox policy",
       .carry_out = SandboxPolicyCommand,
       .operands = "NAME FILE",
       .doc = kPolicyDoc,
       .example = "  agentic-ci sandbox policy work narrow.yml\n"},
      {.name = "sandbox snapshot",
       .carry_out = SandboxSnapshotCommand,
       .operands = "NAME",
       .doc = kSnapshotDoc,
       .example = "  agentic-ci sandbox snapshot work --tag ready\n",
       .options =
           {{"tag", "TAG", "", "Also name the snapshot, in place of an older one."},
            {"output", "DIR", "",
             "The OCI layout to write it to; made if missing. If not given, this user's own, "
             "next to the store of images."},
            kJsonOption}},
      {.name = "sandbox snapshots",
       .carry_out = SandboxSnapshotsCommand,
       .operands = "",
       .doc = kSnapshotsDoc,
       .example = "  agentic-ci sandbox snapshots\n  agentic-ci sandbox snapshots --delete ready\n",
       .options = {{"delete", "SNAPSHOT", "",
                    "Delete the snapshot of this tag or digest instead, and print how much that "
                    "frees.",
                    true},
                   kJsonOption}},
      {.name = "sandbox restore",
       .carry_out = SandboxRestoreCommand,
       .operands = "NAME SNAPSHOT",
       .doc = kRestoreDoc,
       .example = "  agentic-ci sandbox restore work ready\n",
       .options = {{"key", "FILE", "",
                    "A public key (PEM) that must have signed the snapshot. Otherwise its digests "
                    "are verified, and not who made it."}}},
  };
}

Result<int> SandboxPutCommand(const Arguments& arguments) {
  TRY(CheckOperands(arguments, 3, 3, "agentic-ci sandbox put NAME SOURCE TARGET"));
  session::Place place = TRY(OpenPlaceOf(arguments.operands[0]));
  const std::vector<std::string>& words = arguments.operands;
  WarnLeftOut(TRY(session::Put(place, words[0], words[1], words[2])));
  return 0;
}

Result<int> SandboxGetCommand(const Arguments& arguments) {
  TRY(CheckOperands(arguments, 2, 3, "agentic-ci sandbox get NAME SOURCE TARGET"));
  session::ReceiveLimits limits;
  limits.bytes_max = TRY(codec::ParseSize(arguments.Get("max-size", "8GiB")).Context("--max-size"));
  session::Place place = TRY(OpenPlaceOf(arguments.operands[0]));
  const std::vector<std::string>& words = arguments.operands;
  std::string target = words.size() == 3 ? words[2] : "./";
  ::umask(StartersUmask());  // The copy is its starter's, as that of cp would be.
  WarnLeftOut(TRY(session::Get(place, words[0], words[1], target, limits)));
  return 0;
}

Result<int> SandboxApplyCommand(const Arguments& arguments) {
  TRY(CheckOperands(arguments, 1, 1, "agentic-ci sandbox apply NAME"));
  session::Place place = TRY(OpenPlaceOf(arguments.operands[0]));
  session::Applied applied = TRY(session::Apply(place, arguments.operands[0]));
  for (const std::string& conflict : applied.conflicts) {
    logging::Warn("not applied", {{"what", codec::NeutralLine(conflict)}});
  }
  TRY(PrintLines(std::to_string(applied.files)));
  return 0;
}

Result<int> SandboxPolicyCommand(const Arguments& arguments) {
  TRY(CheckOperands(arguments, 2, 2, "agentic-ci sandbox policy NAME FILE"));
  const std::string& file = arguments.operands[1];
  session::Place place = TRY(OpenPlaceOf(arguments.operands[0]));
  std::string text =
      TRY(ReadNamedFile(file, session::kPolicyTextBytesMax).Context("reading the policy"));
  std::string sha256 = TRY(session::ReplacePolicy(place, arguments.operands[0], text, file));
  TRY(PrintLines(sha256));
  return 0;
}

Result<int> SandboxSnapshotCommand(const Arguments& arguments) {
  TRY(CheckOperands(arguments, 1, 1, "agentic-ci sandbox snapshot NAME"));
  std::string directory = arguments.Get("output");
  if (directory.empty()) directory = session::DefaultSnapshots();
  session::Place place = TRY(OpenPlaceOf(arguments.operands[0]));
  session::WrittenSnapshot written =
      TRY(session::WriteSnapshot(place, arguments.operands[0], directory, arguments.Get("tag")));
  const session::SnapshotFacts& facts = written.facts;
  if (facts.left_out > 0) {
    WarnLeftOut(std::to_string(facts.left_out) +
                " left out that a snapshot cannot hold; the first: /" + facts.first_left_out);
  }
  if (!arguments.Has("json")) {
    TRY(PrintLines(written.digest));
    return 0;
  }
  TRY(Print(codec::RenderJson(serve::JsonOf(written, directory))));
  return 0;
}

Result<int> SandboxSnapshotsCommand(const Arguments& arguments) {
  TRY(CheckOperands(arguments, 0, 0, "agentic-ci sandbox snapshots --delete SNAPSHOT"));
  int64_t freed = 0;
  for (const std::string& one : arguments.All("delete")) {
    freed += TRY(session::DeleteSnapshot(one)).bytes_freed;
  }
  codec::Json json;
  if (arguments.Has("delete")) {
    json.Set("bytes_freed", freed);
    TRY(Print(arguments.Has("json") ? codec::RenderJson(json)
                                    : "freed " + image::ShownBytes(freed) + "\n"));
    return 0;
  }
  codec::Json list = codec::Json::EmptyArray();
  std::string lines;
  for (const session::ListedSnapshot& snapshot : TRY(session::ListSnapshots())) {
    std::string taken = UtcTime(snapshot.taken);
    lines += snapshot.digest + "  " + image::ShownBytes(snapshot.bytes) + "  " + taken +
             (snapshot.tag.empty() ? "" : "  " + snapshot.tag) + "\n";
    codec::Json one;
    one.Set("digest", snapshot.digest);
    one.Set("tag", snapshot.tag);
    one.Set("bytes", snapshot.bytes);
    one.Set("taken", taken);
    list.Push(std::move(one));
  }
  json.Set("snapshots", std::move(list));
  TRY(arguments.Has("json") ? Print(codec::RenderJson(json)) : PrintLines(lines));
  return 0;
}

Result<int> SandboxRestoreCommand(const Arguments& arguments) {
  TRY(CheckOperands(arguments, 2, 2, "agentic-ci sandbox restore NAME SNAPSHOT"));
  session::Place place = TRY(OpenPlaceOf(arguments.operands[0]));
  session::FoundSnapshot found =
      TRY(session::FindSnapshot(arguments.operands[1], arguments.Get("key")));
  TRY(session::RestoreSnapshot(place, arguments.operands[0], found));
  logging::Info("snapshot restored",
                {{"sandbox", arguments.operands[0]}, {"snapshot", found.digest}});
  return 0;
}

}  // namespace cli
