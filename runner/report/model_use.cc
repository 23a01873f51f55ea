// SPDX-License-Identifier: Apache-2.0
#include "report/model_use.h"

#include "codec/json.h"
#include "codec/neutral.h"
#include "report/event_lines.h"

namespace report {
namespace {

using codec::Json;

constexpr std::string_view kInference = "{\"class_uid\":6003,";
constexpr std::string_view kFinding = "{\"class_uid\":2004,";
constexpr std::string_view kBudget = "budget.";
constexpr double kMicrosPerDollar = 1e6;
constexpr size_t kWarningsMax = 100;

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
    if (use_.requests > 0 && priced_)
      use_.cost_usd = static_cast<double>(micros_) / kMicrosPerDollar;
    return std::move(use_);
  }

 private:
  void TakeInference(const Json& event) {
    const Json* counts = event.Find("unmapped");
    if (counts == nullptr) return;
    ++use_.requests;
    const Json* model = event.Find("ai_model");
    if (use_.model.empty() && model != nullptr) {
      use_.model = codec::NeutralLine(model->StringAt("name"), 100);
    }
    use_.input_tokens += counts->IntegerAt("input_tokens");
    use_.output_tokens += counts->IntegerAt("output_tokens");
    use_.cache_read_tokens += counts->IntegerAt("cache_read_tokens");
    use_.cache_write_tokens += counts->IntegerAt("cache_write_tokens");
    use_.estimated = use_.estimated || counts->IntegerAt("estimated") == 1;
    const Json* cost = counts->Find("cost_micro_usd");
    bool used = counts->IntegerAt("input_tokens") + counts->IntegerAt("output_tokens") > 0;
    if (cost == nullptr && used) priced_ = false;
    if (cost != nullptr) micros_ += cost->integer().value_or(0);
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
  bool priced_ = true;
  int64_t micros_ = 0;
};

}  // namespace

ModelUse ParseModelUse(std::string_view jsonl) {
  Sum sum;
  while (!jsonl.empty()) {
    size_t end = jsonl.find('\n');
    sum.TakeLine(jsonl.substr(0, end));
    jsonl.remove_prefix(end == std::string_view::npos ? jsonl.size() : end + 1);
  }
  return sum.Take();
}

Result<ModelUse> ReadModelUse(const std::string& directory) {
  Sum sum;
  TRY(ForEachEventLine(directory, [&](std::string_view line, bool) { sum.TakeLine(line); }));
  return sum.Take();
}

}  // namespace report
