// SPDX-License-Identifier: Apache-2.0
#include "codec/call/graphql.h"

#include <algorithm>
#include <map>
#include <set>

#include "codec/call/graphql_lexer.h"
#include "codec/text/utf8.h"

namespace codec {
namespace {

// The contents of one selection set, inline fragments opened: the fields, and the names of
// fragments that bring more.
struct Selections {
  std::vector<std::string_view> fields;
  std::vector<std::string_view> spreads;
};

struct Operation {
  std::string_view type;
  std::string_view name;
  Selections selections;
};

struct Document {
  std::vector<Operation> operations;
  std::map<std::string_view, Selections> fragments;
};

// Section 2 of the specification, by recursive descent. The recursion is as deep as the document's
// brackets, which `depth_max` bounds.
class Parser {
 public:
  Parser(std::string_view document, const GraphqlBounds& bounds)
      : lexer_(document, bounds.tokens_max), depth_left_(bounds.depth_max) {}

  Result<Document> Parse() {
    TRY(Advance());
    Document document;
    while (token_.kind != GraphqlToken::kEnd) TRY(ParseDefinition(&document));
    if (document.operations.empty()) return Fault("no operation");
    return document;
  }

 private:
  Error Fault(std::string_view what) const { return lexer_.Fault(token_.at, what); }
  bool Is(std::string_view punctuator) const {
    return token_.kind == GraphqlToken::kPunctuator && token_.text == punctuator;
  }
  bool IsWord(std::string_view word) const {
    return token_.kind == GraphqlToken::kName && token_.text == word;
  }

  Status Advance() {
    token_ = TRY(lexer_.Next());
    return Ok();
  }
  Status Expect(std::string_view punctuator) {
    if (!Is(punctuator)) return Fault("expected " + std::string(punctuator));
    return Advance();
  }
  Result<std::string_view> ParseName() {
    if (token_.kind != GraphqlToken::kName) return Fault("expected a name");
    std::string_view name = token_.text;
    TRY(Advance());
    return name;
  }
  Status Enter() {
    if (depth_left_ == 0) return Fault("nested too deeply");
    --depth_left_;
    return Advance();
  }
  Status Leave() {
    ++depth_left_;
    return Advance();
  }

  Status ParseDefinition(Document* document);
  Status ParseFragment(Document* document);
  Status ParseOperation(Document* document);
  Status ParseVariables();
  Status ParseType();
  Status ParseDirectives(bool constant);
  Status ParseArguments(bool constant);
  Status ParseValue(bool constant);
  Status ParseSelections(Selections* selections);
  Status ParseField(Selections* selections);
  Status ParseSpread(Selections* selections);

  GraphqlLexer lexer_;
  GraphqlToken token_;
  int depth_left_;
  std::set<std::string_view> operation_names_;
};

Status Parser::ParseDefinition(Document* document) {
  if (IsWord("fragment")) return ParseFragment(document);
  if (Is("{") || IsWord("query") || IsWord("mutation") || IsWord("subscription")) {
    return ParseOperation(document);
  }
  return Fault("expected an operation or a fragment");
}

Status Parser::ParseOperation(Document* document) {
  Operation operation{"query", {}, {}};
  if (!Is("{")) {
    operation.type = TRY(ParseName());
    if (token_.kind == GraphqlToken::kName) {
      operation.name = TRY(ParseName());
    }
    if (Is("(")) TRY(ParseVariables());
    TRY(ParseDirectives(false));
  }
  // Also two without a name: nothing could choose between them.
  if (!operation_names_.insert(operation.name).second) return Fault("two operations of one name");
  TRY(ParseSelections(&operation.selections));
  document->operations.push_back(std::move(operation));
  return Ok();
}

Status Parser::ParseFragment(Document* document) {
  TRY(Advance());
  if (IsWord("on")) return Fault("a fragment may not be named \"on\"");
  if (token_.kind == GraphqlToken::kName && document->fragments.contains(token_.text)) {
    return Fault("two fragments of one name");
  }
  const std::string_view name = TRY(ParseName());
  if (!IsWord("on")) return Fault("expected \"on\"");
  TRY(Advance());
  TRY(ParseName());
  TRY(ParseDirectives(false));
  Selections selections;
  TRY(ParseSelections(&selections));
  document->fragments.emplace(name, std::move(selections));
  return Ok();
}

Status Parser::ParseVariables() {
  TRY(Enter());
  while (true) {
    TRY(Expect("$"));
    TRY(ParseName());
    TRY(Expect(":"));
    TRY(ParseType());
    if (Is("=")) {
      TRY(Advance());
      TRY(ParseValue(true));
    }
    TRY(ParseDirectives(true));
    if (Is(")")) return Leave();
  }
}

Status Parser::ParseType() {
  if (Is("[")) {
    TRY(Enter());
    TRY(ParseType());
    if (!Is("]")) return Fault("expected ]");
    TRY(Leave());
  } else {
    TRY(ParseName());
  }
  if (Is("!")) return Advance();
  return Ok();
}

Status Parser::ParseDirectives(bool constant) {
  while (Is("@")) {
    TRY(Advance());
    TRY(ParseName());
    if (Is("(")) TRY(ParseArguments(constant));
  }
  return Ok();
}

Status Parser::ParseArguments(bool constant) {
  TRY(Enter());
  while (true) {
    TRY(ParseName());
    TRY(Expect(":"));
    TRY(ParseValue(constant));
    if (Is(")")) return Leave();
  }
}

Status Parser::ParseValue(bool constant) {
  if (Is("$") && !constant) {
    TRY(Advance());
    TRY(ParseName());
    return Ok();
  }
  if (Is("[")) {
    TRY(Enter());
    while (!Is("]")) TRY(ParseValue(constant));
    return Leave();
  }
  if (Is("{")) {
    TRY(Enter());
    while (!Is("}")) {
      TRY(ParseName());
      TRY(Expect(":"));
      TRY(ParseValue(constant));
    }
    return Leave();
  }
  if (token_.kind == GraphqlToken::kPunctuator || token_.kind == GraphqlToken::kEnd) {
    return Fault("expected a value");
  }
  return Advance();  // A number, a string, or a name: true, false, null, an enumeration's.
}

Status Parser::ParseSelections(Selections* selections) {
  if (!Is("{")) return Fault("expected {");
  TRY(Enter());
  while (true) {
    if (Is("...")) {
      TRY(ParseSpread(selections));
    } else {
      TRY(ParseField(selections));
    }
    if (Is("}")) return Leave();
  }
}

Status Parser::ParseField(Selections* selections) {
  std::string_view name = TRY(ParseName());
  if (Is(":")) {  // What stood before it was an alias.
    TRY(Advance());
    name = TRY(ParseName());
  }
  selections->fields.push_back(name);
  if (Is("(")) TRY(ParseArguments(false));
  TRY(ParseDirectives(false));
  Selections below;  // Not at the root: read only to know where they end.
  if (Is("{")) TRY(ParseSelections(&below));
  return Ok();
}

Status Parser::ParseSpread(Selections* selections) {
  TRY(Advance());
  if (token_.kind == GraphqlToken::kName && !IsWord("on")) {
    const std::string_view name = TRY(ParseName());
    selections->spreads.push_back(name);
    return ParseDirectives(false);
  }
  if (IsWord("on")) {
    TRY(Advance());
    TRY(ParseName());
  }
  TRY(ParseDirectives(false));
  return ParseSelections(selections);
}

// Gathers what fragments bring. Each is entered once; `open` are those being gathered now.
Status Gather(const Document& document, const Selections& selections,
              std::set<std::string_view>* seen, std::set<std::string_view>* open,
              std::set<std::string_view>* fields) {
  fields->insert(selections.fields.begin(), selections.fields.end());
  for (std::string_view name : selections.spreads) {
    const std::string shown(name);
    auto fragment = document.fragments.find(name);
    if (fragment == document.fragments.end()) {
      return Error{Code::kInvalid, "unknown fragment " + shown};
    }
    if (open->contains(name)) {
      return Error{Code::kInvalid, "fragment " + shown + " uses itself"};
    }
    if (!seen->insert(name).second) continue;
    open->insert(name);
    TRY(Gather(document, fragment->second, seen, open, fields));
    open->erase(name);
  }
  return Ok();
}

Result<const Operation*> Choose(const Document& document, std::string_view name) {
  if (name.empty()) {
    if (document.operations.size() == 1) return &document.operations.front();
    return Error{Code::kInvalid, "several operations and no operationName"};
  }
  for (const Operation& operation : document.operations) {
    if (operation.name == name) return &operation;
  }
  return Error{Code::kInvalid, "no operation has the name that operationName gives"};
}

Result<GraphqlOperation> ReadDocument(std::string_view text, std::string_view operation_name,
                                      const GraphqlBounds& bounds) {
  if (FindInvalidUtf8(text) != std::string_view::npos) return Error{Code::kInvalid, "not UTF-8"};
  const Document document = TRY(Parser(text, bounds).Parse());
  const Operation* operation = TRY(Choose(document, operation_name));
  std::set<std::string_view> seen;
  std::set<std::string_view> open;
  std::set<std::string_view> fields;
  TRY(Gather(document, operation->selections, &seen, &open, &fields));
  GraphqlOperation result{std::string(operation->type), std::string(operation->name), {}, {}};
  for (std::string_view field : fields) result.fields.emplace_back(field);
  return result;
}

}  // namespace

Result<GraphqlOperation> ParseGraphqlDocument(std::string_view document,
                                              std::string_view operation_name,
                                              const GraphqlBounds& bounds) {
  return ReadDocument(document, operation_name, bounds).Context("graphql document");
}

}  // namespace codec
