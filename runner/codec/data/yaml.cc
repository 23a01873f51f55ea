// SPDX-License-Identifier: Apache-2.0
#include "codec/data/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "base/ascii.h"
#include "codec/text/utf8.h"

namespace codec {
namespace {

// Stops yaml-cpp from inside its callbacks: it has no other way to be told. Caught in ParseYaml.
struct Stop : std::exception {
  Stop(Position where, std::string message) : at(where), what_text(std::move(message)) {}
  Position at;
  std::string what_text;
};

Position PositionOf(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {mark.line + 1, mark.column + 1};
}

constexpr char kTabInIndentation[] = "a tab in the indentation: use spaces";

// yaml-cpp calls a tab one of several other things.
bool IsIndentedByTab(std::string_view text, int line) {
  for (; line > 1 && !text.empty(); --line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  size_t first = text.find_first_not_of(' ');
  return line == 1 && first != std::string_view::npos && text[first] == '\t';
}

// yaml-cpp's complaints in the words of the file's author. It reports where it gave up, which is
// often behind the mistake.
std::string InOurWords(const std::string& message) {
  struct Words {
    const char* theirs;
    const char* ours;
  };
  using namespace YAML::ErrorMsg;
  static const Words kWords[] = {
      {END_OF_MAP, "a key is expected here: the indentation or a ':' before this is wrong"},
      {END_OF_MAP_FLOW, "a '}' or ',' is missing before this"},
      {END_OF_SEQ, "a '- ' is expected here: the indentation before this is wrong"},
      {END_OF_SEQ_FLOW, "a ']' or ',' is missing before this"},
      {FLOW_END, "an unmatched ']' or '}'"},
      {BLOCK_ENTRY,
       "a list cannot begin here: the indentation is wrong, or a line break is missing"},
      {MAP_KEY, "a key is not allowed here: the indentation is wrong"},
      {MAP_VALUE, "a second ':' on the line: put the value in quotes"},
      {TAB_IN_INDENTATION, kTabInIndentation},
      {EOF_IN_SCALAR, "a quote is opened and never closed"},
      {DOC_IN_SCALAR, "a quote is opened and not closed before '---' or '...'"},
      {CHAR_IN_SCALAR, "a character that is not allowed in unquoted text"},
      {UNKNOWN_TOKEN, "text cannot begin with this character: put it in quotes"},
      {CHAR_IN_BLOCK, "only an indentation indicator may follow '|' or '>'"},
      {ZERO_INDENT_IN_BLOCK, "the indentation after '|' or '>' cannot be 0"},
      {INVALID_HEX, "an escape needs hexadecimal digits"},
      {INVALID_UNICODE, "an escape for a nonexistent character"},
      {INVALID_ESCAPE, "an unknown escape: write a backslash as '\\\\', or use single quotes"},
      {ALIAS_NOT_FOUND, "text cannot begin with '*': put it in quotes"},
      {CHAR_IN_ALIAS, "text cannot begin with '*': put it in quotes"},
      {UNKNOWN_ANCHOR, "text cannot begin with '*': put it in quotes"},
      {ANCHOR_NOT_FOUND, "text cannot begin with '&': put it in quotes"},
      {CHAR_IN_ANCHOR, "text cannot begin with '&': put it in quotes"},
  };
  for (const Words& words : kWords) {
    if (message.starts_with(words.theirs)) return words.ours;
  }
  return "malformed YAML";
}

// Builds the tree from yaml-cpp's events. One frame per open collection.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const YamlLimits& limits) : limits_(limits) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (started_) throw Stop(PositionOf(mark), "a second document; a file may contain only one");
    started_ = true;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Add(Make(YamlKind::kNull, mark, anchor, "?"));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Stop(PositionOf(mark), "aliases are not supported; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node = Make(YamlKind::kScalar, mark, anchor, tag);
    if (!limits_.nul && value.find('\0') != std::string::npos) {
      throw Stop(node.at, "a text may not have a NUL in it");
    }
    node.text = value;
    node.quoted = tag == "!";
    Add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(Make(YamlKind::kSequence, mark, anchor, tag));
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(Make(YamlKind::kMapping, mark, anchor, tag));
  }
  void OnMapEnd() override { Close(); }

  YamlNode TakeRoot() { return std::move(root_); }

 private:
  struct Frame {
    YamlNode node;
    bool has_key = false;  // A mapping whose next event is the value of `key`.
    std::string key;
    Position key_at;
    std::unordered_set<std::string> keys;
  };

  YamlNode Make(YamlKind kind, const YAML::Mark& mark, YAML::anchor_t anchor,
                const std::string& tag) {
    Position at = PositionOf(mark);
    if (anchor != 0) throw Stop(at, "anchors are not supported; write the value out");
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw Stop(at, "tags are not supported; remove '" + tag + "'");
    }
    if (++nodes_ > limits_.nodes_max) {
      throw Stop(at, "more than " + std::to_string(limits_.nodes_max) + " values");
    }
    YamlNode node;
    node.kind = kind;
    node.at = at;
    return node;
  }

  void Open(YamlNode node) {
    if (frames_.size() >= static_cast<size_t>(limits_.depth_max)) {
      throw Stop(node.at, "nested deeper than " + std::to_string(limits_.depth_max) + " levels");
    }
    RefuseCollectionAsKey(node);
    Frame frame;
    frame.node = std::move(node);
    frames_.push_back(std::move(frame));
  }

  void Close() {
    YamlNode node = std::move(frames_.back().node);
    frames_.pop_back();
    Add(std::move(node));
  }

  void RefuseCollectionAsKey(const YamlNode& node) {
    if (frames_.empty()) return;
    const Frame& frame = frames_.back();
    if (frame.node.kind == YamlKind::kMapping && !frame.has_key) {
      throw Stop(node.at, "a key must be text");
    }
  }

  void Add(YamlNode node) {
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.kind == YamlKind::kSequence) {
      frame.node.items.push_back(std::move(node));
    } else if (!frame.has_key) {
      TakeKey(frame, std::move(node));
    } else {
      // The next token stands elsewhere, maybe behind the last line.
      bool absent = node.kind == YamlKind::kNull && node.at.line != frame.key_at.line;
      if (absent) node.at = frame.key_at;
      frame.node.entries.push_back({std::move(frame.key), frame.key_at, std::move(node)});
      frame.has_key = false;
    }
  }

  static void TakeKey(Frame& frame, YamlNode node) {
    if (node.kind != YamlKind::kScalar) throw Stop(node.at, "a key must be text");
    if (!frame.keys.insert(node.text).second) {
      throw Stop(node.at, "'" + node.text + "' appears twice");
    }
    frame.key = std::move(node.text);
    frame.key_at = node.at;
    frame.has_key = true;
  }

  const YamlLimits& limits_;
  bool started_ = false;
  size_t nodes_ = 0;
  YamlNode root_;
  std::vector<Frame> frames_;
};

// Returns where byte `offset` stands, for complaints about bytes rather than about YAML.
Position PositionAt(std::string_view text, size_t offset) {
  Position at{1, 1};
  for (char c : text.substr(0, offset)) {
    if (c == '\n') {
      ++at.line;
      at.column = 1;
    } else {
      ++at.column;
    }
  }
  return at;
}

Status CheckBytes(std::string_view text, const std::string& file, const YamlLimits& limits) {
  if (text.size() > limits.bytes_max) {
    return InvalidAt(file, {}, "larger than " + std::to_string(limits.bytes_max) + " bytes");
  }
  size_t zero = text.find('\0');
  if (zero != std::string_view::npos) {
    return InvalidAt(file, PositionAt(text, zero), "a zero byte");
  }
  size_t bad = FindInvalidUtf8(text);
  if (bad != std::string_view::npos) {
    return InvalidAt(file, PositionAt(text, bad), "not UTF-8");
  }
  return Ok();
}

}  // namespace

const YamlNode* YamlNode::Find(std::string_view key) const {
  for (const YamlEntry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Result<YamlNode> ParseYaml(std::string_view text, const std::string& file,
                           const YamlLimits& limits) {
  TRY(CheckBytes(text, file, limits));
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder(limits);
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.TakeRoot();
  } catch (const Stop& stop) {
    return InvalidAt(file, stop.at, stop.what_text);
  } catch (const YAML::Exception& exception) {
    Position at = PositionOf(exception.mark);
    return InvalidAt(
        file, at, IsIndentedByTab(text, at.line) ? kTabInIndentation : InOurWords(exception.msg));
  } catch (const std::exception& exception) {
    return InvalidAt(file, {}, exception.what());
  }
}

std::string_view DescribeKind(const YamlNode& node) {
  switch (node.kind) {
    case YamlKind::kNull:
      return "nothing";
    case YamlKind::kScalar:
      return "text";
    case YamlKind::kSequence:
      return "a list";
    case YamlKind::kMapping:
      return "a mapping";
  }
  return "something else";
}

std::optional<bool> YamlBool(const YamlNode& node) {
  if (node.kind != YamlKind::kScalar || node.quoted) return std::nullopt;
  if (node.text == "true" || node.text == "True" || node.text == "TRUE") return true;
  if (node.text == "false" || node.text == "False" || node.text == "FALSE") return false;
  return std::nullopt;
}

bool IsYamlNumberOrBool(const YamlNode& node) {
  if (node.kind != YamlKind::kScalar || node.quoted) return false;
  if (YamlBool(node).has_value()) return true;
  std::string_view text = node.text;
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  for (std::string_view special : {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"}) {
    if (text == special) return true;
  }
  auto all_of = [&](size_t from, std::string_view digits) {
    return text.size() > from && text.find_first_not_of(digits, from) == std::string_view::npos;
  };
  if (text.starts_with("0x")) return all_of(2, "0123456789abcdefABCDEF");
  if (text.starts_with("0o")) return all_of(2, "01234567");
  bool number = !text.empty() && (ascii::IsDigit(text.front()) || text.front() == '.');
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return number && end == text.data() + text.size() && error != std::errc::invalid_argument;
}

std::optional<uint64_t> YamlUnsigned(const YamlNode& node) {
  constexpr size_t kDigitsMax = 18;  // Fits into 64 bits whatever the digits are.
  if (node.kind != YamlKind::kScalar || node.quoted) return std::nullopt;
  if (node.text.empty() || node.text.size() > kDigitsMax) return std::nullopt;
  // YAML 1.1 reads it as octal, YAML 1.2 does not.
  if (node.text.size() > 1 && node.text.front() == '0') return std::nullopt;
  uint64_t value = 0;
  for (char c : node.text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  return value;
}

Error InvalidAt(const std::string& file, Position at, std::string_view what,
                std::string_view hint) {
  std::string where = Locate(file, at);
  std::string text = where.empty() ? "" : where + ": error: ";
  text += what;
  Error error{Code::kInvalid, std::move(text), std::string(hint)};
  error.place = {Locate(file, {}), at.line, at.column};
  return error;
}

}  // namespace codec
