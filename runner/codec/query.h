// SPDX-License-Identifier: Apache-2.0
// The pairs of a query string, decoded one by one without allocating.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace codec {

// The longest pair that can be read; more than any head that a gateway accepts.
inline constexpr size_t kQueryPairBytesMax = 65536;

// Walks over a query: pairs between '&', each decoded (%XX and '+'). Empty pieces are skipped.
class QueryReader {
 public:
  // `query` is the raw text behind '?'; it must outlive the reader.
  explicit QueryReader(std::string_view query) : rest_(query) {}

  // The next pair. False at the end, and when the query is broken: `error` says why.
  bool Next();
  // Valid until the next call of Next.
  std::string_view key() const { return key_; }
  std::string_view value() const { return value_; }
  // What is wrong: a bad escape, no UTF-8, a pair beyond the bound. Empty: nothing so far.
  std::string_view error() const { return error_; }

 private:
  bool Decode(std::string_view text, size_t* used, std::string_view* out);

  std::string_view rest_;
  std::string_view key_;
  std::string_view value_;
  std::string_view error_;
  std::array<char, kQueryPairBytesMax> decoded_;  // Not initialised: most queries need none of it.
};

}  // namespace codec
