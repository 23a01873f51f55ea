// SPDX-License-Identifier: Apache-2.0
#include "report/host_groups.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "report/wording.h"

namespace report {
namespace {

constexpr size_t kNumberedMin = 3;
constexpr size_t kSiblingsMin = 5;
constexpr size_t kProgramsMax = 8;

std::string HostAt(const std::string& host, int port) {
  return port > 0 ? host + ":" + std::to_string(port) : host;
}

std::string RequestText(const advise::Denial& denial) {
  if (denial.method.empty()) return "connect";
  std::string out = denial.method + (denial.path.empty() ? "" : " ") + denial.path;
  for (const policy::Operation& one : denial.operations) {
    out += (&one == &denial.operations.front() ? ": " : ", ") + policy::OperationText(one);
  }
  return out;
}

class Hosts {
 public:
  void Add(const std::string& at, HostRequest request) {
    const auto [found, is_new] = index_.emplace(at, groups_.size());
    if (is_new) groups_.push_back({at, {at}, 0, 0, 0, {}, {}});
    HostGroup& group = groups_[found->second];
    const int64_t count = std::clamp<int64_t>(request.count, 0, int64_t{1} << 40);
    if (request.answer == HostRequest::Answer::kRefused) group.refused += count;
    if (request.answer == HostRequest::Answer::kFailed) group.failed += count;
    if (request.answer == HostRequest::Answer::kAllowed) group.allowed += count;
    const bool known = std::find(group.programs.begin(), group.programs.end(), request.binary) !=
                       group.programs.end();
    if (!known && !request.binary.empty() && group.programs.size() < kProgramsMax) {
      group.programs.push_back(request.binary);
    }
    group.requests.push_back(std::move(request));
  }
  std::vector<HostGroup> Take() { return std::move(groups_); }

 private:
  std::map<std::string, size_t> index_;
  std::vector<HostGroup> groups_;
};

// The pieces of a text: runs of digits, and what is between them.
std::vector<std::string> SplitNumbers(const std::string& text) {
  std::vector<std::string> pieces;
  for (char c : text) {
    const bool digit = ascii::IsDigit(c);
    if (pieces.empty() || ascii::IsDigit(pieces.back().back()) != digit) pieces.emplace_back();
    pieces.back() += c;
  }
  return pieces;
}

bool IsAddress(const std::string& at) {
  return std::none_of(at.begin(), at.end(), [](char c) { return ascii::IsAlpha(c); });
}

// Returns what names have in common that differ only in numbers. In an address only the last number
// and the port may differ: others are of other networks.
std::string WithoutNumbers(const std::string& at) {
  size_t from = 0;
  if (IsAddress(at)) from = std::min(at.rfind('.'), at.size());
  std::string out = at.substr(0, from);
  const std::vector<std::string> pieces = SplitNumbers(at.substr(from));
  for (const std::string& piece : pieces) out += ascii::IsNumber(piece) ? "#" : piece;
  return out + " " + std::to_string(SplitNumbers(at).size());
}

// "example.com:443" of "a.example.com:443"; empty if that is not below another domain.
std::string ParentOf(const std::string& at) {
  const size_t dot = IsAddress(at) ? std::string::npos : at.find('.');
  if (dot == std::string::npos || at.find('.', dot + 1) == std::string::npos) return {};
  return at.substr(dot + 1);
}

std::optional<uint64_t> Number(const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "h{1…45}.example.com:443" of names that differ only in numbers.
std::string NameOfNumbered(const std::vector<std::string>& hosts) {
  std::vector<std::vector<std::string>> split;
  for (const std::string& host : hosts) split.push_back(SplitNumbers(host));
  const std::vector<std::string>& first = split.front();
  std::string name;
  for (size_t i = 0; i < first.size(); ++i) {
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    bool same = true;
    bool numbers = true;
    for (const std::vector<std::string>& pieces : split) {
      const std::string& piece = pieces[i];
      same = same && piece == first[i];
      const std::optional<uint64_t> number = Number(piece);
      numbers = numbers && number.has_value();
      low = std::min(low, number.value_or(low));
      high = std::max(high, number.value_or(high));
    }
    if (same) {
      name += first[i];
    } else {
      name += numbers ? "{" + std::to_string(low) + "…" + std::to_string(high) + "}" : "{…}";
    }
  }
  return name;
}

// Joins the groups whose hosts have the same key, where there are enough of them.
void Fold(size_t hosts_min, std::string (*key_of)(const std::string&),
          std::string (*name_of)(const std::vector<std::string>&), std::vector<HostGroup>* groups) {
  std::map<std::string, std::vector<size_t>> alike;
  for (size_t i = 0; i < groups->size(); ++i) {
    const HostGroup& group = (*groups)[i];
    const bool only_refused = group.allowed == 0 && group.failed == 0 && group.hosts.size() == 1;
    const std::string key = only_refused ? key_of(group.name) : "";
    if (!key.empty()) alike[key].push_back(i);
  }
  std::set<size_t> joined;
  for (const auto& [key, members] : alike) {
    if (members.size() < hosts_min) continue;
    HostGroup& into = (*groups)[members.front()];
    for (size_t i = 1; i < members.size(); ++i) {
      HostGroup& from = (*groups)[members[i]];
      into.hosts.push_back(from.name);
      into.refused += from.refused;
      for (std::string& program : from.programs) {
        const bool known =
            std::find(into.programs.begin(), into.programs.end(), program) != into.programs.end();
        if (!known && into.programs.size() < kProgramsMax) {
          into.programs.push_back(std::move(program));
        }
      }
      joined.insert(members[i]);
    }
    into.name = name_of(into.hosts);
  }
  std::vector<HostGroup> left;
  for (size_t i = 0; i < groups->size(); ++i) {
    if (joined.count(i) == 0) left.push_back(std::move((*groups)[i]));
  }
  *groups = std::move(left);
}

int Rank(const HostGroup& group) { return group.refused > 0 ? 0 : group.failed > 0 ? 1 : 2; }

}  // namespace

std::vector<HostGroup> GroupHosts(const RunRecord& record,
                                  const std::vector<AllowedRequest>& allowed) {
  Hosts hosts;
  for (const DeniedRequest& denied : record.denials) {
    hosts.Add(HostAt(denied.denial.host, denied.denial.port),
              {HostRequest::Answer::kRefused, RequestText(denied.denial), denied.denial.binary,
               DescribeRefusal(denied), denied.count});
  }
  for (const FailedConnection& failed : record.failures) {
    hosts.Add(HostAt(failed.host, failed.port),
              {HostRequest::Answer::kFailed, "connect", "", failed.reason, failed.count});
  }
  for (const AllowedRequest& one : allowed) {
    std::string text =
        one.method.empty() ? "connect" : one.method + (one.path.empty() ? "" : " ") + one.path;
    if (!one.hosted.empty()) text += ": " + one.hosted;
    hosts.Add(HostAt(one.host, one.port),
              {HostRequest::Answer::kAllowed, text, one.binary, "", one.count});
  }
  std::vector<HostGroup> groups = hosts.Take();
  Fold(kNumberedMin, WithoutNumbers, NameOfNumbered, &groups);
  Fold(
      kSiblingsMin, ParentOf,
      [](const std::vector<std::string>& alike) {
        return "{" + Plural(static_cast<int64_t>(alike.size()), "name") + "}." +
               ParentOf(alike.front());
      },
      &groups);
  std::stable_sort(groups.begin(), groups.end(),
                   [](const HostGroup& a, const HostGroup& b) { return Rank(a) < Rank(b); });
  return groups;
}

std::vector<DeniedRequest> DenialsToAdvise(const RunRecord& record) {
  std::set<std::string> folded;
  for (const HostGroup& group : GroupHosts(record, {})) {
    if (group.hosts.size() > 1) folded.insert(group.hosts.begin(), group.hosts.end());
  }
  std::vector<DeniedRequest> denials;
  for (const DeniedRequest& denied : record.denials) {
    if (folded.count(HostAt(denied.denial.host, denied.denial.port)) == 0)
      denials.push_back(denied);
  }
  return denials;
}

}  // namespace report
