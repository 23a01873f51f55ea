// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/hosted_judge.h"

#include <catch2/catch.hpp>
#include <string>

namespace gateway {
namespace {

// "body", the kind that the head names, or "-" if nothing is judged.
std::string Recognised(std::string_view method, std::string_view path, bool has_body = true,
                       bool upgrades = false) {
  std::optional<HostedQuestion> question = RecogniseHosted(method, path, has_body, upgrades);
  if (!question) return "-";
  return question->kind.empty() ? "body" : std::string(question->kind);
}

std::string KindRead(std::string_view body, const codec::HttpFields& fields = {}) {
  const HostedQuestion question{ModelApi::kAnthropic, {}, {}};
  std::vector<policy::HostedUse> uses = ReadHostedUses(question, fields, body);
  return uses.empty() ? "nothing" : uses.front().kind;
}

}  // namespace

TEST_CASE("The bodies of all APIs of models are read, and nothing else of their servers") {
  for (const char* path : {"/v1/messages",
                           "/v1/messages/",
                           "/v1/messages/batches",
                           "/v1/messages/count_tokens",
                           "/v1/chat/completions",
                           "/v1/responses",
                           "/openai/v1/responses",
                           "/v1/responses/compact",
                           "/v1/responses/input_tokens",
                           "/openai/deployments/a/chat/completions",
                           "/v1beta/models/gemini-2.5-pro:generateContent",
                           "/v1internal:streamGenerateContent",
                           "/v1beta/models/m:countTokens",
                           "/v1beta/models/m:batchGenerateContent",
                           "/v1beta/cachedContents",
                           "/v1beta/interactions",
                           "/model/m/converse",
                           "/v2/chat",
                           "/model/m/invoke-with-response-stream",
                           "/v1/publishers/anthropic/models/m:rawPredict"}) {
    INFO(path);
    CHECK(Recognised("POST", path) == "body");
    CHECK(Recognised("GET", path, false) == "-");
    CHECK(Recognised("GET", path) == "body");  // A field may name another method.
  }
  for (const char* path : {"/v1/files", "/v1/models", "/api/event_logging/batch", "/v1/embeddings2",
                           "/api/web/domain_info", "/v1/moderations"}) {
    INFO(path);
    CHECK(Recognised("POST", path) == "-");
  }
}

TEST_CASE("Agents at the provider, sockets and work in files are known by their heads") {
  CHECK(Recognised("POST", "/v1/agents") == "agents");
  CHECK(Recognised("POST", "/v1/sessions/s1/events") == "agents");
  CHECK(Recognised("POST", "/v1/threads/t/runs") == "agents");
  CHECK(Recognised("GET", "/v1/agents", false) == "-");
  CHECK(Recognised("POST", "/v1/agentsmith") == "-");
  CHECK(Recognised("POST", "/v1/batches") == "unread");
  CHECK(Recognised("POST", "/google.ai.generativelanguage.v1.GenerativeService/Generate") ==
        "unread");
  CHECK(Recognised("GET", "/v1/responses", false, true) == "unread");
  CHECK(Recognised("GET", "/v1/realtime", false, true) == "unread");
}

TEST_CASE("A path names the model that searches by itself") {
  std::optional<HostedQuestion> question = RecogniseHosted(
      "POST", "/openai/deployments/gpt-4o-search-preview/chat/completions", true, false);
  REQUIRE(question);
  std::vector<policy::HostedUse> uses = ReadHostedUses(*question, {}, "{}");
  REQUIRE(uses.size() == 1);
  CHECK(uses[0].kind == policy::kWebSearch);
}

TEST_CASE("A body that cannot be read is a use of its own") {
  CHECK(KindRead(R"({"tools":[]})") == "nothing");
  CHECK(KindRead(R"({"tools":[{"type":"web_search_20250305"}]})") == "web_search");
  CHECK(KindRead("") == "unread");
  CHECK(KindRead("[]") == "unread");
  CHECK(KindRead("{\"tools\":[],") == "unread");
  CHECK(KindRead(R"({"tools":[],"tools":[{"type":"web_search_20250305"}]})") == "unread");
  CHECK(KindRead("{}", {{"Content-Encoding", "zstd"}}) == "unread");
  CHECK(KindRead("{}", {{"Content-Encoding", "identity"}}) == "nothing");
  CHECK(KindRead("{}", {{"Content-Type", "multipart/form-data; boundary=x"}}) == "unread");
  CHECK(KindRead("{}", {{"Content-Type", "application/json; charset=utf-7"}}) == "unread");
  CHECK(KindRead(std::string(200, '[') + std::string(200, ']')) == "unread");
}

}  // namespace gateway
