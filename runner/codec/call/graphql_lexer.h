// SPDX-License-Identifier: Apache-2.0
// The lexical tokens of a GraphQL document (specification of October 2021, section 2.1).
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace codec {

struct GraphqlToken {
  enum Kind { kEnd, kPunctuator, kName, kNumber, kString };
  Kind kind = kEnd;
  std::string_view text;  // The token as written; part of the document.
  size_t at = 0;          // Its first byte.
};

// Gives one token after the other. Byte order marks, commas, comments and white space are passed
// over. Strict: a number runs into no name, a string holds no control character and no escape but
// the specification's.
class GraphqlLexer {
 public:
  // Borrows the document, which is valid UTF-8.
  explicit GraphqlLexer(std::string_view document, size_t tokens_max)
      : document_(document), tokens_left_(tokens_max) {}

  // Fails with kInvalid and where: "3:7: unexpected character".
  Result<GraphqlToken> Next();
  // Returns an error at a byte of the document.
  Error Fault(size_t at, std::string_view what) const;

 private:
  void SkipIgnored();
  Result<size_t> NumberEnd() const;
  Result<size_t> StringEnd() const;
  Result<size_t> BlockStringEnd() const;
  char At(size_t at) const { return at < document_.size() ? document_[at] : '\0'; }

  std::string_view document_;
  size_t at_ = 0;
  size_t tokens_left_;
};

}  // namespace codec
