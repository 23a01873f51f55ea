// SPDX-License-Identifier: Apache-2.0
#include "gateway/budget/price_list.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "codec/data/embedded_file.h"
#include "codec/data/json.h"
#include "codec/data/yaml.h"
#include "gateway/budget/model_api.h"

namespace gateway {

std::span<const codec::EmbeddedFile> EmbeddedPrices();

namespace {

using codec::YamlKind;
using codec::YamlNode;

constexpr double kTokensPerPrice = 1e6;
constexpr double kPriceMax = 1e6;

Result<double> ParsePrice(const YamlNode& node, const std::string& file) {
  double value = 0;
  const char* end = node.text.data() + node.text.size();
  std::from_chars_result parsed = std::from_chars(node.text.data(), end, value);
  bool fits = node.kind == YamlKind::kScalar && parsed.ec == std::errc() && parsed.ptr == end &&
              std::isfinite(value) && value >= 0 && value <= kPriceMax;
  if (!fits) {
    return codec::InvalidAt(file, node.at,
                            "a price must be an amount of US dollars per million tokens", "3.50");
  }
  return value;
}

Result<Price> ParseEntry(const YamlNode& node, const std::string& file) {
  Price price;
  bool cache_read = false;
  bool cache_write = false;
  bool input = false;
  bool output = false;
  if (node.kind != YamlKind::kMapping) {
    return codec::InvalidAt(file, node.at, "a price must be a mapping",
                            "{model: my-model, input: 3, output: 15}");
  }
  for (const codec::YamlEntry& entry : node.entries) {
    if (entry.key == "model") {
      price.model = entry.value.text;
      continue;
    }
    double value = TRY(ParsePrice(entry.value, file));
    if (entry.key == "input") {
      price.input = value;
      input = true;
    } else if (entry.key == "output") {
      price.output = value;
      output = true;
    } else if (entry.key == "cache_read") {
      price.cache_read = value;
      cache_read = true;
    } else if (entry.key == "cache_write") {
      price.cache_write = value;
      cache_write = true;
    } else {
      return codec::InvalidAt(file, entry.at, "unknown key '" + entry.key + "' in a price",
                              "model, input, output, cache_read or cache_write");
    }
  }
  if (price.model.empty() || !input || !output) {
    return codec::InvalidAt(file, node.at, "a price needs 'model', 'input' and 'output'",
                            "{model: my-model, input: 3, output: 15}");
  }
  if (!cache_read) price.cache_read = price.input;
  if (!cache_write) price.cache_write = price.input;
  return price;
}

}  // namespace

Result<PriceList> PriceList::Parse(std::string_view text, const std::string& file) {
  YamlNode root = TRY(codec::ParseYaml(text, file));
  const YamlNode* prices = root.Find("prices");
  if (prices == nullptr || root.entries.size() != 1) {
    return codec::InvalidAt(file, root.at, "a price file must contain only 'prices'");
  }
  return FromYaml(*prices, file);
}

Result<PriceList> PriceList::FromYaml(const YamlNode& list, const std::string& file) {
  if (list.kind != YamlKind::kSequence) {
    return codec::InvalidAt(file, list.at, "'prices' must be a list",
                            "- {model: my-model, input: 3, output: 15}");
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
  for (const codec::EmbeddedFile& file : EmbeddedPrices()) {
    Result<PriceList> parsed = Parse(file.text, std::string(file.path));
    ENSURE(parsed.ok());
    list.Prefer(std::move(parsed).value());
  }
  return list;
}

void PriceList::Prefer(PriceList first) {
  lists_.insert(lists_.begin(), std::make_move_iterator(first.lists_.begin()),
                std::make_move_iterator(first.lists_.end()));
}

const Price* PriceList::Find(std::string_view model) const {
  const std::string_view bare = BareModelName(model);
  const std::string plain = PlainModelName(model);
  if (plain.empty()) return nullptr;
  // How well an entry fits: 0 not at all.
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
