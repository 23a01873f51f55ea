// SPDX-License-Identifier: Apache-2.0
// The internals of codec/glob/glob.h: patterns as tokens, and tokens as a state machine.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/glob/glob.h"

namespace codec {

inline constexpr size_t kGlobBytesMax = 4096;
// No token has more than five states for two bytes of pattern ("/**/" with its slashes, a branch
// and its comma), and renaming a delimiter makes three bytes of one.
inline constexpr size_t kGlobStatesMax = 32768;

struct GlobToken {
  enum class Kind : uint8_t {
    kByte,
    kClass,          // One byte of `bytes`.
    kAny,            // One byte, '/' too.
    kAnyRun,         // Any number of bytes, '/' too.
    kComponentByte,  // One byte but '/'.
    kComponentRun,   // Any number of bytes but '/'.
    kPrefix,         // A leading "**/": nothing, "/", or anything up to a '/'.
    kSuffix,         // A trailing "/**": '/' and anything.
    kInfix,          // "/**/": '/', or '/' anything '/'.
    kComponents,     // The crossing dialect's "**/": nothing, or anything up to a '/'.
    kAlternatives,   // One of `branches`.
  };
  Kind kind = Kind::kByte;
  uint8_t byte = 0;
  std::bitset<256> bytes;
  std::vector<std::vector<GlobToken>> branches;
};
using GlobTokens = std::vector<GlobToken>;

// Parses a pattern as globset does (literal_separator, backslash_escape).
Result<GlobTokens> ParseSeparatedGlob(std::string_view pattern);
// Parses as the `glob` crate does.
Result<GlobTokens> ParseCrossingGlob(std::string_view pattern);

// Compiles tokens into the states of `glob`, which must outlive this object.
class GlobProgram {
 public:
  explicit GlobProgram(Glob* glob) : glob_(*glob) {}
  void Compile(const GlobTokens& tokens);

 private:
  // Each gives the state at which what it adds begins, given the state that follows it.
  uint32_t Add(Glob::Op op, uint8_t byte, uint32_t next, uint32_t other);
  uint32_t AddClass(const std::bitset<256>& bytes, uint32_t next);
  uint32_t AddRun(const std::bitset<256>& bytes, uint32_t next);
  uint32_t AddSequence(const GlobTokens& tokens, uint32_t next);
  uint32_t AddToken(const GlobToken& token, uint32_t next);
  uint32_t AddAlternatives(const GlobToken& token, uint32_t next);

  Glob& glob_;
};

}  // namespace codec
