// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/event_line.h"

#include <catch2/catch.hpp>

namespace openshell {
namespace {

using record::Event;

TEST_CASE("a refused request is read with all that names it") {
  std::optional<LogLine> line = ParseLogLine(
      "[1795570914.903] [sandbox] [OCSF ] [ocsf] HTTP:GET [MED] DENIED /usr/bin/curl(41) -> GET "
      "http://other.example.com/a?secret=1 [policy:- engine:opa] [reason:endpoint "
      "other.example.com:80 is not allowed by any policy]");
  REQUIRE(line);
  CHECK(line->time_ms == 1795570914903);
  REQUIRE(line->event);
  CHECK(line->event->outcome == Event::Outcome::kDenied);
  CHECK(line->event->kind == Event::Kind::kRequest);
  CHECK(line->event->binary == "/usr/bin/curl");
  CHECK(line->event->pid == 41);
  CHECK(line->event->host == "other.example.com");
  CHECK(line->event->port == 80);
  CHECK(line->event->method == "GET");
  CHECK(line->event->path == "/a");
  CHECK(line->event->engine == record::Engine::kOpa);
  CHECK(line->event->reason == "endpoint other.example.com:80 is not allowed by any policy");
}

TEST_CASE("connections are read: allowed, refused, and to names that lead nowhere") {
  auto outcome = [](const char* rest) {
    std::optional<LogLine> line =
        ParseLogLine(std::string("[1795570914.9") + "25] [sandbox] [OCSF ] [ocsf] " + rest);
    return line && line->event ? line->event->outcome : Event::Outcome::kNone;
  };
  CHECK(
      outcome("NET:OPEN [INFO] ALLOWED python3(42) -> api.example.com:443 [policy:p engine:opa]") ==
      Event::Outcome::kAllowed);
  // OpenShell's own route to a model.
  CHECK(outcome("NET:OPEN [INFO] ALLOWED inference.local:443") == Event::Outcome::kAllowed);
  CHECK(outcome("NET:OPEN [INFO] ALLOWED inference.local:443 [policy:- engine:opa]") ==
        Event::Outcome::kNone);
  CHECK(outcome("NET:OPEN [INFO] ALLOWED (42) -> inference.local:443") == Event::Outcome::kNone);
  CHECK(outcome("NET:REFUSE [MED] DENIED node(12) -> 93.184.216.34:443/tcp [policy:b "
                "engine:nftables]") == Event::Outcome::kDenied);
  CHECK(outcome("NET:OPEN [MED] DENIED /usr/bin/curl(42) -> api.example.com:443 [policy:- "
                "engine:ssrf] [reason:DNS resolution failed for api.example.com:443: x]") ==
        Event::Outcome::kFailed);
}

TEST_CASE("what OpenShell 0.1 refuses is read in the forms that it has for it") {
  auto event = [](const std::string& line) {
    return ParseLogLine("[1764619200.123] [sandbox] [OCSF ] [ocsf] " + line).value();
  };
  const LogLine name = event("NET:REFUSE [MED] DENIED pypi.example [reason:policy_dns_ineligible]");
  REQUIRE(name.event);
  CHECK(name.event->host == "pypi.example");
  CHECK(name.event->port == 443);
  CHECK(name.event->reason.starts_with("policy_dns_ineligible; the port is not"));
  const LogLine refused = event(
      "NET:OPEN [MED] DENIED /usr/bin/curl(0) -> 2606:4700::1111:443 "
      "[reason:transparent_tcp_policy_denied]");
  REQUIRE(refused.event);
  CHECK(refused.event->host == "2606:4700::1111");
  CHECK(refused.event->port == 443);
  // Nothing was allowed where a name stands alone.
  CHECK_FALSE(event("NET:OPEN [INFO] ALLOWED pypi.example [policy:net engine:opa]").event);
  CHECK(event("NET:REFUSE [MED] DENIED a b [reason:policy_dns_ineligible]").unread);
}

TEST_CASE("a program's name cannot stand for the host that it was refused") {
  auto read = [](const std::string& program) {
    return ParseLogLine("[1795570914.925] [sandbox] [OCSF ] [ocsf] NET:OPEN [MED] DENIED " +
                        program + "(41) -> real.example:443 [policy:- engine:opa] [reason:no]");
  };
  std::optional<LogLine> forged = read("/tmp/x(1) -> evil.example:80 [policy:a engine:b]");
  REQUIRE(forged);
  CHECK(forged->unread);
  CHECK(!forged->event);
  std::optional<LogLine> plain = read("/tmp/x(1) [policy:a engine:b]");
  REQUIRE(plain);
  REQUIRE(plain->event);
  CHECK(!plain->unread);
  CHECK(plain->event->host == "real.example");
  CHECK(plain->event->binary == "/tmp/x(1) [policy:a engine:b]");
}

TEST_CASE("what a program's path with line ends leaves of a record is not taken for another line") {
  auto read = [](const std::string& line) { return ParseLogLine("[1795570914.925] " + line); };
  // The end of a refusal, behind what reads like the head of a line.
  const std::string end = "c(41) -> real.example:443 [policy:- engine:opa] [reason:no]";
  for (const std::string& head :
       {std::string("[sandbox] [INFO ] [x] "),
        std::string("[sandbox] [OCSF ] [ocsf] CONFIG:X [INFO] "),
        std::string("[sandbox] [OCSF ] [ocsf] NET:OPEN [INFO] x "),
        std::string("[sandbox] [OCSF ] [ocsf] NET:OPEN [INFO] ALLOWED /usr/bin/"),
        std::string("[sandbox] [OCSF ] [ocsf] NET:OPEN [INFO] ALLOWED x(1) -> a.example:1 ")}) {
    CAPTURE(head);
    std::optional<LogLine> line = read(head + end);
    REQUIRE(line);
    CHECK(line->unread);
    CHECK(!line->event);
  }
  CHECK(!ParseLogLine("/" + end));
  // The same end behind a refusal: the event has the host that was refused.
  std::optional<LogLine> refused =
      read("[sandbox] [OCSF ] [ocsf] NET:OPEN [MED] DENIED /usr/bin/" + end);
  REQUIRE(refused);
  REQUIRE(refused->event);
  CHECK(refused->event->host == "real.example");
}

TEST_CASE("a decision that cannot be read is told from a line about something else") {
  auto unread = [](const std::string& rest) {
    std::optional<LogLine> line = ParseLogLine("[1795570914.925] [sandbox] [OCSF ] [ocsf] " + rest);
    REQUIRE(line);
    CHECK(!line->event);
    return line->unread;
  };
  for (const char* decision : {"NET:OPEN [MED] DENIED /usr/bin/curl(-) -> a.example:443 [policy:-]",
                               "NET:OPEN [MED] DENIED /usr/bin/curl(41) -> a.example:99999",
                               "NET:OPEN [MED] BLOCKED /usr/bin/curl(41) -> a.example:443",
                               "NET:OPEN [MED] Denied /usr/bin/curl(41) -> a.example:443",
                               "HTTP:GET [MED] DENIED GET ftp://a/"}) {
    CHECK(unread(decision));
  }
  for (const char* other : {"NET:OPEN [INFO] host.openshell.internal:17911",
                            "SSH:OPEN [INFO] ALLOWED", "CONFIG:LOADED [INFO] policy"}) {
    CHECK_FALSE(unread(other));
  }
}

TEST_CASE("other lines are no decisions, and what is malformed is not guessed") {
  for (const char* text :
       {"[1795570914.144] [sandbox] [OCSF ] [ocsf] SSH:OPEN [INFO] ALLOWED",
        "[1795570914.144] [sandbox] [OCSF ] [ocsf] NET:OPEN [INFO] host.openshell.internal:17911",
        "[1795570914.144] [sandbox] [OCSF ] [ocsf] NET:OPEN [MED] DENIED x(1) -> host:99999",
        "[1795570914.144] [sandbox] [OCSF ] [ocsf] HTTP:GET [MED] DENIED x(y) -> GET http://a/",
        "[1795570914.144] [sandbox] [OCSF ] [ocsf] HTTP:GET [MED] DENIED GET ftp://a/",
        "[1795570914.145] [sandbox] [INFO ] [openshell_supervisor_process::run] task spawned"}) {
    CAPTURE(text);
    std::optional<LogLine> line = ParseLogLine(text);
    REQUIRE(line);
    CHECK(!line->event);
  }
  for (const char* text :
       {"", "[", "[x.123] [sandbox] [OCSF ] [ocsf] a", "[1.12] [sandbox] [OCSF ] [ocsf] a",
        "[99999999999999999999.123] [sandbox] [INFO ] [a] b", "[1.123] [gateway] [INFO ] [a] b"}) {
    CAPTURE(text);
    CHECK(!ParseLogLine(text));
  }
}

}  // namespace
}  // namespace openshell
