// SPDX-License-Identifier: Apache-2.0
#include "codec/glob/glob_program.h"

namespace codec {
namespace {

std::bitset<256> AllBytes() { return std::bitset<256>().set(); }
std::bitset<256> ComponentBytes() { return AllBytes().reset('/'); }

}  // namespace

void GlobProgram::Compile(const GlobTokens& tokens) {
  uint32_t match = Add(Glob::Op::kMatch, 0, 0, 0);
  // The whole pattern "**" is everything, though as a prefix alone it would end in a slash.
  bool everything = tokens.size() == 1 && tokens[0].kind == GlobToken::Kind::kPrefix;
  glob_.start_ = everything ? AddRun(AllBytes(), match) : AddSequence(tokens, match);
  ENSURE(match == 0 && glob_.states_.size() <= kGlobStatesMax);
  glob_.splits_.assign(glob_.states_.size() / 64 + 1, 0);
  for (size_t i = 0; i < glob_.states_.size(); ++i) {
    if (glob_.states_[i].op != Glob::Op::kSplit) continue;
    glob_.splits_[i / 64] |= uint64_t{1} << (i % 64);
  }
}

uint32_t GlobProgram::Add(Glob::Op op, uint8_t byte, uint32_t next, uint32_t other) {
  glob_.states_.push_back({op, byte, next, other});
  return static_cast<uint32_t>(glob_.states_.size() - 1);
}

uint32_t GlobProgram::AddClass(const std::bitset<256>& bytes, uint32_t next) {
  if (bytes.all()) return Add(Glob::Op::kAny, 0, next, 0);
  glob_.classes_.push_back(bytes);
  return Add(Glob::Op::kClass, 0, next, static_cast<uint32_t>(glob_.classes_.size() - 1));
}

uint32_t GlobProgram::AddRun(const std::bitset<256>& bytes, uint32_t next) {
  uint32_t split = Add(Glob::Op::kSplit, 0, 0, next);
  uint32_t body = AddClass(bytes, split);
  glob_.states_[split].next = body;
  return split;
}

uint32_t GlobProgram::AddSequence(const GlobTokens& tokens, uint32_t next) {
  for (size_t i = tokens.size(); i > 0; --i) next = AddToken(tokens[i - 1], next);
  return next;
}

uint32_t GlobProgram::AddAlternatives(const GlobToken& token, uint32_t next) {
  uint32_t entry = next;
  bool first = true;
  for (const GlobTokens& branch : token.branches) {
    if (branch.empty()) continue;  // globset drops empty alternatives: "{,a}" is "a".
    uint32_t start = AddSequence(branch, next);
    entry = first ? start : Add(Glob::Op::kSplit, 0, start, entry);
    first = false;
  }
  return entry;
}

uint32_t GlobProgram::AddToken(const GlobToken& token, uint32_t next) {
  auto slash = [this](uint32_t following) { return Add(Glob::Op::kByte, '/', following, 0); };
  auto either = [this](uint32_t one, uint32_t two) { return Add(Glob::Op::kSplit, 0, one, two); };
  switch (token.kind) {
    case GlobToken::Kind::kByte:
      return Add(Glob::Op::kByte, token.byte, next, 0);
    case GlobToken::Kind::kClass:
      return AddClass(token.bytes, next);
    case GlobToken::Kind::kAny:
      return AddClass(AllBytes(), next);
    case GlobToken::Kind::kAnyRun:
      return AddRun(AllBytes(), next);
    case GlobToken::Kind::kComponentByte:
      return AddClass(ComponentBytes(), next);
    case GlobToken::Kind::kComponentRun:
      return AddRun(ComponentBytes(), next);
    case GlobToken::Kind::kPrefix:
    case GlobToken::Kind::kComponents:
      return either(next, AddRun(AllBytes(), slash(next)));
    case GlobToken::Kind::kSuffix:
      return slash(AddRun(AllBytes(), next));
    case GlobToken::Kind::kInfix:
      return slash(either(next, AddRun(AllBytes(), slash(next))));
    case GlobToken::Kind::kAlternatives:
      return AddAlternatives(token, next);
  }
  return next;
}

}  // namespace codec
