// SPDX-License-Identifier: Apache-2.0
#include "report/denials.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "codec/data/secret_mask.h"
#include "codec/text/neutral.h"
#include "codec/text/utf8.h"
#include "policy/decide/hosted_decide.h"
#include "policy/model/after_untrusted.h"
#include "record/limits.h"
#include "record/ocsf.h"
#include "report/event_lines.h"

namespace report {
namespace {

constexpr char kEvents[] = "/events.ocsf.jsonl";  // In a report's directory.
constexpr size_t kDenialsMax = 1000;
constexpr size_t kAllowedMax = 1000;
constexpr size_t kFailuresMax = 200;
constexpr size_t kHostBytesMax = 255;
constexpr size_t kPathBytesMax = 4096;
constexpr size_t kMethodBytesMax = 32;
constexpr int64_t kCountMax = 1'000'000'000;  // The count in one line.

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
std::string MethodOf(const record::Event& event) {
  if (event.engine == record::Engine::kDns) return advise::kNameAsked;
  const bool by_protocol = event.engine == record::Engine::kNftables && !event.transport.empty();
  return ShownMethod(by_protocol ? event.transport : event.method);
}

class Collector {
 public:
  void TakeLine(std::string_view line) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    // Most records are of what was allowed, and most of those say what an earlier one said.
    const std::optional<std::string_view> allowed = record::FindAllowed(line);
    if (allowed) {
      if (const auto found = allowed_index_.find(*allowed); found != allowed_index_.end()) {
        return static_cast<void>(++list_.allowed[found->second].count);
      }
      if (list_.allowed.size() >= kAllowedMax) return static_cast<void>(++list_.allowed_dropped);
    }
    const std::optional<record::Record> parsed = record::ParseOcsf(line);
    if (!parsed) return Drop();
    const auto* event = std::get_if<record::Event>(&*parsed);
    if (event == nullptr) return;
    if (allowed) return TakeAllowed(*event, *allowed);
    if (event->outcome == record::Event::Outcome::kFailed) AddFailure(*event);
    if (event->outcome == record::Event::Outcome::kDenied) TakeDenied(*event);
  }
  void Drop() { ++list_.dropped; }
  DenialList Take() {
    // No line beside a deny rule helps, and in a narrowed run what is missing may be there.
    std::vector<DeniedRequest*> open;
    std::vector<advise::Denial> denials;
    for (DeniedRequest& denied : list_.denials) {
      bool helps = denied.by_policy && denied.deny_rule.empty() && !IsMasked(denied.denial.host) &&
                   denied.reason.find(policy::kNarrowedReason) == std::string::npos;
      if (!helps) continue;
      open.push_back(&denied);
      denials.push_back(denied.denial);
    }
    std::vector<std::string> lines = advise::SuggestLines(denials);
    for (size_t i = 0; i < open.size(); ++i) open[i]->allow_line = std::move(lines[i]);
    return std::move(list_);
  }

 private:
  void TakeDenied(const record::Event& event) {
    advise::Denial denial{.host = event.host,
                          .port = event.port,
                          .method = MethodOf(event),
                          .path = event.path,
                          .binary = ShownBinary(event.binary),
                          .protocol = event.protocol,
                          .operations = event.operations,
                          .ancestors = event.ancestors};
    const bool portless = denial.port == 0 && denial.method == "ICMP";
    if (!IsSane(denial) || (denial.port == 0 && !portless)) return Drop();
    if (record::IsSpent(event)) return;
    DeniedRequest denied;
    denied.denial = std::move(denial);
    denied.reason = codec::CutUtf8(event.reason, 300);
    if (event.by_deny_rule) denied.deny_rule = codec::CutUtf8(event.position, 300);
    denied.by_policy = record::IsByPolicy(event);
    denied.count = std::clamp<int64_t>(event.count, 1, kCountMax);
    Add(std::move(denied), event.count > 0);
  }

  void TakeAllowed(const record::Event& event, std::string_view same) {
    AllowedRequest allowed;
    allowed.host = event.host;
    allowed.port = event.port;
    allowed.method = MethodOf(event);
    if (event.engine == record::Engine::kDns) return;  // The connection that follows says more.
    allowed.path = codec::NeutralLine(event.path, kPathBytesMax);
    for (const policy::Operation& one : event.operations) {
      if (event.protocol != policy::kHostedProtocol) break;
      allowed.hosted += (allowed.hosted.empty() ? "" : ", ") + OperationText(one);
    }
    allowed.hosted = codec::NeutralLine(allowed.hosted, kPathBytesMax);
    allowed.binary = ShownBinary(event.binary);
    if (allowed.host.empty() || allowed.host.size() > kHostBytesMax || !IsHost(allowed.host))
      return;
    allowed_index_.emplace(same, list_.allowed.size());
    list_.allowed.push_back(std::move(allowed));
  }

  void AddFailure(const record::Event& event) {
    FailedConnection failed{
        .host = event.host, .port = event.port, .reason = codec::CutUtf8(event.reason, 300)};
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

Result<DenialList> ReadDenials(const std::string& directory, int64_t from, size_t bytes_max) {
  DenialList list = TRY(ReadDenialsIn(directory + kEvents, from, bytes_max));
  if (EventBytes(directory) - from > static_cast<int64_t>(bytes_max)) ++list.dropped;
  return list;
}

Result<DenialList> ReadDenialsIn(const std::string& file, int64_t from, size_t bytes_max) {
  Collector collector;
  const auto take = [&](std::string_view line, bool whole) {
    if (whole) {
      collector.TakeLine(line);
    } else {
      collector.Drop();
    }
  };
  TRY(ForEachLine(file, record::kRecordLineBytesMax, bytes_max, take, from)
          .Context("reading the events"));
  return collector.Take();
}

int64_t EventBytes(const std::string& directory) {
  struct stat facts = {};
  return ::lstat((directory + kEvents).c_str(), &facts) == 0 ? facts.st_size : 0;
}

}  // namespace report
