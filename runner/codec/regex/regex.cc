// SPDX-License-Identifier: Apache-2.0
#include "codec/regex/regex.h"

#include <utility>

namespace codec {
namespace {

bool IsWord(std::string_view text, size_t at) {
  if (at >= text.size()) return false;
  char c = text[at];
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

}  // namespace

// The states that a byte leads to, each once.
class Regex::Threads {
 public:
  Threads(const Regex& regex, std::string_view text)
      : regex_(regex), text_(text), seen_(regex.states_.size(), 0) {}

  // Adds `state` and what it leads to without a byte, at `at`. Returns true if that is a match.
  bool Add(uint32_t state, size_t at) {
    stack_.push_back(state);
    bool matched = false;
    while (!stack_.empty()) {
      uint32_t one = stack_.back();
      stack_.pop_back();
      if (seen_[one] == round_) continue;
      seen_[one] = round_;
      const State& here = regex_.states_[one];
      if (here.op == Op::kMatch) matched = true;
      if (here.op == Op::kSet) {
        sets.push_back(one);
      } else if (here.op == Op::kSplit) {
        stack_.push_back(here.other);
        stack_.push_back(here.next);
      } else if (here.op != Op::kMatch && regex_.Holds(here.op, text_, at)) {
        stack_.push_back(here.next);
      }
    }
    return matched;
  }
  void Begin() {
    ++round_;
    sets.clear();
  }

  std::vector<uint32_t> sets;  // The states that wait for a byte.

 private:
  const Regex& regex_;
  std::string_view text_;
  std::vector<size_t> seen_;
  size_t round_ = 0;
  std::vector<uint32_t> stack_;
};

bool Regex::Holds(Op op, std::string_view text, size_t at) const {
  bool edge = (at > 0 && IsWord(text, at - 1)) != IsWord(text, at);
  switch (op) {
    case Op::kBegin:
      return at == 0;
    case Op::kEnd:  // As in Python, also before a line end that is the last byte.
      return at == text.size() || (at + 1 == text.size() && text[at] == '\n');
    case Op::kWordEdge:
      return edge;
    case Op::kNoWordEdge:
      return !edge;
    case Op::kSet:
    case Op::kSplit:
    case Op::kMatch:
      break;
  }
  return false;
}

bool Regex::Search(std::string_view text) const {
  if (states_.empty()) return false;
  Threads first(*this, text);
  Threads second(*this, text);
  Threads* now = &first;
  Threads* then = &second;
  now->Begin();
  for (size_t at = 0;; ++at) {
    if (now->Add(start_, at)) return true;
    if (at == text.size()) return false;
    then->Begin();
    size_t byte = static_cast<unsigned char>(text[at]);
    for (uint32_t state : now->sets) {
      if (!sets_[states_[state].other].test(byte)) continue;
      if (then->Add(states_[state].next, at + 1)) return true;
    }
    std::swap(now, then);
  }
}

}  // namespace codec
