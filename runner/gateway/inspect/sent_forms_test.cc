// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/sent_forms.h"

#include <catch2/catch.hpp>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "codec/text/base64.h"
#include "codec/text/hex.h"
#include "gateway/inspect/sent_watch.h"

namespace gateway {
namespace {

using codec::EncodeBase64;
using codec::EncodeHex;

const std::string kText = "canary-7f3a91c2d4e8b6a05f1e-QWERTYUIOPzxcvbnm4711";
const std::string kCyrillic = "совершенносекретныйпароль";

OutgoingRequest Post(std::string body, std::string target = "/", codec::HttpFields fields = {}) {
  OutgoingRequest request;
  request.method = "POST";
  request.target = std::move(target);
  request.fields = std::move(fields);
  request.body = std::move(body);
  return request;
}

enum class Seen { kNothing, kFound, kUnread };

// What is seen in a request; `own` as LookAtRequest() has it.
Seen Look(const OutgoingRequest& request, const std::string& text = kText, bool model = false,
          const codec::HttpFields* own = nullptr) {
  Seen seen = Seen::kNothing;
  SentWatch watch({text}, {}, [&](const record::Notice& notice) {
    if (seen != Seen::kFound) seen = notice.type == "watch.sent" ? Seen::kFound : Seen::kUnread;
  });
  watch.LookAtRequest({{"evil.example", 443}, model}, request, own);
  return seen;
}

std::vector<std::string> Cut(const std::string& text, size_t size) {
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size(); at += size) pieces.push_back(text.substr(at, size));
  return pieces;
}

// Returns `text` with each of its bytes as `form` has it.
std::string Each(const std::string& text, const std::function<std::string(unsigned char)>& form) {
  std::string out;
  for (const char c : text) out += form(static_cast<unsigned char>(c));
  return out;
}

std::string Escaped(const std::string& text, const std::string& before, int digits = 2) {
  return Each(text, [&](unsigned char c) {
    return before + std::string(static_cast<size_t>(digits) - 2, '0') +
           EncodeHex(std::string(1, static_cast<char>(c)));
  });
}

std::string Numbers(const std::string& text, const std::string& before, const std::string& after) {
  return Each(text, [&](unsigned char c) { return before + std::to_string(c) + after; });
}

std::string Utf16(const std::string& text) {
  return "\xff\xfe" + Each(text, [](unsigned char c) {
           return std::string{static_cast<char>(c), '\0'};
         });
}

std::string Triples(const std::string& text) {
  return Each(text, [](unsigned char c) { return std::to_string(1000 + c).substr(1); });
}

std::string Octal(const std::string& text) {
  return Each(text, [](unsigned char c) {
    return std::string{static_cast<char>('0' + c / 64), static_cast<char>('0' + c / 8 % 8),
                       static_cast<char>('0' + c % 8), ' '};
  });
}

std::string Join(const std::vector<std::string>& pieces, const std::string& before,
                 const std::string& between, const std::string& after) {
  std::string out;
  for (size_t i = 0; i < pieces.size(); ++i) {
    out += before + std::to_string(i) + between + pieces[i] + after;
  }
  return out;
}

codec::HttpFields Fields(const std::vector<std::string>& pieces) {
  codec::HttpFields fields;
  for (size_t i = 0; i < pieces.size(); ++i) {
    fields.push_back({"X-" + std::to_string(i), pieces[i]});
    fields.push_back({"Accept", "text/plain"});
  }
  return fields;
}

// Requests that have `text`, each in a form of its own; the same make other bytes unreadable.
std::vector<std::pair<const char*, OutgoingRequest>> Requests(const std::string& text) {
  const std::string base64 = EncodeBase64(text);
  const std::string hex = EncodeHex(text);
  const auto in_json = [](const std::string& value) {
    return Post(R"({"data": ")" + value + R"(", "size": 12})");
  };
  std::pair<const char*, OutgoingRequest> requests[] = {
      {"Base64 in Base64", in_json(EncodeBase64(base64))},
      {"hexadecimal in Base64", in_json(EncodeBase64(hex))},
      {"Base64 in hexadecimal", in_json(EncodeHex(base64))},
      {"percent in Base64", in_json(EncodeBase64(Escaped(text, "%")))},
      {"JSON in Base64", in_json(EncodeBase64(Escaped(text, "\\u", 4)))},
      {"a dump in Base64", in_json(EncodeBase64(Escaped(text, " ")))},
      {"five times", in_json(EncodeBase64(EncodeBase64(EncodeHex(EncodeBase64(base64)))))},
      {"percent of Base64", Post(Escaped(base64, "%") + "\n\n the end")},
      {"UTF-16 of Base64", Post(Utf16(base64))},
      {"UTF-16 of hexadecimal", Post(Utf16(hex))},
      {"Base64, backwards", Post("the end " + std::string(base64.rbegin(), base64.rend()))},
      {"Base64 in members", Post("{" + Join(Cut(base64, 16), "\"k", "\": \"", "\", ") + "}")},
      {"Base64 in parameters", Post("", "/?a=1" + Join(Cut(base64, 16), "&p", "=", ""))},
      {"Base64 in fields", Post("", "/", Fields(Cut(base64, 16)))},
      {"hexadecimal in fields", Post("", "/", Fields(Cut(hex, 16)))},
      {"Base64 in a credential", Post("", "/", {{"Authorization", "Bearer " + base64}})},
      {"lines of Base64", Post(Join(Cut(base64, 40), "> ", ": ", "\n"))},
      {"percent", Post(Escaped(text, "%"))},
      {"escapes of C", Post(Escaped(text, "\\x"))},
      {"escapes of JSON", Post(Escaped(text, "\\u", 4))},
      {"quoted-printable", Post(Escaped(text, "="))},
      {"a list of numbers", Post("[" + Numbers(text, "", ", ") + "]")},
      {"numbers on lines", Post(Numbers(text, "", "\n"))},
      {"numbers with a point", Post("[" + Numbers(text, "", ".0, ") + "]")},
      {"characters by number", Post(Numbers(text, "&#", ";"))},
      {"octal numbers", Post(Octal(text))},
      {"hexadecimal numbers", Post(Escaped(text, " "))},
      {"three digits for each byte", Post(Triples(text))},
      {"the same in lines", Post(Triples(text).insert(61, "\n").insert(40, "\n"))},
      {"the same in hexadecimal twice", Post(EncodeHex(EncodeHex(Triples(text))))},
      {"percent in hexadecimal twice", Post(EncodeHex(EncodeHex(Escaped(text, "%"))))},
      {"numbers in hexadecimal twice", Post(EncodeHex(EncodeHex(Numbers(text, "", " "))))},
  };
  return {std::make_move_iterator(std::begin(requests)),
          std::make_move_iterator(std::end(requests))};
}

std::string Noise(size_t size) {  // As encrypted bytes are.
  std::string noise;
  for (unsigned x = 7; noise.size() < size;) {
    noise += static_cast<char>((x = x * 1103515245 + 12345) >> 16);
  }
  return noise;
}

TEST_CASE("A text is found with encodings around each other, split, and backwards") {
  for (const auto& [form, request] : Requests(kText)) {
    CAPTURE(form);
    CHECK(Look(request) == Seen::kFound);
    CHECK(Look(request, "another-0123456789-text") != Seen::kFound);  // The control.
  }
}

TEST_CASE("A text is found where it is split over what has names") {
  const std::vector<std::string> pieces = Cut(kText, 12);
  CHECK(Look(Post("[" + Join(pieces, R"({"name": "k)", R"(", "value": ")", "\"}, ") + "]")) ==
        Seen::kFound);
  CHECK(Look(Post("{" + Join(pieces, "\"k:", R"(": ")", "\", ") + "}")) == Seen::kFound);
  CHECK(Look(Post(Join(pieces, "--B\r\nContent-Disposition: form-data; name=\"k", "\"\r\n\r\n",
                       "\r\n"))) == Seen::kFound);
  CHECK(Look(Post("", "/", Fields(pieces))) == Seen::kFound);
  codec::HttpFields names;
  for (const std::string& piece : pieces) names.push_back({"X-" + piece, "1"});
  CHECK(Look(Post("", "/", names)) == Seen::kFound);
}

TEST_CASE("A text is found in other cases and orders of letters beyond ASCII, and between dashes") {
  CHECK(Look(Post(kCyrillic), kCyrillic) == Seen::kFound);
  CHECK(Look(Post("СОВЕРШЕННОСЕКРЕТНЫЙПАРОЛЬ"), kCyrillic) == Seen::kFound);
  CHECK(Look(Post("ьлорапйынтеркесоннешревос"), kCyrillic) == Seen::kFound);
  CHECK(Look(Post("совершенно"), kCyrillic) == Seen::kNothing);
  CHECK(Skeleton("ÀÞ× ΑΩ ЀЏАПРЯ") == Skeleton("àþ× αω ѐџапря"));
  for (const char* dash : {"\u00a0", "\u200b", "\u2014"}) {
    CHECK(Look(Post(Each(kText, [&](unsigned char c) {
            return std::string(1, static_cast<char>(c)) + dash;
          }))) == Seen::kFound);
  }
}

TEST_CASE("A text is found in a body that streams, however far its letters are from each other") {
  for (const char* filler : {" ", "-", "\n"}) {
    for (const std::string& text : {kText, EncodeBase64(kText)}) {
      if (text != kText && *filler == '-') continue;  // A digit of Base64.
      size_t found = 0;
      SentWatch watch({kText}, {}, [&](const record::Notice& notice) {
        found += notice.type == "watch.sent" ? 1 : 0;
      });
      std::unique_ptr<StreamFilter> filter = watch.NewFilter({{"evil.example", 443}});
      std::string wide;
      for (const char c : text) wide += c + std::string(1500, *filler);
      std::string out;
      for (const std::string& piece : Cut(wide, 2000)) {
        REQUIRE_FALSE(filter->Filter(piece, false, out));
      }
      CHECK(out == wide);
      CHECK(found == 1);
    }
  }
}

TEST_CASE("What is not text is said to be unread in each form that text would be found in") {
  for (const auto& [form, request] : Requests(Noise(150))) {
    CAPTURE(form);
    if (form == std::string("Base64, backwards")) continue;
    CHECK(Look(request) == Seen::kUnread);
    CHECK(Look(request, kText, true) == Seen::kNothing);  // A prompt has images and signatures.
  }
  std::string letters;  // A character for each byte.
  for (const char c : Noise(250)) {
    const auto byte = static_cast<unsigned char>(c);
    letters += {static_cast<char>(0xc4 + byte / 64), static_cast<char>(0x80 + byte % 64)};
  }
  CHECK(Look(Post(letters)) == Seen::kUnread);
  // The same by raw deflate.
  CHECK(Look(Post({"s\313L/-J-V\310OS\0104\261RHN\314K,\252\3245O3N\2644L6J1I\265H2K40M3L"
                   "\325\015\014w\015\n\211\014\365\364\017PH\314KQ\310\315/J\325S\250\316IM\314"
                   "\266\312\313/I\255\345\002\000",
                   78})) == Seen::kUnread);
}

TEST_CASE("What requests usually have is not said to be unread") {
  const std::string noise = Noise(120);
  const std::string base64 = EncodeBase64(noise);
  const auto read = [](const OutgoingRequest& request, const codec::HttpFields* own = nullptr) {
    return Look(request, kText, false, own) == Seen::kNothing;
  };
  // Credentials that the runner put there, and nothing that the agent put to them.
  const codec::HttpFields own = {{"Authorization", "Bearer placeholder"}};
  const codec::HttpFields more = {{"Authorization", "Bearer placeholder " + base64}};
  CHECK(read(Post("", "/", {{"Authorization", "Bearer " + base64}}), &own));
  CHECK_FALSE(read(Post("", "/", {{"Authorization", "Bearer 1 " + base64}}), &more));
  CHECK_FALSE(read(Post("", "/", {{"Authorization", "Bearer " + base64}})));
  CHECK(read(Post("", "/", {{"Cookie", "session=" + EncodeBase64(noise.substr(0, 32))}})));
  CHECK(read(Post("sha512-" + EncodeBase64(noise.substr(0, 64)))));
  CHECK(read(Post(EncodeBase64(std::string(200, 'x')))));
  CHECK(
      read(Post("/src/main/java/com/example/reports/AbstractQuarterlyReportFactory2/And"
                "ItsManyDescendantsAndTheirTests/index.html")));
  CHECK(read(Post("caf\u00e9, \u4e2d\u6587 \u0438 \u0440\u0443\u0441\u0441\u043a\u0438\u0439")));
  CHECK(
      read(Post("0032want 74730d410fcb6603ace96f1dc55ea6196122532d\n"
                "0032want 7d1665144a3a975c05f1f43902ddaf084e784dbe\n00000009done\n")));
  std::string call =
      R"({"jsonrpc": "2.0", "id": 17, "method": "tools/call", "params": {"name": "edit", "arguments": {"path": "src/a.c", "text": "int a[] = {10, 20, 30, 40};\n\tprintf(\"%d%%20\\n\", a[1]);\n"}}})";
  CHECK(read(Post(call)));
  for (int i = 0; i < 4; ++i)
    call = R"({"inner": ")" +
           Each(call,
                [](unsigned char c) {
                  return (c == '"' || c == '\\' ? "\\" : "") + std::string(1, static_cast<char>(c));
                }) +
           "\"}";
  CHECK(read(Post(call)));
  CHECK(read(Post("a=10&b=20&c=30&d=2024-01-15&e=99&f=1e&g=aa&h=100&i=12&j=13&k=14&l=15&m=16")));
}

TEST_CASE("Counting is not a row of bytes") {
  std::string lines;
  std::string row;
  for (int i = 1; i < 1000; ++i) {
    lines += std::to_string(i) + "\n";
    row += std::to_string(i) + " ";
  }
  CHECK(Look(Post(row)) == Seen::kNothing);
  CHECK(Look(Post(lines)) == Seen::kNothing);
  CHECK(Look(Post(EncodeBase64(lines))) == Seen::kNothing);
  // Hexadecimal of hexadecimal has no other digits than a number.
  CHECK(Look(Post(EncodeHex(EncodeHex(Noise(200))))) == Seen::kUnread);
}

TEST_CASE("More encodings around each other than are undone are said to be unread") {
  std::string nested = "%";
  for (int i = 0; i < 30000; ++i) nested += "25";
  CHECK(Look(Post(nested + "41")) == Seen::kUnread);
  CHECK(Look(Post("%252541")) == Seen::kNothing);
}

}  // namespace
}  // namespace gateway
