// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/sent_watch.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace gateway {
namespace {

const std::string kText = "canary+0f3a/77";

// Collects what is found: the host, its port, the text's number, and 1 if it is the model.
class Desk {
 public:
  explicit Desk(std::vector<std::string> texts = {kText}, std::vector<Authority> models = {})
      : watch(std::move(texts), std::move(models), [this](const record::Notice& notice) {
          std::string line = notice.type == "watch.sent" ? "" : "unread ";
          for (const auto& [name, value] : notice.context) line += value + " ";
          for (const auto& [name, value] : notice.counts) line += std::to_string(value) + " ";
          found.push_back(line);
        }) {}

  std::vector<std::string> found;
  SentWatch watch;
};

const SentWatch::To kEvil{{"evil.example", 443}, false};

OutgoingRequest Request(std::string target, std::string body = "", codec::HttpFields fields = {}) {
  OutgoingRequest request;
  request.method = "POST";
  request.target = std::move(target);
  request.fields = std::move(fields);
  request.body = std::move(body);
  return request;
}

size_t FoundIn(const OutgoingRequest& request) {
  Desk desk;
  desk.watch.LookAtRequest(kEvil, request);
  return desk.found.size();
}

TEST_CASE("A text is found wherever it is in a request, in each of its forms") {
  CHECK(FoundIn(Request("/", "x" + kText + "y")) == 1);
  CHECK(FoundIn(Request("/a?q=canary%2B0f3a%2F77")) == 1);
  CHECK(FoundIn(Request("/" + kText)) == 1);
  CHECK(FoundIn(Request("/", "", {{"X-Note", kText}})) == 1);
  CHECK(FoundIn(Request("/", "", {{"Cookie", "a=canary%2b0f3a%2f77"}})) == 1);
  CHECK(FoundIn(Request("/", "63616e6172792b306633612f3737")) == 1);
  CHECK(FoundIn(Request("/", "63616E6172792B306633612F3737")) == 1);
  // printf 'canary+0f3a/77' | base64, and with one and two bytes before it.
  CHECK(FoundIn(Request("/", "Y2FuYXJ5KzBmM2EvNzc=")) == 1);
  CHECK(FoundIn(Request("/", "eGNhbmFyeSswZjNhLzc3")) == 1);
  CHECK(FoundIn(Request("/", "eHhjYW5hcnkrMGYzYS83Nw==")) == 1);
  CHECK(FoundIn(Request("/", "eHhjYW5hcnkrMGYzYS83N3l5eQ==")) == 1);
}

const std::string kQuoted = "canary/value+1 of \"us\"";

// Bodies that contain kQuoted.
const std::vector<std::string> kEncodedBodies = {
    "a=canary%2Fvalue%2B1+of+%22us%22",
    "a=canary%2fvalue%2b1%20of%20%22us%22",
    "a=canary/value+1%20of%20%22us%22",
    R"({"a":"canary/value+1 of \"us\""})",
    R"({"a":"canary\/value+1 of \u0022us\u0022"})",
    R"({"a":"\u0063anary\u002Fvalue\u002b1 of \"us\""})",
    "63616E6172792f76616C75652b31206F6620227573"
    "22",
};

TEST_CASE("A text is found behind the encodings of forms and of JSON") {
  for (const std::string& body : kEncodedBodies) {
    CAPTURE(body);
    Desk whole({kQuoted});
    whole.watch.LookAtRequest(kEvil, Request("/", body));
    CHECK(whole.found.size() == 1);
    for (size_t piece : {size_t{1}, size_t{7}, size_t{1000}}) {
      Desk desk({kQuoted});
      std::unique_ptr<StreamFilter> filter = desk.watch.NewFilter(kEvil);
      const std::string stream = std::string(700, 'y') + body + std::string(700, 'z');
      std::string out;
      for (size_t at = 0; at < stream.size(); at += piece) {
        CHECK_FALSE(filter->Filter(std::string_view(stream).substr(at, piece), false, out));
      }
      CHECK(out == stream);
      CHECK(desk.found.size() == 1);
    }
  }
  OutgoingRequest request = Request("/");
  request.method = kText;
  CHECK(FoundIn(request) == 1);
}

TEST_CASE("What only resembles a text is not found") {
  CHECK(FoundIn(Request("/", "canary+0f3a/7")) == 0);
  CHECK(FoundIn(Request("/", "canary+0f3a/78")) == 0);
  CHECK(FoundIn(Request("/", "Y2FuYXJ5KzBmM2EvN")) == 0);
  CHECK(FoundIn(Request("/canary/0f3a?x=77")) == 0);
}

const std::string kLong = "canary-7f3a91c2d4e8b6a05f1e-QWERTYUIOP";

// What programs make of "Figures of Q4: " + kLong + " and more. {leak:note}\n".
struct {
  const char* program;
  std::string bytes;
} const kForms[] = {
    {"base64",
     "RmlndXJlcyBvZiBRNDogY2FuYXJ5LTdmM2E5MWMyZDRlOGI2YTA1ZjFlLVFXRVJUWVVJT1AgYW5k\nIG1vcm"
     "UuIHtsZWFrOm5vdGV9Cg==\n"},
    {"base64 -w 20",
     "RmlndXJlcyBvZiBRNDog\nY2FuYXJ5LTdmM2E5MWMy\nZDRlOGI2YTA1ZjFlLVFX\nRVJUWVVJT1AgYW5kIG"
     "1v\ncmUuIHtsZWFrOm5vdGV9\nCg==\n"},
    {"xxd",
     "00000000: 4669 6775 7265 7320 6f66 2051 343a 2063  Figures of Q4: c\n00000010: 616e "
     "6172 792d 3766 3361 3931 6332 6434  anary-7f3a91c2d4\n00000020: 6538 6236 6130 3566 "
     "3165 2d51 5745 5254  e8b6a05f1e-QWERT\n00000030: 5955 494f 5020 616e 6420 6d6f 7265 "
     "2e20  YUIOP and more. \n00000040: 7b6c 6561 6b3a 6e6f 7465 7d0a            {leak:not"
     "e}.\n"},
    {"xxd -p",
     "46696775726573206f662051343a2063616e6172792d3766336139316332\n6434653862366130356631"
     "652d51574552545955494f5020616e64206d6f\n72652e207b6c65616b3a6e6f74657d0a\n"},
    {"xxd -i",
     "  0x46, 0x69, 0x67, 0x75, 0x72, 0x65, 0x73, 0x20, 0x6f, 0x66, 0x20, 0x51,\n  0x34, 0"
     "x3a, 0x20, 0x63, 0x61, 0x6e, 0x61, 0x72, 0x79, 0x2d, 0x37, 0x66,\n  0x33, 0x61, 0x39"
     ", 0x31, 0x63, 0x32, 0x64, 0x34, 0x65, 0x38, 0x62, 0x36,\n  0x61, 0x30, 0x35, 0x66, 0"
     "x31, 0x65, 0x2d, 0x51, 0x57, 0x45, 0x52, 0x54,\n  0x59, 0x55, 0x49, 0x4f, 0x50, 0x20"
     ", 0x61, 0x6e, 0x64, 0x20, 0x6d, 0x6f,\n  0x72, 0x65, 0x2e, 0x20, 0x7b, 0x6c, 0x65, 0"
     "x61, 0x6b, 0x3a, 0x6e, 0x6f,\n  0x74, 0x65, 0x7d, 0x0a\n"},
    {"xxd -e",
     "00000000: 75676946 20736572 5120666f 63203a34  Figures of Q4: c\n00000010: 72616e61 "
     "66372d79 31396133 34643263  anary-7f3a91c2d4\n00000020: 36623865 66353061 512d6531 5"
     "4524557  e8b6a05f1e-QWERT\n00000030: 4f495559 6e612050 6f6d2064 202e6572  YUIOP and "
     "more. \n00000040: 61656c7b 6f6e3a6b 0a7d6574           {leak:note}.\n"},
    {"xxd -g1",
     "00000000: 46 69 67 75 72 65 73 20 6f 66 20 51 34 3a 20 63  Figures of Q4: c\n0000001"
     "0: 61 6e 61 72 79 2d 37 66 33 61 39 31 63 32 64 34  anary-7f3a91c2d4\n00000020: 65 3"
     "8 62 36 61 30 35 66 31 65 2d 51 57 45 52 54  e8b6a05f1e-QWERT\n00000030: 59 55 49 4f"
     " 50 20 61 6e 64 20 6d 6f 72 65 2e 20  YUIOP and more. \n00000040: 7b 6c 65 61 6b 3a "
     "6e 6f 74 65 7d 0a              {leak:note}.\n"},
    {"od",
     "0000000 064506 072547 062562 020163 063157 050440 035064 061440\n0000020 067141 0711"
     "41 026571 063067 060463 030471 031143 032144\n0000040 034145 033142 030141 063065 06"
     "2461 050455 042527 052122\n0000060 052531 047511 020120 067141 020144 067555 062562 "
     "020056\n0000100 066173 060545 035153 067556 062564 005175\n0000114\n"},
    {"od -c",
     "0000000   F   i   g   u   r   e   s       o   f       Q   4   :       c\n0000020   a"
     "   n   a   r   y   -   7   f   3   a   9   1   c   2   d   4\n0000040   e   8   b   "
     "6   a   0   5   f   1   e   -   Q   W   E   R   T\n0000060   Y   U   I   O   P      "
     " a   n   d       m   o   r   e   .    \n0000100   {   l   e   a   k   :   n   o   t "
     "  e   }  \\n\n0000114\n"},
    {"od -b",
     "0000000 106 151 147 165 162 145 163 040 157 146 040 121 064 072 040 143\n0000020 141"
     " 156 141 162 171 055 067 146 063 141 071 061 143 062 144 064\n0000040 145 070 142 06"
     "6 141 060 065 146 061 145 055 121 127 105 122 124\n0000060 131 125 111 117 120 040 1"
     "41 156 144 040 155 157 162 145 056 040\n0000100 173 154 145 141 153 072 156 157 164 "
     "145 175 012\n0000114\n"},
    {"od -x",
     "0000000 6946 7567 6572 2073 666f 5120 3a34 6320\n0000020 6e61 7261 2d79 6637 6133 31"
     "39 3263 3464\n0000040 3865 3662 3061 6635 6531 512d 4557 5452\n0000060 5559 4f49 205"
     "0 6e61 2064 6f6d 6572 202e\n0000100 6c7b 6165 3a6b 6f6e 6574 0a7d\n0000114\n"},
    {"od -tx4",
     "0000000 75676946 20736572 5120666f 63203a34\n0000020 72616e61 66372d79 31396133 3464"
     "3263\n0000040 36623865 66353061 512d6531 54524557\n0000060 4f495559 6e612050 6f6d206"
     "4 202e6572\n0000100 61656c7b 6f6e3a6b 0a7d6574\n0000114\n"},
    {"od -An -v -tx1",
     " 46 69 67 75 72 65 73 20 6f 66 20 51 34 3a 20 63\n 61 6e 61 72 79 2d 37 66 33 61 39 "
     "31 63 32 64 34\n 65 38 62 36 61 30 35 66 31 65 2d 51 57 45 52 54\n 59 55 49 4f 50 20"
     " 61 6e 64 20 6d 6f 72 65 2e 20\n 7b 6c 65 61 6b 3a 6e 6f 74 65 7d 0a\n"},
    {"od -A x -t x1z -v",
     "000000 46 69 67 75 72 65 73 20 6f 66 20 51 34 3a 20 63  >Figures of Q4: c<\n000010 6"
     "1 6e 61 72 79 2d 37 66 33 61 39 31 63 32 64 34  >anary-7f3a91c2d4<\n000020 65 38 62 "
     "36 61 30 35 66 31 65 2d 51 57 45 52 54  >e8b6a05f1e-QWERT<\n000030 59 55 49 4f 50 20"
     " 61 6e 64 20 6d 6f 72 65 2e 20  >YUIOP and more. <\n000040 7b 6c 65 61 6b 3a 6e 6f 7"
     "4 65 7d 0a              >{leak:note}.<\n00004c\n"},
    {"od -Ad -tu1",
     "0000000  70 105 103 117 114 101 115  32 111 102  32  81  52  58  32  99\n0000016  97"
     " 110  97 114 121  45  55 102  51  97  57  49  99  50 100  52\n0000032 101  56  98  5"
     "4  97  48  53 102  49 101  45  81  87  69  82  84\n0000048  89  85  73  79  80  32  "
     "97 110 100  32 109 111 114 101  46  32\n0000064 123 108 101  97 107  58 110 111 116 "
     "101 125  10\n0000076\n"},
    {"hexdump",
     "0000000 6946 7567 6572 2073 666f 5120 3a34 6320\n0000010 6e61 7261 2d79 6637 6133 31"
     "39 3263 3464\n0000020 3865 3662 3061 6635 6531 512d 4557 5452\n0000030 5559 4f49 205"
     "0 6e61 2064 6f6d 6572 202e\n0000040 6c7b 6165 3a6b 6f6e 6574 0a7d          \n000004c"
     "\n"},
    {"hexdump -C",
     "00000000  46 69 67 75 72 65 73 20  6f 66 20 51 34 3a 20 63  |Figures of Q4: c|\n0000"
     "0010  61 6e 61 72 79 2d 37 66  33 61 39 31 63 32 64 34  |anary-7f3a91c2d4|\n00000020"
     "  65 38 62 36 61 30 35 66  31 65 2d 51 57 45 52 54  |e8b6a05f1e-QWERT|\n00000030  59"
     " 55 49 4f 50 20 61 6e  64 20 6d 6f 72 65 2e 20  |YUIOP and more. |\n00000040  7b 6c "
     "65 61 6b 3a 6e 6f  74 65 7d 0a              |{leak:note}.|\n0000004c\n"},
    {"tr a-z A-Z", "FIGURES OF Q4: CANARY-7F3A91C2D4E8B6A05F1E-QWERTYUIOP AND MORE. {LEAK:NOTE}\n"},
    {"rev", "}eton:kael{ .erom dna POIUYTREWQ-e1f50a6b8e4d2c19a3f7-yranac :4Q fo serugiF\n"},
    {"base64 | base64",
     "Um1sbmRYSmxjeUJ2WmlCUk5Eb2dZMkZ1WVhKNUxUZG1NMkU1TVdNeVpEUmxPR0kyWVRBMVpqRmxM\nVkZYUl"
     "ZKVVdWVkpUMUFnWVc1awpJRzF2Y21VdUlIdHNaV0ZyT201dmRHVjlDZz09Cg==\n"},
    {"xxd -p | base64",
     "NDY2OTY3NzU3MjY1NzMyMDZmNjYyMDUxMzQzYTIwNjM2MTZlNjE3Mjc5MmQzNzY2MzM2MTM5MzE2\nMzMyCj"
     "Y0MzQ2NTM4NjIzNjYxMzAzNTY2MzE2NTJkNTE1NzQ1NTI1NDU5NTU0OTRmNTAyMDYxNmU2\nNDIwNmQ2Zgo3"
     "MjY1MmUyMDdiNmM2NTYxNmIzYTZlNmY3NDY1N2QwYQo=\n"},
    {"tr a-z A-Z | base64 -w0",
     "RklHVVJFUyBPRiBRNDogQ0FOQVJZLTdGM0E5MUMyRDRFOEI2QTA1RjFFLVFXRVJUWVVJT1AgQU5EIE1PUkUu"
     "IHtMRUFLOk5PVEV9Cg=="},
    {"iconv -t UTF-16",
     {"\377\376F\000i\000g\000u\000r\000e\000s\000 \000o\000f\000 \000Q\0004\000:\000 \000c"
      "\000a\000n\000a\000r\000y\000-\0007\000f\0003\000a\0009\0001\000c\0002\000d\0004\000"
      "e\0008\000b\0006\000a\0000\0005\000f\0001\000e\000-\000Q\000W\000E\000R\000T\000Y"
      "\000U\000I\000O\000P\000 \000a\000n\000d\000 \000m\000o\000r\000e\000.\000 \000{\000"
      "l\000e\000a\000k\000:\000n\000o\000t\000e\000}\000\n\000",
      154}},
    {"iconv -t UTF-16LE",
     {"F\000i\000g\000u\000r\000e\000s\000 \000o\000f\000 \000Q\0004\000:\000 \000c\000a"
      "\000n\000a\000r\000y\000-\0007\000f\0003\000a\0009\0001\000c\0002\000d\0004\000e\000"
      "8\000b\0006\000a\0000\0005\000f\0001\000e\000-\000Q\000W\000E\000R\000T\000Y\000U"
      "\000I\000O\000P\000 \000a\000n\000d\000 \000m\000o\000r\000e\000.\000 \000{\000l\000"
      "e\000a\000k\000:\000n\000o\000t\000e\000}\000\n\000",
      152}},
    {"iconv -t UTF-16BE | base64",
     "AEYAaQBnAHUAcgBlAHMAIABvAGYAIABRADQAOgAgAGMAYQBuAGEAcgB5AC0ANwBmADMAYQA5ADEA\nYwAyAG"
     "QANABlADgAYgA2AGEAMAA1AGYAMQBlAC0AUQBXAEUAUgBUAFkAVQBJAE8AUAAgAGEAbgBk\nACAAbQBvAHIA"
     "ZQAuACAAewBsAGUAYQBrADoAbgBvAHQAZQB9AAo=\n"},
    {"iconv -t UTF-16LE | xxd -p",
     "460069006700750072006500730020006f0066002000510034003a002000\n630061006e006100720079"
     "002d0037006600330061003900310063003200\n64003400650038006200360061003000350066003100"
     "65002d0051005700\n4500520054005900550049004f005000200061006e00640020006d006f00\n7200"
     "65002e0020007b006c00650061006b003a006e006f00740065007d00\n0a00\n"},
    {"sed \"s/./& /g\"",
     "F i g u r e s   o f   Q 4 :   c a n a r y - 7 f 3 a 9 1 c 2 d 4 e 8 b 6 a 0 5 f 1 e "
     "- Q W E R T Y U I O P   a n d   m o r e .   { l e a k : n o t e } \n"},
    {"fold -w 5",
     "Figur\nes of\n Q4: \ncanar\ny-7f3\na91c2\nd4e8b\n6a05f\n1e-QW\nERTYU\nIOP a\nnd mo\n"
     "re. {\nleak:\nnote}\n"},
    {"quoted-printable",
     "Figures of Q4: canary-7f3a91c2d4e8b6a05f1e-QWERTYUIOP and more=C3=A9=3D. {l=\neak:no"
     "te}\n"},
    {"quoted-printable, all of it",
     "=46=69=67=75=72=65=73=20=6F=66=20=51=34=3A=20=63=61=6E=61=72=79=2D=37=66=33=61=39=31"
     "=63=32=64=34=65=38=62=36=61=30=35=66=31=65=2D=51=57=45=52=54=59=55=49=4F=50=20=61=6E"
     "=64=20=6D=6F=72=65=2E=20=7B=6C=65=61=6B=3A=6E=6F=74=65=7D=0A"},
    {"a list of numbers in JSON",
     "[70, 105, 103, 117, 114, 101, 115, 32, 111, 102, 32, 81, 52, 58, 32, 99, 97, 110, 97"
     ", 114, 121, 45, 55, 102, 51, 97, 57, 49, 99, 50, 100, 52, 101, 56, 98, 54, 97, 48, 5"
     "3, 102, 49, 101, 45, 81, 87, 69, 82, 84, 89, 85, 73, 79, 80, 32, 97, 110, 100, 32, 1"
     "09, 111, 114, 101, 46, 32, 123, 108, 101, 97, 107, 58, 110, 111, 116, 101, 125, 10]"},
    {"escapes of a string",
     "\\x46\\x69\\x67\\x75\\x72\\x65\\x73\\x20\\x6f\\x66\\x20\\x51\\x34\\x3a\\x20\\x63\\x6"
     "1\\x6e\\x61\\x72\\x79\\x2d\\x37\\x66\\x33\\x61\\x39\\x31\\x63\\x32\\x64\\x34\\x65\\x"
     "38\\x62\\x36\\x61\\x30\\x35\\x66\\x31\\x65\\x2d\\x51\\x57\\x45\\x52\\x54\\x59\\x55\\"
     "x49\\x4f\\x50\\x20\\x61\\x6e\\x64\\x20\\x6d\\x6f\\x72\\x65\\x2e\\x20\\x7b\\x6c\\x65"
     "\\x61\\x6b\\x3a\\x6e\\x6f\\x74\\x65\\x7d\\x0a"},
    {"with colons",
     "46:69:67:75:72:65:73:20:6f:66:20:51:34:3a:20:63:61:6e:61:72:79:2d:37:66:33:61:39:31:"
     "63:32:64:34:65:38:62:36:61:30:35:66:31:65:2d:51:57:45:52:54:59:55:49:4f:50:20:61:6e:"
     "64:20:6d:6f:72:65:2e:20:7b:6c:65:61:6b:3a:6e:6f:74:65:7d:0a"},
    {"Base64 as a form",
     "a=RmlndXJlcyBvZiBRNDogY2FuYXJ5LTdmM2E5MWMyZDRlOGI2YTA1ZjFlLVFXRVJUWVVJT1AgYW5kIG1vcm"
     "UuIHtsZWFrOm5vdGV9Cg%3D%3D"},
    {"wrapped Base64 in JSON",
     "{\"a\":\"RmlndXJlcyBvZiBRNDogY2FuYXJ5LTdmM2E5MWMyZDRlOGI2YTA1ZjFlLVFXRVJUWVVJT1AgYW5"
     "k\\nIG1vcmUuIHtsZWFrOm5vdGV9Cg==\\n\"}"},
};

TEST_CASE("A text is found in the forms that the usual programs give it") {
  for (const auto& form : kForms) {
    CAPTURE(form.program);
    Desk whole({kLong});
    whole.watch.LookAtRequest(kEvil, Request("/", form.bytes));
    CHECK(whole.found == std::vector<std::string>{"evil.example 443 1 0 "});
    for (size_t piece : {size_t{7}, size_t{1000}}) {
      Desk desk({kLong});
      std::unique_ptr<StreamFilter> filter = desk.watch.NewFilter(kEvil);
      const std::string stream = std::string(700, '.') + "\n" + form.bytes + std::string(700, '.');
      std::string out;
      for (size_t at = 0; at < stream.size(); at += piece) {
        CHECK_FALSE(filter->Filter(std::string_view(stream).substr(at, piece), false, out));
      }
      CHECK(std::count(desk.found.begin(), desk.found.end(), "evil.example 443 1 0 ") == 1);
    }
    // The control: another text in the same form.
    Desk other({"canary-0000000000000000000-ASDFGHJKL"});
    other.watch.LookAtRequest(kEvil, Request("/", form.bytes));
    CHECK(other.found.empty());
  }
}

TEST_CASE("A list of numbers is found whatever is in front of it on its line") {
  std::string numbers;
  for (const char c : kLong) numbers += std::to_string(int{c}) + ", ";
  for (const std::string front :
       {"", "y y y ", "x x x ", "x,x,x,", "xx x x0x ", "0x 0x 0x ", "a b c ", "facade a bed ",
        "1 x x x ", "300 300 300 ", "00000000 1 1 1 y ", "0000000: 4669 6775 7265  y "}) {
    CAPTURE(front);
    Desk desk({kLong});
    desk.watch.LookAtRequest(kEvil, Request("/", front + numbers));
    CHECK(desk.found == std::vector<std::string>{"evil.example 443 1 0 "});
    Desk other({"canary-0000000000000000000-ASDFGHJKL"});
    other.watch.LookAtRequest(kEvil, Request("/", front + numbers));
    CHECK(other.found.empty());
  }
}

TEST_CASE("A text is found where it is split over parameters or fields") {
  const std::string one = kLong.substr(0, 19);
  const std::string two = kLong.substr(19);
  const auto found = [](const OutgoingRequest& request) {
    Desk desk({kLong});
    desk.watch.LookAtRequest(kEvil, request);
    return desk.found.size();
  };
  CHECK(found(Request("/?a=" + one + "&b=" + two)) == 1);
  CHECK(found(Request("/", "a=" + one + "&b=" + two)) == 1);
  CHECK(found(Request("/", R"({"a": ")" + one + R"(", "b": ")" + two + "\"}")) == 1);
  CHECK(found(Request("/", "", {{"X-A", one}, {"X-B", two}})) == 1);
  CHECK(found(Request("/", "", {{"X-A", two}, {"X-B", one}})) == 0);
}

TEST_CASE("A piece of a text is taken for it, unless it is in another one too") {
  const auto found = [](std::vector<std::string> texts, const std::string& body) {
    Desk desk(std::move(texts));
    desk.watch.LookAtRequest(kEvil, Request("/", body));
    return desk.found;
  };
  const std::string piece = kLong.substr(5, 26);  // Two of its characters do not count.
  const std::vector<std::string> first = {"evil.example 443 1 0 "};
  CHECK(found({kLong}, piece) == first);
  CHECK(found({kLong}, piece.substr(1)).empty());
  CHECK(found({kLong, kLong + "-and-another"}, piece).empty());
  CHECK(found({kLong, kLong.substr(0, 33) + "-other"}, kLong) == first);
}

TEST_CASE("Each server's first time is recorded, and what is sent to models apart") {
  Desk desk({"canary-one", "canary-two"});
  const OutgoingRequest both = Request("/", "canary-one canary-two");
  desk.watch.LookAtRequest(kEvil, both);
  desk.watch.LookAtRequest(kEvil, both);
  desk.watch.LookAtRequest({{"evil.example", 443}, true}, Request("/", "canary-one"));
  desk.watch.LookAtRequest({{"other.example", 80}, false}, Request("/", "canary-two"));
  CHECK(desk.found == std::vector<std::string>{"evil.example 443 1 0 ", "evil.example 443 2 0 ",
                                               "evil.example 443 1 1 ", "other.example 80 2 0 "});
}

TEST_CASE("Only a prompt at the run's own model is a model's") {
  const Desk desk({kText}, {{"model.example", 443}, {"*.cloud.example", 0}});
  struct {
    Authority server;
    const char* method;
    const char* path;
    bool model;
  } const kCases[] = {
      {{"model.example", 443}, "POST", "/v1/messages", true},
      {{"model.example", 443}, "POST", "/v1/messages/count_tokens", true},
      {{"model.example", 443}, "POST", "/v1beta/models/gemini-2.5-pro:countTokens", true},
      {{"model.example", 443}, "GET", "/v1/messages", false},
      {{"model.example", 443}, "POST", "/v1/files", false},
      {{"model.example", 80}, "POST", "/v1/messages", false},
      {{"evil.example", 443}, "POST", "/v1/messages", false},
      {{"a.cloud.example", 8443}, "POST", "/model/claude/invoke", true},
      {{"cloud.example", 443}, "POST", "/model/claude/invoke", false},
  };
  for (const auto& each : kCases) {
    INFO(each.server.host << " " << each.server.port << " " << each.path);
    CHECK(desk.watch.Addressed(each.server, each.method, each.path).model == each.model);
  }
}

TEST_CASE("A body that streams is looked into across its pieces, and passes as it is") {
  for (size_t piece : {size_t{1}, size_t{5}, size_t{13}, size_t{1000}}) {
    INFO(piece);
    Desk desk;
    std::unique_ptr<StreamFilter> filter = desk.watch.NewFilter(kEvil);
    CHECK(filter->keeps_length());
    const std::string body = std::string(300, 'a') + "eGNhbmFyeSswZjNhLzc3" + std::string(300, 'b');
    std::string out;
    for (size_t at = 0; at < body.size(); at += piece) {
      std::string next;
      CHECK_FALSE(filter->Filter(std::string_view(body).substr(at, piece), false, next));
      out += next;
    }
    CHECK(out == body);
    CHECK(desk.found.size() == 1);
  }
}

TEST_CASE("A name tells name servers, in any case") {
  Desk desk({"Canary-One"});
  desk.watch.LookAtName("api.example");
  desk.watch.LookAtName("canary-one.api.example");
  CHECK(desk.found == std::vector<std::string>{"canary-one.api.example 0 1 0 "});
}

TEST_CASE("What cannot be looked into is said, once for each server") {
  Desk desk;
  desk.watch.LookAtRequest(kEvil, Request("/", "zipped", {{"Content-Encoding", "gzip"}}));
  desk.watch.LookAtRequest(kEvil, Request("/", "zipped", {{"Content-Encoding", "br"}}));
  desk.watch.LookAtRequest({{"rpc.example", 443}}, Request("/", "", {{"grpc-encoding", "gzip"}}));
  desk.watch.NotePassage({"db.example", 5432});
  desk.watch.LookAtRequest(
      {{"two.example", 443}},
      Request("/", "zipped", {{"Content-Encoding", "identity"}, {"Content-Encoding", "gzip"}}));
  desk.watch.LookAtRequest({{"a.example", 1}},
                           Request("/", "", {{"Content-Encoding", "identity"}}));
  CHECK(desk.found == std::vector<std::string>{"unread evil.example 443 ",
                                               "unread rpc.example 443 ", "unread db.example 5432 ",
                                               "unread two.example 443 "});
}

TEST_CASE("A body that begins as compressed data do is not looked into, whatever is declared") {
  const std::string begins[] = {
      "\x1f\x8b\x08", "x\x9c",       "\x28\xb5\x2f\xfd",         "\x04\x22\x4d\x18",
      "BZh",          "\xfd\x37zXZ", std::string("\x5d\0\0", 3), "PK\x03\x04"};
  for (const std::string& begin : begins) {
    CAPTURE(begin);
    const std::string body = begin + std::string(200, 'x');
    const bool is_text = begin == "BZh" || begin[0] == ']';
    Desk whole;
    whole.watch.LookAtRequest(kEvil, Request("/", body));
    CHECK(whole.found == std::vector<std::string>{"unread evil.example 443 "});
    for (size_t piece : {size_t{1}, size_t{100}}) {
      // Elsewhere, what is text may be anything.
      for (const std::string& before : {std::string(), std::string("x")}) {
        Desk desk;
        std::unique_ptr<StreamFilter> filter = desk.watch.NewFilter(kEvil);
        const std::string stream = before + body + body;
        std::string out;
        for (size_t at = 0; at < stream.size(); at += piece) {
          CHECK_FALSE(filter->Filter(std::string_view(stream).substr(at, piece), false, out));
        }
        CHECK(desk.found.size() == (before.empty() || !is_text ? 1 : 0));
      }
    }
  }
  CHECK(FoundIn(Request("/", "plain")) == 0);
}

TEST_CASE("Without texts nothing is watched") {
  Desk desk{std::vector<std::string>()};
  CHECK_FALSE(desk.watch.watches());
  desk.watch.LookAtRequest(kEvil, Request("/", "x", {{"Content-Encoding", "gzip"}}));
  desk.watch.NotePassage({"db.example", 5432});
  desk.watch.LookAtName("a.example");
  CHECK(desk.found.empty());
}

}  // namespace
}  // namespace gateway
