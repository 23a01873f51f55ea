// SPDX-License-Identifier: Apache-2.0
#include "report/model_use.h"

#include <algorithm>
#include <ctime>

#include "codec/data/json.h"
#include "codec/text/neutral.h"
#include "record/ocsf.h"
#include "report/event_lines.h"

namespace report {
namespace {

using record::Notice;

constexpr std::string_view kBudget = "budget.";
constexpr double kMicrosPerDollar = 1e6;
constexpr size_t kWarningsMax = 100;
constexpr size_t kUnpricedMax = 20;

class Sum {
 public:
  void TakeLine(std::string_view line) {
    if (!record::MayBeNotice(line)) return;
    const std::optional<record::Record> parsed = record::ParseOcsf(line);
    const Notice* notice = parsed ? std::get_if<Notice>(&*parsed) : nullptr;
    if (notice == nullptr) return;
    if (notice->kind == Notice::Kind::kInference) TakeInference(*notice);
    if (notice->kind == Notice::Kind::kFinding) TakeFinding(*notice);
    if (notice->type == record::kNarrowedType) TakeNarrowed(*notice, line);
  }

  ModelUse Take() {
    use_.priced_cost_usd = static_cast<double>(micros_) / kMicrosPerDollar;
    if (use_.requests > 0 && use_.unpriced_models.empty()) use_.cost_usd = use_.priced_cost_usd;
    if (answered_) use_.refused_by.clear();
    return std::move(use_);
  }

 private:
  void TakeInference(const Notice& notice) {
    if (notice.counts.empty()) return;
    ++use_.requests;
    const std::string name = codec::NeutralLine(notice.model, 100);
    if (use_.model.empty()) use_.model = name;
    use_.last_status = notice.CountAt("http_status").value_or(0);
    const bool succeeded = use_.last_status >= 200 && use_.last_status < 300;
    use_.broke_off = succeeded && !notice.succeeded;
    TakeStatus(notice, use_.last_status);
    int64_t used = 0;
    const auto add = [&](const char* kind, int64_t* sum) {
      const int64_t tokens = notice.CountAt(kind).value_or(0);
      used += tokens;
      *sum += tokens;
    };
    add("input_tokens", &use_.input_tokens);
    add("output_tokens", &use_.output_tokens);
    add("cache_read_tokens", &use_.cache_read_tokens);
    add("cache_write_tokens", &use_.cache_write_tokens);
    use_.estimated = use_.estimated || notice.CountAt("estimated") == 1;
    const std::optional<int64_t> cost = notice.CountAt("cost_micro_usd");
    if (!cost && used > 0) AddUnpriced(name.empty() ? "(unnamed)" : name);
    micros_ += cost.value_or(0);
  }

  void AddUnpriced(const std::string& name) {
    std::vector<std::string>& names = use_.unpriced_models;
    if (names.size() >= kUnpricedMax) return;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }

  void TakeStatus(const Notice& notice, int64_t status) {
    if (status != 401 && status != 403) {
      answered_ = true;
      return;
    }
    std::string host = notice.provider;
    constexpr std::string_view kScheme = "https://";
    if (host.starts_with(kScheme)) host.erase(0, kScheme.size());
    use_.refused_by = codec::NeutralLine(host, 255);
  }

  void TakeNarrowed(const Notice& notice, std::string_view line) {
    const Result<codec::Json> json = codec::ParseJson(line);
    const time_t at = json.ok() ? json.value().IntegerAt("time") / 1000 : 0;
    tm utc{};
    char time[32] = "";
    if (::gmtime_r(&at, &utc) != nullptr) std::strftime(time, sizeof time, "%H:%M:%S UTC", &utc);
    use_.narrowed = codec::NeutralLine(std::string(time) + ": " + notice.title, 600);
  }

  void TakeFinding(const Notice& notice) {
    if (!notice.type.starts_with(kBudget)) return;
    if (!notice.succeeded) {
      use_.exhausted = notice.type.substr(kBudget.size());
    } else if (use_.warnings.size() < kWarningsMax) {
      use_.warnings.push_back(codec::NeutralLine(notice.title, 200));
    }
  }

  ModelUse use_;
  // True if some model answered with anything but a refusal of the credential.
  bool answered_ = false;
  int64_t micros_ = 0;
};

}  // namespace

Result<ModelUse> ReadModelUse(const std::string& directory) {
  Sum sum;
  TRY(ForEachEventLine(directory, [&](std::string_view line, bool) { sum.TakeLine(line); }));
  return sum.Take();
}

}  // namespace report
