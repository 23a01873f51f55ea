// SPDX-License-Identifier: Apache-2.0
// A pattern is parsed by recursive descent into nodes, and written out as states from its end to
// its beginning, so that each state knows what follows it.
#include <algorithm>
#include <optional>
#include <utility>

#include "codec/regex/regex.h"

namespace codec {
namespace {

constexpr size_t kPatternBytesMax = 4096;
constexpr size_t kStatesMax = 20000;
constexpr int kDepthMax = 100;
constexpr int kRepeatMax = 1000;

}  // namespace

class RegexCompiler {
 public:
  explicit RegexCompiler(std::string_view pattern) : pattern_(pattern) {}

  Result<Regex> Compile() {
    if (pattern_.size() > kPatternBytesMax) return Wrong("longer than 4096 bytes");
    TakeFlags();
    Node whole = TRY(ParseAlternation(0));
    if (at_ < pattern_.size()) return Wrong("unbalanced ')'");
    uint32_t match = Add({Op::kMatch, 0, 0});
    regex_.start_ = Write(whole, match);
    if (full_) return Wrong("too large when its repetitions are written out");
    return std::move(regex_);
  }

 private:
  using Op = Regex::Op;
  using Set = std::bitset<256>;
  struct Node {
    enum Kind { kEmpty, kSet, kAssert, kSequence, kEither, kRepeat } kind = kEmpty;
    Set set = {};
    Op op = Op::kBegin;
    int least = 0;
    int most = 0;  // -1 if there is no bound.
    std::vector<Node> parts = {};
  };

  Error Wrong(std::string_view what) const {
    return Error{Code::kInvalid, std::string(what) + " (at byte " + std::to_string(at_ + 1) +
                                     " of the regular expression)"};
  }
  bool Ahead(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool Take(std::string_view text) {
    if (!Ahead(text)) return false;
    at_ += text.size();
    return true;
  }

  // Takes flags such as "(?i)" in front of everything.
  void TakeFlags() {
    size_t end = pattern_.find(')');
    if (!Ahead("(?") || end == std::string_view::npos) return;
    std::string_view flags = pattern_.substr(2, end - 2);
    if (flags.empty() || flags.find_first_not_of("is") != std::string_view::npos) return;
    fold_ = flags.find('i') != std::string_view::npos;
    dot_all_ = flags.find('s') != std::string_view::npos;
    at_ = end + 1;
  }

  Result<Node> ParseAlternation(int depth) {
    if (depth > kDepthMax) return Wrong("groups nested too deeply");
    Node either{.kind = Node::kEither};
    do {
      Node branch = TRY(ParseSequence(depth));
      either.parts.push_back(std::move(branch));
    } while (Take("|"));
    if (either.parts.size() == 1) return std::move(either.parts[0]);
    return either;
  }

  Result<Node> ParseSequence(int depth) {
    Node sequence{.kind = Node::kSequence};
    while (at_ < pattern_.size() && !Ahead("|") && !Ahead(")")) {
      Node atom = TRY(ParseAtom(depth));
      Node repeated = TRY(ParseRepeats(std::move(atom)));
      sequence.parts.push_back(std::move(repeated));
    }
    return sequence;
  }

  Result<Node> ParseRepeats(Node atom) {
    bool repeated = false;
    for (;;) {
      int least = 0;
      int most = -1;
      if (Take("?")) {
        most = 1;
      } else if (Take("+")) {
        least = 1;
      } else if (!Take("*")) {
        std::optional<std::pair<int, int>> bounds = TakeBounds();
        if (!bounds) return atom;
        least = bounds->first;
        most = bounds->second;
        if (least > kRepeatMax || most > kRepeatMax) return Wrong("more than 1000 repetitions");
        if (most >= 0 && most < least) return Wrong("bounds of a repetition in the wrong order");
      }
      if (repeated) return Wrong("a repetition of a repetition");
      repeated = true;
      if (atom.kind == Node::kAssert) return Wrong("nothing to repeat");
      (void)Take("?");  // It does not matter here which of several matches it prefers.
      Node repeat{.kind = Node::kRepeat};
      repeat.least = least;
      repeat.most = most;
      repeat.parts.push_back(std::move(atom));
      atom = std::move(repeat);
    }
  }

  // "{2}", "{2,}", "{,3}", "{2,3}"; anything else in braces stands for itself, as in Python.
  std::optional<std::pair<int, int>> TakeBounds() {
    if (!Ahead("{")) return std::nullopt;
    size_t end = pattern_.find('}', at_);
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view inside = pattern_.substr(at_ + 1, end - at_ - 1);
    size_t comma = inside.find(',');
    std::string_view low = inside.substr(0, comma);
    std::optional<int> least = Number(low);
    std::optional<int> most = least;
    if (comma != std::string_view::npos) {
      std::string_view high = inside.substr(comma + 1);
      if (low.empty()) least = 0;
      most = high.empty() ? std::optional(-1) : Number(high);
    }
    if (inside.size() < 1 || inside == "," || !least || !most) return std::nullopt;
    at_ = end + 1;
    return std::pair(*least, *most);
  }
  static std::optional<int> Number(std::string_view digits) {
    if (digits.empty() || digits.size() > 6) return std::nullopt;
    int number = 0;
    for (char c : digits) {
      if (c < '0' || c > '9') return std::nullopt;
      number = number * 10 + (c - '0');
    }
    return number;
  }

  Result<Node> ParseAtom(int depth) {
    if (Take("^")) return Assertion(Op::kBegin);
    if (Take("$")) return Assertion(Op::kEnd);
    if (Ahead("*") || Ahead("+") || Ahead("?")) return Wrong("nothing to repeat");
    if (Take("(")) {
      if (Ahead("?") && !Take("?:")) {
        size_t name_end = pattern_.find('>', at_);
        if (!Ahead("?P<") || name_end == std::string_view::npos) {
          return Wrong("only plain, named and (?:...) groups are possible in linear time");
        }
        at_ = name_end + 1;
      }
      Node inside = TRY(ParseAlternation(depth + 1));
      if (!Take(")")) return Wrong("a group that is not closed");
      return inside;
    }
    if (Take("[")) return ParseClass();
    Node node{.kind = Node::kSet};
    if (Take(".")) {
      node.set.set();
      if (!dot_all_) node.set.reset('\n');
    } else if (Take("\\")) {
      if (Take("b")) return Assertion(Op::kWordEdge);
      if (Take("B")) return Assertion(Op::kNoWordEdge);
      if (Take("A")) return Assertion(Op::kBegin);
      if (Ahead("Z")) return Wrong("'\\Z' is not supported; '$' is");
      node.set = TRY(ParseEscape());
    } else {
      node.set = Literal(pattern_[at_++]);
    }
    return node;
  }

  static Node Assertion(Op op) {
    Node node{.kind = Node::kAssert};
    node.op = op;
    return node;
  }

  Set Literal(char c) const {
    Set set;
    set.set(static_cast<unsigned char>(c));
    if (fold_ && c >= 'a' && c <= 'z') set.set(static_cast<size_t>(c - 'a' + 'A'));
    if (fold_ && c >= 'A' && c <= 'Z') set.set(static_cast<size_t>(c - 'A' + 'a'));
    return set;
  }

  // Behind a backslash.
  Result<Set> ParseEscape() {
    if (at_ >= pattern_.size()) return Wrong("a backslash at the end");
    char c = pattern_[at_++];
    Set set;
    auto add = [&](int from, int to) {
      for (int byte = from; byte <= to; ++byte) set.set(static_cast<size_t>(byte));
    };
    switch (c) {
      case 'd':
      case 'D':
        add('0', '9');
        break;
      case 'w':
      case 'W':
        add('0', '9');
        add('a', 'z');
        add('A', 'Z');
        set.set('_');
        break;
      case 's':
      case 'S':
        add('\t', '\r');
        set.set(' ');
        break;
      case 'n':
        return Literal('\n');
      case 't':
        return Literal('\t');
      case 'r':
        return Literal('\r');
      default:
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
          return Wrong(std::string("'\\") + c + "' is not possible in linear time, or unknown");
        }
        return Literal(c);
    }
    return c >= 'a' ? set : ~set;
  }

  // Behind "[".
  Result<Node> ParseClass() {
    Node node{.kind = Node::kSet};
    bool negated = Take("^");
    for (bool first = true;; first = false) {
      if (at_ >= pattern_.size()) return Wrong("a class that is not closed");
      if (!first && Take("]")) break;
      std::optional<int> low;
      Set one = TRY(ParseMember(&low));
      bool range = Ahead("-") && !Ahead("-]") && at_ + 1 < pattern_.size();
      if (!range) {
        node.set |= one;
        continue;
      }
      ++at_;
      std::optional<int> high;
      (void)TRY(ParseMember(&high));
      if (!low || !high || *high < *low) return Wrong("an invalid range in a class");
      for (int byte = *low; byte <= *high; ++byte) node.set |= Literal(static_cast<char>(byte));
    }
    if (negated) node.set.flip();
    return node;
  }

  // `byte`: the single byte it is, if it is one.
  Result<Set> ParseMember(std::optional<int>* byte) {
    if (at_ >= pattern_.size()) return Wrong("a class that is not closed");
    char c = pattern_[at_];
    if (static_cast<unsigned char>(c) >= 0x80) return Wrong("a class holds ASCII characters only");
    if (Take("\\")) {
      Set set = TRY(ParseEscape());
      if (set.count() == 1) {
        for (int one = 0; one < 256; ++one) {
          if (set.test(static_cast<size_t>(one))) *byte = one;
        }
      }
      return set;
    }
    ++at_;
    *byte = c;
    return Literal(c);
  }

  uint32_t Add(Regex::State state) {
    if (regex_.states_.size() >= kStatesMax) {
      full_ = true;
      return 0;
    }
    regex_.states_.push_back(state);
    return static_cast<uint32_t>(regex_.states_.size() - 1);
  }

  // The first state of `node`, behind which `next` comes.
  uint32_t Write(const Node& node, uint32_t next) {
    if (full_) return 0;
    switch (node.kind) {
      case Node::kEmpty:
        return next;
      case Node::kSet:
        regex_.sets_.push_back(node.set);
        return Add({Op::kSet, next, static_cast<uint32_t>(regex_.sets_.size() - 1)});
      case Node::kAssert:
        return Add({node.op, next, 0});
      case Node::kSequence:
        for (size_t i = node.parts.size(); i > 0; --i) next = Write(node.parts[i - 1], next);
        return next;
      case Node::kEither: {
        uint32_t first = Write(node.parts.back(), next);
        for (size_t i = node.parts.size() - 1; i > 0; --i) {
          uint32_t branch = Write(node.parts[i - 1], next);
          first = Add({Op::kSplit, branch, first});
        }
        return first;
      }
      case Node::kRepeat:
        return WriteRepeat(node, next);
    }
    return next;
  }

  uint32_t WriteRepeat(const Node& node, uint32_t next) {
    const Node& part = node.parts[0];
    if (node.most < 0) {
      uint32_t loop = Add({Op::kSplit, 0, next});
      if (full_) return 0;
      uint32_t body = Write(part, loop);
      regex_.states_[loop].next = body;
      next = loop;
    }
    for (int i = node.least; i < node.most && !full_; ++i) {
      uint32_t body = Write(part, next);
      next = Add({Op::kSplit, body, next});
    }
    for (int i = 0; i < node.least && !full_; ++i) next = Write(part, next);
    return next;
  }

  std::string_view pattern_;
  size_t at_ = 0;
  bool fold_ = false;
  bool dot_all_ = false;
  bool full_ = false;
  Regex regex_;
};

Result<Regex> Regex::Parse(std::string_view pattern) { return RegexCompiler(pattern).Compile(); }

}  // namespace codec
