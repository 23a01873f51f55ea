// SPDX-License-Identifier: Apache-2.0
#include "report/denials.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "codec/data/json.h"
#include "codec/data/secret_mask.h"
#include "codec/text/neutral.h"
#include "codec/text/utf8.h"
#include "report/event_lines.h"

namespace report {
namespace {

using codec::Json;

constexpr char kEvents[] = "/events.ocsf.jsonl";  // In a report's directory.
constexpr size_t kDenialsMax = 1000;
constexpr size_t kAllowedMax = 1000;
constexpr size_t kFailuresMax = 200;
constexpr size_t kHostBytesMax = 255;
constexpr size_t kPathBytesMax = 4096;
constexpr size_t kMethodBytesMax = 32;
constexpr int64_t kCountMax = 1'000'000'000;  // The count in one line.

// OCSF 1.8.0: Network Activity and HTTP Activity; action_id 2 is Denied.
constexpr int64_t kNetworkActivity = 4001;
constexpr int64_t kHttpActivity = 4002;
constexpr int64_t kDenied = 2;

bool Consists(std::string_view text, std::string_view of) {
  return text.find_first_not_of(of) == std::string_view::npos;
}

bool IsPlain(std::string_view text, size_t bytes_max) {
  if (text.size() > bytes_max) return false;
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  }
  return true;
}

// The agent chooses both. What it cannot do with them is stay out of the report: a program whose
// path has a line end in it, or a method in lower case, is shown in a form that is fit to be shown.
std::string ShownBinary(const std::string& binary) {
  return IsPlain(binary, kPathBytesMax) ? binary : codec::NeutralLine(binary, kPathBytesMax);
}

// Policies do not look at the case. A space or a control character cannot come from the gateway.
std::string ShownMethod(std::string method) {
  constexpr std::string_view kOther = "!#$%&'*+.^`|~0123456789";
  if (method.size() > kMethodBytesMax) method.resize(kMethodBytesMax);
  for (char& c : method) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (kOther.find(c) != std::string_view::npos) c = '_';
  }
  return method;
}

// A host that the gateway shows without a secret in it.
bool IsMasked(const std::string& host) {
  return host.find(codec::SecretMask::kMark) != std::string::npos;
}

bool IsHost(std::string host) {
  constexpr std::string_view kMark = codec::SecretMask::kMark;
  for (size_t at = host.find(kMark); at != std::string::npos; at = host.find(kMark, at)) {
    host.replace(at, kMark.size(), "x");
  }
  return Consists(host, "abcdefghijklmnopqrstuvwxyz0123456789.-_:");
}

bool IsSane(const advise::Denial& denial) {
  return !denial.host.empty() && denial.host.size() <= kHostBytesMax && IsHost(denial.host) &&
         Consists(denial.method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_") &&
         (denial.path.empty() || denial.path[0] == '/' || denial.path == "*") &&
         IsPlain(denial.path, kPathBytesMax) && IsPlain(denial.binary, kPathBytesMax);
}

// A malformed request is distinguished by its protocol.
std::string MethodOf(const Json& event, const Json& facts) {
  const std::string engine = facts.StringAt("engine");
  if (engine == "dns") return "DNS";
  const Json* connection = event.Find("connection_info");
  if (engine == "nftables" && connection != nullptr) {
    return ShownMethod(connection->StringAt("protocol_name"));
  }
  return ShownMethod(facts.StringAt("method"));
}

constexpr size_t kOperationsMax = 64;  // More than the gateway writes of one request.

std::vector<std::string> TextsAt(const Json& object, std::string_view name) {
  std::vector<std::string> texts;
  const Json* list = object.Find(name);
  if (list == nullptr || list->array() == nullptr) return texts;
  for (const Json& text : *list->array()) {
    if (text.string() != nullptr) texts.push_back(*text.string());
  }
  return texts;
}

// Reads the operations as the gateway's ocsf.cc writes them.
std::vector<policy::Operation> OperationsOf(const Json& facts) {
  std::vector<policy::Operation> operations;
  const Json* list = facts.Find("operations");
  if (list == nullptr || list->array() == nullptr) return operations;
  for (const Json& one : *list->array()) {
    if (operations.size() == kOperationsMax) return {};
    operations.push_back({one.StringAt("operation_type"), one.StringAt("operation_name"),
                          TextsAt(one, "fields"), one.StringAt("persisted_query"),
                          one.StringAt("method"), one.StringAt("tool")});
  }
  return operations;
}

// Returns whether the policy decided. No line of a policy allows what it did not decide (a
// malformed request, a forbidden address, a secret on its way to the wrong host).
bool IsByPolicy(const advise::Denial& denial, std::string_view engine, std::string_view reason) {
  // A name is refused because no endpoint is about it.
  if (engine.empty() || engine == "opa" || engine == "l7" || engine == "dns") return true;
  if (!engine.starts_with("l7-")) return false;
  // A message of a WebSocket that is judged as text; others are judged by what they ask for.
  bool text = denial.method == "WEBSOCKET_TEXT" && reason.ends_with(" not permitted by policy");
  return text || !denial.operations.empty();
}

// Returns whether the run's own budget was used up: that is the run's end, and told as such
// (report/model_use.h). The request is neither one that a policy lacks nor one that leaks.
bool IsSpent(std::string_view engine, std::string_view reason) {
  return engine == "budget" && reason.starts_with("the run's budget is used up");
}

class Collector {
 public:
  void TakeLine(std::string_view line) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    // Most records are of what was allowed, and most of those say what an earlier one said. No text
    // can forge these marks, since a quote in a text has a backslash before it.
    if (line.find("\"action_id\":1,") != std::string_view::npos) return TakeAllowed(line);
    const Result<Json> json = codec::ParseJson(
        line, {.bytes_max = kEventLineBytesMax, .depth_max = 16, .values_max = 5000});
    if (!json.ok() || json.value().object() == nullptr) {
      ++list_.dropped;
      return;
    }
    TakeEvent(json.value());
  }
  void Drop() { ++list_.dropped; }
  DenialList Take() {
    // No line beside a deny rule helps.
    std::vector<DeniedRequest*> open;
    std::vector<advise::Denial> denials;
    for (DeniedRequest& denied : list_.denials) {
      bool helps = denied.by_policy && denied.deny_rule.empty() && !IsMasked(denied.denial.host);
      if (!helps) continue;
      open.push_back(&denied);
      denials.push_back(denied.denial);
    }
    std::vector<std::string> lines = advise::SuggestLines(denials);
    for (size_t i = 0; i < open.size(); ++i) open[i]->allow_line = std::move(lines[i]);
    return std::move(list_);
  }

 private:
  void TakeEvent(const Json& event) {
    const int64_t kind = event.IntegerAt("class_uid");
    if (kind != kNetworkActivity && kind != kHttpActivity) return;
    // The gateway repeats there what OCSF scatters over its objects.
    const Json* facts = event.Find("unmapped");
    if (facts != nullptr && facts->StringAt("decision") == "failed") return AddFailure(*facts);
    if (event.IntegerAt("action_id") != kDenied) return;
    if (facts == nullptr) return Drop();
    advise::Denial denial{.host = facts->StringAt("host"),
                          .port = 0,
                          .method = MethodOf(event, *facts),
                          .path = facts->StringAt("path"),
                          .binary = ShownBinary(facts->StringAt("binary")),
                          .protocol = facts->StringAt("protocol"),
                          .operations = OperationsOf(*facts),
                          .ancestors = TextsAt(*facts, "ancestors")};
    const int64_t port = facts->IntegerAt("port");
    if (port > 0 && port <= 65535) denial.port = static_cast<uint16_t>(port);
    const bool portless = denial.port == 0 && denial.method == "ICMP";
    if (!IsSane(denial) || (denial.port == 0 && !portless)) return Drop();
    std::string reason = facts->StringAt("reason");
    if (reason.empty()) reason = event.StringAt("status_detail");
    if (IsSpent(facts->StringAt("engine"), reason)) return;
    DeniedRequest denied;
    denied.denial = std::move(denial);
    denied.reason = codec::CutUtf8(reason, 300);
    denied.deny_rule = codec::CutUtf8(facts->StringAt("deny_rule"), 300);
    denied.by_policy = IsByPolicy(denied.denial, facts->StringAt("engine"), denied.reason);
    // The count of a line that stands for all of one run: run/learn.h.
    const int64_t count = facts->IntegerAt("count");
    denied.count = std::clamp<int64_t>(count, 1, kCountMax);
    Add(std::move(denied), count > 0);
  }

  // Lines that are alike from the decision to the program are parsed once.
  void TakeAllowed(std::string_view line) {
    const size_t begin = line.find("\"unmapped\":{");
    const size_t end = line.find(",\"pid\":", begin == std::string_view::npos ? 0 : begin);
    if (begin == std::string_view::npos || end == std::string_view::npos) return;
    const std::string_view same = line.substr(begin, end - begin);
    if (const auto found = allowed_index_.find(same); found != allowed_index_.end()) {
      ++list_.allowed[found->second].count;
      return;
    }
    if (list_.allowed.size() >= kAllowedMax) return static_cast<void>(++list_.allowed_dropped);
    const Result<Json> json = codec::ParseJson(
        line, {.bytes_max = kEventLineBytesMax, .depth_max = 16, .values_max = 5000});
    const Json* facts = json.ok() ? json.value().Find("unmapped") : nullptr;
    if (facts == nullptr) return;
    AllowedRequest allowed;
    allowed.host = facts->StringAt("host");
    allowed.port = static_cast<int>(std::clamp<int64_t>(facts->IntegerAt("port"), 0, 65535));
    allowed.method = MethodOf(json.value(), *facts);
    if (allowed.method == "DNS") return;  // The connection that follows says more.
    allowed.path = codec::NeutralLine(facts->StringAt("path"), kPathBytesMax);
    allowed.binary = ShownBinary(facts->StringAt("binary"));
    if (allowed.host.empty() || allowed.host.size() > kHostBytesMax || !IsHost(allowed.host))
      return;
    allowed_index_.emplace(same, list_.allowed.size());
    list_.allowed.push_back(std::move(allowed));
  }

  void AddFailure(const Json& facts) {
    FailedConnection failed;
    failed.host = facts.StringAt("host");
    failed.port = static_cast<int>(std::clamp<int64_t>(facts.IntegerAt("port"), 0, 65535));
    failed.reason = codec::CutUtf8(facts.StringAt("reason"), 300);
    if (failed.host.empty() || failed.host.size() > kHostBytesMax || !IsHost(failed.host)) return;
    for (FailedConnection& known : list_.failures) {
      const bool same =
          known.host == failed.host && known.port == failed.port && known.reason == failed.reason;
      if (same) return static_cast<void>(++known.count);
    }
    if (list_.failures.size() < kFailuresMax) list_.failures.push_back(std::move(failed));
  }

  void Add(DeniedRequest denied, bool whole_run) {
    const advise::Denial& denial = denied.denial;
    std::string asked;
    for (const policy::Operation& one : denial.operations) asked += OperationText(one) + "\n";
    // The same request can be refused for different reasons, and only some of them can be allowed.
    asked += (denied.by_policy ? "policy " : "not policy ") + denied.deny_rule;
    const Key key{denial.host, denial.port, denial.method, denial.path, denial.binary, asked};
    if (const auto found = index_.find(key); found != index_.end()) {
      DeniedRequest& known = list_.denials[found->second];
      known.count += denied.count;
      known.denial.count = known.count;
      if (whole_run) ++known.denial.runs;
      return;
    }
    denied.denial.count = denied.count;
    if (list_.denials.size() >= kDenialsMax) return Drop();
    index_.emplace(key, list_.denials.size());
    list_.denials.push_back(std::move(denied));
  }

  using Key = std::tuple<std::string, uint16_t, std::string, std::string, std::string, std::string>;
  std::map<Key, size_t> index_;
  std::map<std::string, size_t, std::less<>> allowed_index_;
  DenialList list_;
};

}  // namespace

Result<DenialList> ReadDenials(const std::string& directory, int64_t from) {
  return ReadDenialsIn(directory + kEvents, from);
}

Result<DenialList> ReadDenialsIn(const std::string& file, int64_t from) {
  Collector collector;
  const auto take = [&](std::string_view line, bool whole) {
    if (whole) {
      collector.TakeLine(line);
    } else {
      collector.Drop();
    }
  };
  TRY(ForEachLine(file, kEventLineBytesMax, kEventFileBytesMax, take, from)
          .Context("reading the events"));
  return collector.Take();
}

int64_t EventBytes(const std::string& directory) {
  struct stat facts = {};
  return ::lstat((directory + kEvents).c_str(), &facts) == 0 ? facts.st_size : 0;
}

}  // namespace report
