// SPDX-License-Identifier: Apache-2.0
// The pairs of a query string, decoded one by one without allocating.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace codec {

// The longest pair that can be read; more than any head that a gateway accepts.
inline constexpr size_t kQueryPairBytesMax = 65536;

// Returns whether some server takes the value of `key` for that of `wanted`, both decoded: in any
// case, with blanks or brackets in front, with brackets behind ("a[]", "a[x]"), or with an
// underscore for a dot, a blank or a bracket. True for the key itself.
bool MayMeanKey(std::string_view key, std::string_view wanted);

// Walks over a query: pairs, each decoded (%XX and '+'). Empty pieces are skipped.
class QueryReader {
 public:
  // `query` is the raw text behind '?'.
  // `separators` stand between pairs; both texts must outlive the reader.
  explicit QueryReader(std::string_view query, std::string_view separators = "&")
      : rest_(query), separators_(separators) {}

  // Goes to the next pair. False at the end, and when the query is broken: `error` says why.
  bool Next();
  // Valid until the next call of Next.
  std::string_view key() const { return key_; }
  std::string_view value() const { return value_; }
  // Returns what is wrong: a bad escape, no UTF-8, a pair beyond the bound. Empty if nothing is so
  // far.
  std::string_view error() const { return error_; }

 private:
  bool Decode(std::string_view text, size_t* used, std::string_view* out);

  std::string_view rest_;
  std::string_view separators_;
  std::string_view key_;
  std::string_view value_;
  std::string_view error_;
  std::array<char, kQueryPairBytesMax> decoded_;  // Not initialised: most queries need none of it.
};

}  // namespace codec
