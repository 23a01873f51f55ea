// SPDX-License-Identifier: Apache-2.0
#include "telemetry/event_target.h"

#include <catch2/catch.hpp>

namespace telemetry {
namespace {

using Kind = EventTarget::Kind;

EventTarget Parse(std::string_view text) {
  Result<EventTarget> target = ParseEventTarget(text);
  INFO(text);
  REQUIRE(target.ok());
  return std::move(target).value();
}

TEST_CASE("Each kind of target is parsed") {
  CHECK(Parse("file:/var/log/a@b.jsonl").path == "/var/log/a@b.jsonl");
  const EventTarget tls = Parse("syslog+tls://Logs.Example");
  CHECK((tls.kind == Kind::kSyslog && tls.tls && tls.host == "logs.example" && tls.port == 6514));
  const EventTarget tcp = Parse("syslog+tcp://[::1]:443");
  CHECK((!tcp.tls && tcp.host == "::1" && tcp.port == 443));
  CHECK(Parse("syslog+tcp://[::1]").port == 601);
  CHECK(Parse("TOKEN@https://siem.example/in?x=1").variable == "TOKEN");
  CHECK(Parse("TOKEN@https://siem.example/in?x=1").url == "https://siem.example/in?x=1");
  CHECK(Parse("http://127.0.0.1:8080/in").kind == Kind::kLines);
}

TEST_CASE("What everyone would write behind the host need not be written") {
  CHECK(Parse("T@splunk+https://s.example:8088").url ==
        "https://s.example:8088/services/collector/event");
  CHECK(Parse("T@splunk+https://s.example/own").url == "https://s.example/own");
  CHECK(Parse("T@elastic+https://e.example/runs").url == "https://e.example/runs/_bulk");
  CHECK(Parse("T@elastic+https://e.example/runs/_bulk").url == "https://e.example/runs/_bulk");
}

TEST_CASE("What is no target is refused, and no error repeats a query") {
  for (const char* text :
       {"", "x", "file:", "ftp://h/x", "syslog+udp://h", "syslog+tcp://h/path", "https://",
        "http://siem.example/in", "splunk+http://10.0.0.1/", "https://u:s3cret@h/in",
        "TOKEN@file:/x", "TOKEN@syslog+tcp://h", "1T@https://h/", "elastic+https://h",
        "elastic+https://h/?q=s3cret", "http://siem.example/?key=s3cret", "https://h:99999/"}) {
    const Result<EventTarget> target = ParseEventTarget(text);
    INFO(text);
    REQUIRE_FALSE(target.ok());
    CHECK(target.error().code == Code::kUsage);
    CHECK((target.error().what + target.error().hint).find("s3cret") == std::string::npos);
  }
  CHECK(Parse("https://h/in?key=s3cret").Shown() == "https://h/in");
}

TEST_CASE("A list has one target a word") {
  const auto targets = ParseEventTargets(" file:/a\nT@https://h/x  syslog+tcp://h:1\n");
  REQUIRE(targets.ok());
  CHECK(targets.value().size() == 3);
  CHECK(ParseEventTargets(" \n").value().empty());
  CHECK_FALSE(ParseEventTargets("file:/a nothing").ok());
}

}  // namespace
}  // namespace telemetry
