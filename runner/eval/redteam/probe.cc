// SPDX-License-Identifier: Apache-2.0
#include "eval/redteam/probe.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/sys.h"
#include "codec/data/json.h"

namespace redteam {
namespace {

std::vector<std::string> TextsAt(const codec::Json& json, std::string_view name) {
  std::vector<std::string> texts;
  const codec::Json* list = json.Find(name);
  if (list == nullptr || list->array() == nullptr) return texts;
  for (const codec::Json& one : *list->array()) {
    if (one.string() != nullptr) texts.push_back(*one.string());
  }
  return texts;
}

void Append(std::vector<Probe>* all, std::vector<Probe> more) {
  all->insert(all->end(), more.begin(), more.end());
}

std::vector<Probe> MakeProbes() {
  std::vector<Probe> all = KernelProbes();
  Append(&all, ProcessProbes());
  Append(&all, FileProbes());
  Append(&all, ConnectionProbes());
  Append(&all, ProxyProbes());
  Append(&all, SmugglingProbes());
  Append(&all, CredentialProbes());
  all.push_back(KillProbe());
  return all;
}

}  // namespace

std::string Render(const Targets& targets) {
  codec::Json json;
  json.Set("bait", targets.bait)
      .Set("bait_file", targets.bait_file)
      .Set("abstract_socket", targets.abstract_socket)
      .Set("bait_socket", targets.bait_socket)
      .Set("port", targets.port)
      .Set("victim", static_cast<int64_t>(targets.victim))
      .Set("runner", static_cast<int64_t>(targets.runner))
      .Set("credential_files", codec::Json::FromStrings(targets.credential_files))
      .Set("searched", codec::Json::FromStrings(targets.searched))
      .Set("skipped", codec::Json::FromStrings(targets.skipped))
      .Set("checkout", targets.checkout)
      .Set("outside", targets.outside)
      .Set("upstream", targets.upstream)
      .Set("waits", targets.waits)
      .Set("serves", targets.serves);
  return codec::RenderJsonLine(json);
}

Result<Targets> ParseTargets(std::string_view text) {
  Result<codec::Json> json = codec::ParseJson(text);
  if (!json.ok() || json.value().object() == nullptr || json.value().StringAt("bait").empty()) {
    return Error{Code::kUsage, "eval redteam-agent is started by eval redteam alone",
                 "agentic-ci eval redteam"};
  }
  const codec::Json& read = json.value();
  Targets targets;
  targets.bait = read.StringAt("bait");
  targets.bait_file = read.StringAt("bait_file");
  targets.abstract_socket = read.StringAt("abstract_socket");
  targets.bait_socket = read.StringAt("bait_socket");
  targets.port = static_cast<int>(read.IntegerAt("port"));
  targets.victim = static_cast<pid_t>(read.IntegerAt("victim"));
  targets.runner = static_cast<uint32_t>(read.IntegerAt("runner"));
  targets.credential_files = TextsAt(read, "credential_files");
  targets.searched = TextsAt(read, "searched");
  targets.skipped = TextsAt(read, "skipped");
  targets.checkout = read.StringAt("checkout");
  targets.outside = read.BooleanAt("outside");
  targets.upstream = static_cast<int>(read.IntegerAt("upstream"));
  targets.waits = read.BooleanAt("waits");
  targets.serves = read.BooleanAt("serves");
  return targets;
}

std::string_view Name(Category category) {
  switch (category) {
    case Category::kEscape:
      return "escape";
    case Category::kFiles:
      return "files";
    case Category::kEgress:
      return "egress";
    case Category::kSmuggling:
      return "smuggling";
    case Category::kCredential:
      break;
  }
  return "credential";
}

const std::vector<Probe>& Probes() {
  static const std::vector<Probe> all = MakeProbes();
  return all;
}

std::string OwnPlace(const Targets& targets) {
  if (targets.outside) return targets.bait;
  for (const std::string& place :
       {std::string("."), sys::Environment("TMPDIR").value_or("/tmp"),
        sys::Environment("HOME").value_or("/tmp"), std::string("/dev/shm")}) {
    const std::string name = place + "/redteam-own";
    if (!sys::Open(name, O_WRONLY | O_CREAT, 0600).ok()) continue;
    ::unlink(name.c_str());
    return place;
  }
  return {};
}

std::string ErrorName(int error) {
  const char* name = ::strerrorname_np(error);
  return name == nullptr ? std::to_string(error) : name;
}

Attempt Called(long result) {
  if (result >= 0) return {Came::kThrough, "succeeded"};
  constexpr int kRefusals[] = {EPERM,   EACCES,       ENOSYS,       EROFS,       ENOENT,
                               ESRCH,   ENXIO,        ECONNREFUSED, ENODEV,      EXDEV,
                               ENOTDIR, EAFNOSUPPORT, ENETUNREACH,  EHOSTUNREACH};
  const int error = errno;
  const bool refused =
      std::find(std::begin(kRefusals), std::end(kRefusals), error) != std::end(kRefusals);
  if (refused) return {Came::kStopped, ErrorName(error)};
  return {Came::kThrough, "reached, and answered " + ErrorName(error)};
}

}  // namespace redteam
