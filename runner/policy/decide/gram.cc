// SPDX-License-Identifier: Apache-2.0
#include "policy/decide/gram.h"

#include <algorithm>

#include "codec/glob/glob.h"

namespace policy {

// Each once.
std::vector<uint64_t> GramChoice::GramsOf(std::string_view pattern) const {
  std::vector<uint64_t> grams;
  for (std::string_view text : codec::RequiredTexts(pattern, delimiter_)) {
    bool at_start = text.data() == pattern.data();
    ForEachGram(at_start, text, [&](uint64_t gram) { grams.push_back(gram); });
  }
  std::sort(grams.begin(), grams.end());
  grams.erase(std::unique(grams.begin(), grams.end()), grams.end());
  return grams;
}

void GramChoice::Count(std::string_view pattern, uint64_t key) {
  ++patterns_by_key_[key];
  for (uint64_t gram : GramsOf(pattern)) ++patterns_by_gram_[gram];
}

std::optional<uint64_t> GramChoice::Find(std::string_view pattern, uint64_t key) const {
  size_t fewest = patterns_by_key_.at(key);
  std::optional<uint64_t> rarest;
  for (uint64_t gram : GramsOf(pattern)) {
    size_t count = patterns_by_gram_.at(gram);
    if (count >= fewest) continue;
    fewest = count;
    rarest = gram;
  }
  return rarest;
}

}  // namespace policy
