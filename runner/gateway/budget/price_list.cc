// SPDX-License-Identifier: Apache-2.0
#include "gateway/budget/price_list.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "codec/data/embedded_file.h"
#include "codec/data/json.h"
#include "codec/data/yaml_fields.h"
#include "gateway/budget/model_api.h"

namespace gateway {

std::span<const codec::EmbeddedFile> EmbeddedPrices();

namespace {

using codec::YamlFields;
using codec::YamlKind;
using codec::YamlNode;

constexpr double kTokensPerPrice = 1e6;
constexpr double kPriceMax = 1e6;

constexpr std::string_view kExample = "{model: my-model, input: 3, output: 15}";

Result<std::optional<double>> ParsePrice(const YamlFields& fields, std::string_view key) {
  const YamlNode* node = fields.Find(key);
  if (node == nullptr) return std::optional<double>();
  double value = 0;
  const char* end = node->text.data() + node->text.size();
  std::from_chars_result parsed = std::from_chars(node->text.data(), end, value);
  bool fits = node->kind == YamlKind::kScalar && parsed.ec == std::errc() && parsed.ptr == end &&
              std::isfinite(value) && value >= 0 && value <= kPriceMax;
  if (fits) return std::optional<double>(value);
  return fields.Invalid(key, "a price must be an amount of US dollars per million tokens", "3.50");
}

Result<Price> ParseEntry(const YamlNode& node, const std::string& file) {
  YamlFields fields = TRY(YamlFields::Open(
      file, node, "a price", {"model", "input", "output", "cache_read", "cache_write"}));
  Price price;
  price.model = TRY(fields.Text("model"));
  std::optional<double> input = TRY(ParsePrice(fields, "input"));
  std::optional<double> output = TRY(ParsePrice(fields, "output"));
  std::optional<double> cache_read = TRY(ParsePrice(fields, "cache_read"));
  std::optional<double> cache_write = TRY(ParsePrice(fields, "cache_write"));
  if (price.model.empty() || !input || !output) {
    return codec::InvalidAt(file, node.at, "a price needs 'model', 'input' and 'output'", kExample);
  }
  price.input = *input;
  price.output = *output;
  price.cache_read = cache_read.value_or(price.input);
  price.cache_write = cache_write.value_or(price.input);
  return price;
}

}  // namespace

Result<PriceList> PriceList::Parse(std::string_view text, const std::string& file) {
  YamlNode root = TRY(codec::ParseYaml(text, file));
  YamlFields fields = TRY(YamlFields::Open(file, root, "a price file", {"prices"}));
  const YamlNode* prices = fields.Find("prices");
  if (prices == nullptr) return fields.Invalid("prices", "'prices' is missing");
  return FromYaml(*prices, file);
}

Result<PriceList> PriceList::FromYaml(const YamlNode& list, const std::string& file) {
  if (list.kind != YamlKind::kSequence) {
    return codec::InvalidAt(file, list.at,
                            "'prices' must be a list, not " + std::string(DescribeKind(list)),
                            "- " + std::string(kExample));
  }
  std::vector<Price> entries;
  for (const YamlNode& item : list.items) {
    Price price = TRY(ParseEntry(item, file));
    entries.push_back(std::move(price));
  }
  PriceList prices;
  prices.lists_.push_back(std::move(entries));
  return prices;
}

PriceList PriceList::BuiltIn() {
  PriceList list;
  list.built_in_unread_ = true;
  return list;
}

void PriceList::ReadBuiltIn() const {
  if (!std::exchange(built_in_unread_, false)) return;
  for (const codec::EmbeddedFile& file : EmbeddedPrices()) {
    Result<PriceList> parsed = Parse(file.text, std::string(file.path));
    ENSURE(parsed.ok());
    for (std::vector<Price>& list : parsed.value().lists_) lists_.push_back(std::move(list));
  }
}

void PriceList::Prefer(PriceList first) {
  lists_.insert(lists_.begin(), std::make_move_iterator(first.lists_.begin()),
                std::make_move_iterator(first.lists_.end()));
}

const Price* PriceList::Find(std::string_view model) const {
  const std::string_view bare = BareModelName(model);
  const std::string plain = PlainModelName(model);
  if (plain.empty()) return nullptr;
  ReadBuiltIn();
  // Returns how well an entry fits: 0 not at all.
  auto fit = [&](std::string_view name) -> size_t {
    if (name == bare || name == model) return SIZE_MAX;
    if (name == plain) return SIZE_MAX - 1;
    if (!name.ends_with('*')) return 0;
    name.remove_suffix(1);
    return bare.starts_with(name) ? name.size() + 1 : 0;
  };
  for (const std::vector<Price>& list : lists_) {
    const Price* best = nullptr;
    size_t best_fit = 0;
    for (const Price& price : list) {
      const size_t fits = fit(price.model);
      if (fits <= best_fit) continue;
      best = &price;
      best_fit = fits;
    }
    if (best != nullptr) return best;
  }
  return nullptr;
}

std::string PriceLine(std::string_view model) {
  // Quoted: a name from a request may hold anything.
  return "prices: [{model: " + codec::RenderJsonLine(codec::Json(PlainModelName(model))) +
         ", input: DOLLARS, output: DOLLARS}]";
}

double CostOf(const Price& price, const TokenUsage& usage) {
  auto part = [](double dollars, int64_t tokens) {
    return dollars * static_cast<double>(tokens) / kTokensPerPrice;
  };
  return part(price.input, usage.input) + part(price.output, usage.output) +
         part(price.cache_read, usage.cache_read) + part(price.cache_write, usage.cache_write);
}

}  // namespace gateway
