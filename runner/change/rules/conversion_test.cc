// SPDX-License-Identifier: Apache-2.0
// tests/change/conversion_test.py compares with git; here is what it would not show by name.
#include "change/rules/conversion.h"

#include <catch2/catch.hpp>

namespace change {
namespace {

std::string Blob(const Conversion& conversion, const std::string& bytes,
                 bool crlf_in_index = false) {
  Result<std::string> blob = ToBlob(conversion, bytes, crlf_in_index);
  return blob.ok() ? blob.value() : "error: " + blob.error().what;
}

std::string File(const Conversion& conversion, const std::string& blob) {
  Result<std::string> file = ToFile(conversion, blob, std::string(40, 'a'));
  return file.ok() ? file.value() : "error: " + file.error().what;
}

Conversion Text(Conversion::Text text, bool crlf) {
  Conversion conversion;
  conversion.text = text;
  conversion.crlf = crlf;
  return conversion;
}

}  // namespace

TEST_CASE("What attributes and configuration say of line endings") {
  using T = Conversion::Text;
  struct Row {
    AttributeValues values;
    AutoCrlf auto_crlf;
    bool native_crlf;
    T text;
    bool crlf;
  };
  const Row rows[] = {
      {{}, AutoCrlf::kNo, true, T::kNo, true},
      {{}, AutoCrlf::kYes, false, T::kGuessed, true},
      {{}, AutoCrlf::kInput, true, T::kGuessed, false},
      {{"false", "", "crlf", "", "", ""}, AutoCrlf::kYes, true, T::kNo, true},
      {{"true", "", "", "", "", ""}, AutoCrlf::kNo, false, T::kYes, false},
      {{"true", "", "", "", "", ""}, AutoCrlf::kNo, true, T::kYes, true},
      {{"true", "", "lf", "", "", ""}, AutoCrlf::kYes, true, T::kYes, false},
      {{"input", "", "", "", "", ""}, AutoCrlf::kYes, true, T::kYes, false},
      {{"auto", "", "crlf", "", "", ""}, AutoCrlf::kNo, false, T::kGuessed, true},
      {{"", "false", "", "", "", ""}, AutoCrlf::kYes, true, T::kNo, true},
      {{"odd", "", "crlf", "", "", ""}, AutoCrlf::kNo, false, T::kYes, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.values.text, row.values.crlf, row.values.eol, row.native_crlf);
    Conversion conversion = DecideConversion(row.values, row.auto_crlf, row.native_crlf);
    CHECK(conversion.text == row.text);
    if (row.text != T::kNo) CHECK(conversion.crlf == row.crlf);
  }
}

TEST_CASE("Line endings that are guessed leave binary files and CRLF of the index alone") {
  Conversion guessed = Text(Conversion::Text::kGuessed, true);
  CHECK(Blob(guessed, "a\r\nb\n") == "a\nb\n");
  CHECK(Blob(guessed, "a\r\nb\n", true) == "a\r\nb\n");
  CHECK(Blob(guessed, "a\r\nb\r") == "a\r\nb\r");
  CHECK(Blob(guessed, std::string("\0\r\n", 3)) == std::string("\0\r\n", 3));
  CHECK(Blob(Text(Conversion::Text::kYes, true), std::string("\0\r\n", 3)) ==
        std::string("\0\n", 2));
  CHECK(File(guessed, "a\nb\n") == "a\r\nb\r\n");
  CHECK(File(guessed, "a\r\nb\n") == "a\r\nb\n");
}

TEST_CASE("Keywords are those that git takes for some") {
  Conversion ident;
  ident.ident = true;
  const std::string full = "$Id: " + std::string(40, 'a') + " $";
  for (const char* text : {"$Id: x", "$Id: x\n$", "$Idx$", "$ Id$", "Id$", "$Id", "$Id:\n$Id"}) {
    CHECK(Blob(ident, text) == text);
    CHECK(File(ident, text) == text);
  }
  CHECK(Blob(ident, "a " + full + " b") == "a $Id$ b");
  CHECK(Blob(ident, "$Id:$$Id: a b c $") == "$Id$$Id$");
  CHECK(File(ident, "$Id$ $Id: 12 $ $Id:x$") == full + " " + full + " " + full);
  CHECK(File(ident, "$Id: another system's $Id$") == "$Id: another system's " + full);
}

TEST_CASE("UTF-16 goes there and back, and nothing else is taken for it") {
  Conversion utf16;
  utf16.encoding = "UTF-16";
  std::string text = "z\xc3\xa4 \xf0\x9f\x98\x80";
  CHECK(Blob(utf16, File(utf16, text)) == text);
  CHECK(Blob(utf16, std::string("\xff\xfe\0\xdc\0\0", 6)).starts_with("error: not UTF-16"));
  CHECK(Blob(utf16, "ab").find("no byte order mark") != std::string::npos);
  CHECK(Blob(utf16,
             "\xff\xfe"
             "a")
            .find("left over") != std::string::npos);
  CHECK(File(utf16, "\xed\xa0\x80").starts_with("error: "));
  utf16.encoding = "UTF-16LE";
  CHECK(Blob(utf16, std::string("\xff\xfe"
                                "a\0",
                                4))
            .find("byte order mark") != std::string::npos);
  utf16.encoding = "KOI8-R";
  CHECK(Blob(utf16, "a").find("KOI8-R") != std::string::npos);
  CHECK(Blob(utf16, "").empty());
}

TEST_CASE("git-lfs keeps a pointer of what is not one") {
  Conversion lfs;
  lfs.driver = "lfs";
  std::string pointer = Blob(lfs, "abc");
  CHECK(pointer ==
        "version https://git-lfs.github.com/spec/v1\n"
        "oid sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\nsize 3\n");
  CHECK(Blob(lfs, pointer) == pointer);
  CHECK(Blob(lfs, "").empty());
  CHECK(Blob(lfs, pointer + std::string(1024, 'x')) != pointer + std::string(1024, 'x'));
}

}  // namespace change
