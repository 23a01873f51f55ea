// SPDX-License-Identifier: Apache-2.0
#include "report/model_use.h"

#include <algorithm>

#include "codec/data/json.h"
#include "codec/text/neutral.h"
#include "report/event_lines.h"

namespace report {
namespace {

using codec::Json;

constexpr std::string_view kInference = "{\"class_uid\":6003,";
constexpr std::string_view kFinding = "{\"class_uid\":2004,";
constexpr std::string_view kBudget = "budget.";
constexpr double kMicrosPerDollar = 1e6;
constexpr size_t kWarningsMax = 100;
constexpr size_t kUnpricedMax = 20;

class Sum {
 public:
  void TakeLine(std::string_view line) {
    if (!line.starts_with(kInference) && !line.starts_with(kFinding)) return;
    Result<Json> json = codec::ParseJson(
        line, {.bytes_max = kEventLineBytesMax, .depth_max = 16, .values_max = 5000});
    if (!json.ok()) return;
    if (line.starts_with(kInference)) {
      TakeInference(json.value());
    } else {
      TakeFinding(json.value());
    }
  }

  ModelUse Take() {
    use_.priced_cost_usd = static_cast<double>(micros_) / kMicrosPerDollar;
    if (use_.requests > 0 && use_.unpriced_models.empty()) use_.cost_usd = use_.priced_cost_usd;
    if (answered_) use_.refused_by.clear();
    return std::move(use_);
  }

 private:
  void TakeInference(const Json& event) {
    const Json* counts = event.Find("unmapped");
    if (counts == nullptr) return;
    ++use_.requests;
    const Json* model = event.Find("ai_model");
    const std::string name =
        model != nullptr ? codec::NeutralLine(model->StringAt("name"), 100) : std::string();
    if (use_.model.empty()) use_.model = name;
    use_.last_status = counts->IntegerAt("http_status");
    const bool succeeded = use_.last_status >= 200 && use_.last_status < 300;
    use_.broke_off = succeeded && event.StringAt("status") == "Failure";
    TakeStatus(event, use_.last_status);
    use_.input_tokens += counts->IntegerAt("input_tokens");
    use_.output_tokens += counts->IntegerAt("output_tokens");
    use_.cache_read_tokens += counts->IntegerAt("cache_read_tokens");
    use_.cache_write_tokens += counts->IntegerAt("cache_write_tokens");
    use_.estimated = use_.estimated || counts->IntegerAt("estimated") == 1;
    const Json* cost = counts->Find("cost_micro_usd");
    int64_t used = 0;
    for (const char* kind :
         {"input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"}) {
      used += counts->IntegerAt(kind);
    }
    if (cost == nullptr && used > 0) AddUnpriced(name.empty() ? "(unnamed)" : name);
    if (cost != nullptr) micros_ += cost->integer().value_or(0);
  }

  void AddUnpriced(const std::string& name) {
    std::vector<std::string>& names = use_.unpriced_models;
    if (names.size() >= kUnpricedMax) return;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }

  void TakeStatus(const Json& event, int64_t status) {
    if (status != 401 && status != 403) {
      answered_ = true;
      return;
    }
    const Json* api = event.Find("api");
    const Json* service = api != nullptr ? api->Find("service") : nullptr;
    std::string host = service != nullptr ? service->StringAt("name") : "";
    constexpr std::string_view kScheme = "https://";
    if (host.starts_with(kScheme)) host.erase(0, kScheme.size());
    use_.refused_by = codec::NeutralLine(host, 255);
  }

  void TakeFinding(const Json& event) {
    const Json* info = event.Find("finding_info");
    if (info == nullptr) return;
    std::string uid = info->StringAt("uid");
    if (!uid.starts_with(kBudget)) return;
    if (event.StringAt("status") == "Failure") {
      use_.exhausted = uid.substr(kBudget.size());
    } else if (use_.warnings.size() < kWarningsMax) {
      use_.warnings.push_back(codec::NeutralLine(info->StringAt("title"), 200));
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
