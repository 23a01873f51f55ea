// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/text_prints.h"

#include <catch2/catch.hpp>

#include "codec/data/json.h"

namespace gateway {
namespace {

const std::string kIssue =
    "The parser drops the last field of a record.\n\nSteps:\n1. open \"data/records.txt\"\n"
    "2. count the fields that are shown behind the comma\n3. compare them with those of the file\n";
const std::string kTitle = "Last field is dropped";
const std::string kGreek =
    "Ο αναλυτής παραλείπει το τελευταίο πεδίο της εγγραφής στο αρχείο κειμένου";

TextPrints Known() { return TextPrints({kIssue, kTitle, kGreek, "Fix it"}); }

std::optional<size_t> FindIn(const std::string& body) {
  const TextPrints prints = Known();
  std::optional<size_t> whole = TextPrints::Look(prints).Find(body);
  // In pieces of every size the same is found.
  for (size_t piece : {1, 7, 31, 32, 33, 100}) {
    TextPrints::Look look(prints);
    std::optional<size_t> found;
    for (size_t at = 0; at < body.size() && !found; at += piece) {
      found = look.Find(std::string_view(body).substr(at, piece));
    }
    CHECK(found == whole);
  }
  return whole;
}

std::string Quoted(const std::string& text) { return codec::RenderJsonLine(codec::Json(text)); }

std::string Escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned char>(c));
    out += escape;
  }
  return out;
}

TEST_CASE("A text is found as it is, quoted, twice quoted, wrapped and numbered") {
  CHECK(FindIn(kIssue) == 0);
  CHECK(FindIn("{\"messages\":[{\"content\":" + Quoted("Please fix:\n" + kIssue) + "}]}") == 0);
  CHECK(FindIn(Quoted(Quoted(kIssue))) == 0);
  CHECK(FindIn(Escaped(kIssue)) == 0);
  std::string numbered;
  std::string wrapped;
  size_t line = 0;
  for (char c : kIssue) {
    if (numbered.empty() || numbered.back() == '\n') {
      numbered += "    " + std::to_string(++line) + "\xe2\x86\x92";
    }
    numbered += c;
    wrapped += c;
    if (wrapped.size() % 23 == 0) wrapped += "\n  > ";
  }
  CHECK(FindIn(Quoted(numbered)) == 0);
  CHECK(FindIn(Quoted(wrapped)) == 0);
}

TEST_CASE("Any run of kFoundLetters letters of a text is enough") {
  std::string letters;
  LetterReader().Read(kIssue, &letters);
  REQUIRE(letters.size() > 2 * TextPrints::kFoundLetters);
  for (size_t at = 0; at + TextPrints::kFoundLetters <= letters.size(); ++at) {
    CHECK(FindIn("zz " + letters.substr(at, TextPrints::kFoundLetters) + " zz") == 0);
  }
}

TEST_CASE("A short text is found as a whole, and one of a few letters is not looked for") {
  CHECK(FindIn(Quoted("The title is: last field\nis dropped.")) == 1);
  CHECK_FALSE(FindIn(Quoted("The title is: last field is")).has_value());
  CHECK_FALSE(FindIn("Fix it").has_value());
}

TEST_CASE("Letters beyond ASCII count, escaped or not") {
  CHECK(FindIn(Quoted(kGreek)) == 2);
  CHECK(FindIn("\\u039f \\u03b1\\u03bd\\u03b1" + kGreek.substr(8)) == 2);
}

TEST_CASE("Of a conversation that goes on, only what is new is looked at") {
  const std::string system(100000, 'x');
  const std::string begin = "{\"system\":\"" + system + "\",\"messages\":[\"one\"";
  const std::string end = "],\"tools\":\"" + system + "\"}";
  LastMessage last;
  CHECK(last.NewPart(begin + end).size() == begin.size() + end.size());
  CHECK(last.NewPart(begin + end).empty());
  const std::string second = begin + ",\"two\"" + end;
  const std::string_view added = last.NewPart(second);
  CHECK(added.find("two") != std::string_view::npos);
  CHECK(added.size() < 1000);
  const std::string third = begin + ",\"too\"" + end;
  const std::string_view changed = last.NewPart(third);
  CHECK(changed.find("too") != std::string_view::npos);
  CHECK(changed.size() < 1000);
  CHECK(last.NewPart("{}").size() == 2);
}

TEST_CASE("A piece that is split between two messages is found") {
  const TextPrints prints = Known();
  const std::string body = Quoted(kIssue);
  for (size_t at = 1; at < body.size(); ++at) {
    LastMessage last;
    std::string first = body.substr(0, at) + std::string(1000, '.') + body.substr(at + 1);
    (void)last.NewPart(first);
    const std::string second = body;
    CHECK(TextPrints::Look(prints).Find(last.NewPart(second)) == 0);
  }
}

TEST_CASE("Another text is not taken for a known one") {
  CHECK_FALSE(FindIn("").has_value());
  CHECK_FALSE(FindIn(Quoted("The parser keeps every field of all records, and the last one too. "
                            "There are no steps to say how, and no commas in the file."))
                  .has_value());
  CHECK_FALSE(FindIn(std::string(100000, 'a')).has_value());
}

}  // namespace
}  // namespace gateway
