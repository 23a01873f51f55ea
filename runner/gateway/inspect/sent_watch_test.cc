// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/sent_watch.h"

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
      : watch(std::move(texts), std::move(models), [this](const Notice& notice) {
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
      const std::string stream = std::string(700, 'a') + body + std::string(700, 'b');
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
  CHECK(FoundIn(Request("/", "Canary+0f3a/77")) == 0);
  CHECK(FoundIn(Request("/", "Y2FuYXJ5KzBmM2EvN")) == 0);
  CHECK(FoundIn(Request("/canary/0f3a/77")) == 0);
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
    const std::string body = begin + std::string(20000, 'x');
    Desk whole;
    whole.watch.LookAtRequest(kEvil, Request("/", body));
    CHECK(whole.found == std::vector<std::string>{"unread evil.example 443 "});
    for (size_t piece : {size_t{1}, size_t{1000}}) {
      // Only at its beginning: elsewhere it may be anything.
      for (const std::string& before : {std::string(), std::string("x")}) {
        Desk desk;
        std::unique_ptr<StreamFilter> filter = desk.watch.NewFilter(kEvil);
        const std::string stream = before + body + body;
        std::string out;
        for (size_t at = 0; at < stream.size(); at += piece) {
          CHECK_FALSE(filter->Filter(std::string_view(stream).substr(at, piece), false, out));
        }
        CHECK(desk.found.size() == (before.empty() ? 1 : 0));
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
