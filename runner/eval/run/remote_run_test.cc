// SPDX-License-Identifier: Apache-2.0
#include "eval/run/remote_run.h"

#include <catch2/catch.hpp>

namespace eval {
namespace {

RemoteOptions At(const std::string& url) { return {.url = url, .protocol = "http"}; }

std::string HintOf(const RemoteOptions& options) {
  Result<RemoteRun> run = ParseRemoteRun(options);
  REQUIRE_FALSE(run.ok());
  CHECK(run.error().code == Code::kUsage);
  return run.error().hint;
}

TEST_CASE("An agent on another machine takes TLS, or a word for plain HTTP") {
  for (const char* url : {"https://agent.example/", "http://127.0.0.1:1/", "http://localhost/",
                          "http://[::1]:8080/x"}) {
    CAPTURE(url);
    CHECK(ParseRemoteRun(At(url)).ok());
  }
  for (const char* url :
       {"http://agent.example/", "http://10.0.0.1/", "http://127.0.0.1.example/"}) {
    CAPTURE(url);
    RemoteOptions options = At(url);
    CHECK(HintOf(options) == "--agent-plain-http");
    options.plain_http = true;
    CHECK(ParseRemoteRun(options).ok());
  }
}

TEST_CASE("The tools listen on loopback, where another address is not given") {
  CHECK(ParseRemoteRun(At("http://127.0.0.1/")).value().tools.ip == "127.0.0.1");
  RemoteOptions options = At("http://127.0.0.1/");
  options.tools_listen = "10.1.2.3:8082/mcp";
  Result<RemoteRun> run = ParseRemoteRun(options);
  REQUIRE(run.ok());
  CHECK(run.value().tools.ip == "10.1.2.3");
  CHECK(run.value().tools.port == 8082);
  CHECK(run.value().tools.path == "/mcp");
  options.tools_url = "https://tools.example/";
  CHECK(ParseRemoteRun(options).value().tools_url == "https://tools.example");
  for (const char* wrong :
       {"localhost", "1.2.3.4:0", "1.2.3.4:", "1.2.3.4:65536", "1.2.3.4:8x", ":1"}) {
    CAPTURE(wrong);
    options.tools_listen = wrong;
    CHECK(HintOf(options) == "--tools-listen 127.0.0.1:8082");
  }
}

TEST_CASE("Cells at the same time have ports of their own, up to the last") {
  RemoteOptions options = At("http://127.0.0.1/");
  options.tools_listen = "127.0.0.1:65530";
  options.jobs = 6;
  CHECK(ParseRemoteRun(options).ok());
  options.jobs = 7;
  CHECK_FALSE(ParseRemoteRun(options).ok());
  options.jobs = 2;
  options.tools_url = "https://tools.example";
  CHECK_FALSE(ParseRemoteRun(options).ok());
}

}  // namespace
}  // namespace eval
