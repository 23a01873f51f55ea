// SPDX-License-Identifier: Apache-2.0
#include "run/trust.h"

#include <catch2/catch.hpp>

TEST_CASE("JudgeTrust gives a fork no trust and a terminal all of it") {
  forge::Event event;
  CHECK(run::JudgeTrust(event).trusted);

  event.forge = forge::ForgeKind::kGitHub;
  event.name = "pull_request";
  CHECK(run::JudgeTrust(event).trusted);

  event.fork = true;
  CHECK_FALSE(run::JudgeTrust(event).trusted);
}

TEST_CASE("PolicyRef takes the base of a pull request, never its head") {
  forge::Event event;
  event.forge = forge::ForgeKind::kGitHub;
  event.proposal_number = 7;
  event.base_ref = "main";
  event.head_sha = std::string(40, 'b');
  CHECK(run::PolicyRef(event, "") == "main");

  event.base_sha = std::string(40, 'a');
  CHECK(run::PolicyRef(event, "") == event.base_sha);
  CHECK(run::PolicyRef(event, "release") == "release");
}

TEST_CASE("PolicyRef is HEAD when nothing else was said") {
  CHECK(run::PolicyRef(forge::Event{}, "") == "HEAD");
}
