// SPDX-License-Identifier: Apache-2.0
#include "serve/result_json.h"

#include <algorithm>

namespace serve {
namespace {

// In the order of EndReason.
constexpr EndForm kEndForms[] = {
    {"exit", nullptr, {}},
    {"signal", nullptr, {}},
    {"timeout", "the time limit ended the command", ExitCode::kTimedOut},
    {"oom", "the command used more than the memory limit", ExitCode::kLimit},
    {"output", "the command wrote more than the output limit", ExitCode::kLimit},
    {"cancelled", "the command was cancelled", ExitCode::kIo}};

codec::Json Counted(int64_t value) { return value < 0 ? codec::Json() : codec::Json(value); }

}  // namespace

const EndForm& FormOf(session::EndReason reason) {
  return kEndForms[std::min(static_cast<size_t>(reason), std::size(kEndForms) - 1)];
}

codec::Json JsonOf(const session::CommandResult& result, const std::optional<Written>& written) {
  codec::Json json;
  json.Set("reason", FormOf(result.reason).name);
  json.Set("status", static_cast<int64_t>(result.status));
  if (result.reason == session::EndReason::kSignal)
    json.Set("signal", static_cast<int64_t>(result.status - 128));
  if (written) {
    json.Set("stdout", written->output);
    json.Set("stderr", written->error);
  }
  json.Set("truncated_stdout", result.truncated_stdout);
  json.Set("truncated_stderr", result.truncated_stderr);
  json.Set("cwd", result.cwd);
  json.Set("new_shell", result.shell_lost);
  codec::Json usage;
  usage.Set("wall_ms", result.wall_ms);
  usage.Set("cpu_ms", Counted(result.cpu_ms));
  usage.Set("memory_peak_bytes", Counted(result.memory_peak_bytes));
  json.Set("usage", std::move(usage));
  json.Set("changes", JsonOf(result.changes));
  json.Set("changes_complete", result.changes_complete);
  return json;
}

codec::Json JsonOf(const std::vector<session::FileChange>& changes) {
  codec::Json list = codec::Json::EmptyArray();
  for (const session::FileChange& change : changes) {
    codec::Json entry;
    entry.Set("kind", change.kind);
    entry.Set("path", change.path);
    if (!change.old_path.empty()) entry.Set("old_path", change.old_path);
    if (change.directory) entry.Set("directory", true);
    list.Push(std::move(entry));
  }
  return list;
}

codec::Json JsonOf(const session::Facts& facts) {
  codec::Json json;
  json.Set("name", facts.name);
  json.Set("workdir", facts.workdir);
  json.Set("image", facts.image);
  json.Set("agent", facts.agent);
  json.Set("isolation", facts.isolation);
  json.Set("backend", facts.backend);
  json.Set("report_dir", facts.report_dir);
  json.Set("pid", facts.pid);
  json.Set("created", facts.created);
  json.Set("expires", facts.expires);
  if (!facts.pool.empty()) json.Set("pool", facts.pool);
  return json;
}

void AddState(const session::SandboxState& state, codec::Json* json) {
  json->Set("shell", state.shell);
  json->Set("cwd", state.cwd);
  json->Set("busy", state.busy);
  json->Set("waiting", state.waiting);
  json->Set("commands", state.commands);
}

codec::Json JsonOf(const session::LimitUse& use) {
  codec::Json json;
  json.Set("name", use.name);
  json.Set("used", Counted(use.used));
  json.Set("most", use.most);
  json.Set("unit", use.unit);
  return json;
}

codec::Json JsonOf(const session::PastCommand& past) {
  codec::Json json;
  json.Set("script", past.script);
  json.Set("reason", FormOf(past.reason).name);
  json.Set("status", static_cast<int64_t>(past.status));
  json.Set("wall_ms", past.wall_ms);
  return json;
}

codec::Json JsonOf(const session::Diff& diff) {
  codec::Json json;
  json.Set("changes", JsonOf(diff.changes));
  json.Set("changes_complete", diff.complete);
  json.Set("patch", diff.patch);
  return json;
}

codec::Json JsonOf(const session::WrittenSnapshot& written, const std::string& directory) {
  const session::SnapshotFacts& facts = written.facts;
  codec::Json json;
  json.Set("digest", written.digest);
  json.Set("layout", directory);
  json.Set("files", facts.files);
  json.Set("bytes", facts.bytes);
  json.Set("packed_bytes", written.packed_bytes);
  json.Set("left_out", facts.left_out);
  json.Set("policy_sha256", facts.policy_sha256);
  return json;
}

codec::Json JsonOf(const std::vector<report::DeniedRequest>& denials) {
  codec::Json list = codec::Json::EmptyArray();
  for (const report::DeniedRequest& denied : denials) {
    codec::Json one;
    one.Set("host", denied.denial.host);
    one.Set("port", static_cast<int64_t>(denied.denial.port));
    one.Set("method", denied.denial.method);
    one.Set("path", denied.denial.path);
    one.Set("program", denied.denial.binary);
    one.Set("reason", denied.reason);
    one.Set("count", denied.count);
    one.Set("allow", denied.allow_line);
    list.Push(std::move(one));
  }
  return list;
}

}  // namespace serve
