// SPDX-License-Identifier: Apache-2.0
#include "forge/open/open.h"

#include <catch2/catch.hpp>
#include <map>

namespace forge {
namespace {

bool Lists(std::span<const char* const> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST_CASE("Every kind but kNone has a row, and every row what it needs") {
  for (auto kind = ForgeKind::kNone; kind < ForgeKind::kCount;
       kind = static_cast<ForgeKind>(static_cast<int>(kind) + 1)) {
    CHECK(FactsOf(kind).kind == kind);
  }
  CHECK(AllFacts().size() + 1 == static_cast<size_t>(ForgeKind::kCount));
  for (const Facts* facts : AllFacts()) {
    CAPTURE(facts->name);
    CHECK(facts->parse_event != nullptr);
    CHECK(facts->parse_text != nullptr);
    CHECK(facts->client != nullptr);
    CHECK(facts->open != nullptr);
    CHECK_FALSE(facts->can.names.empty());
    CHECK_FALSE(facts->events.empty());
    CHECK(*facts->token != '\0');
    CHECK_FALSE(facts->flags.empty());
    for (const char* flag : facts->flags) CHECK(Lists(facts->variables, flag));
    const bool is_signed = facts->starter == StarterProof::kSignature;
    CHECK((facts->verify != nullptr) == is_signed);
    CHECK(facts->id_token.empty() != is_signed);
    CHECK((*facts->weak_token == '\0') == facts->findings_elsewhere.empty());
  }
}

TEST_CASE("Each forge is recognised by each of its flags") {
  for (const Facts* facts : AllFacts()) {
    for (const char* flag : facts->flags) {
      CHECK(ForgeOf([&](const std::string& name) {
              return name == flag ? std::optional<std::string>("true") : std::nullopt;
            }) == facts->kind);
    }
  }
}

TEST_CASE("A kind without a row permits nothing") {
  const Facts& unknown = FactsOf(ForgeKind::kCount);
  CHECK(unknown.kind == ForgeKind::kNone);
  CHECK(unknown.starter == StarterProof::kNone);
  CHECK(unknown.log_commands == codec::LogCommands::kAll);
  CHECK_FALSE(ReadsWorkflowCommands(ForgeKind::kCount));
  Event event;
  event.forge = ForgeKind::kCount;
  CHECK(ReadEventText([](const std::string&) { return std::nullopt; }, event).ok());
  Place place;
  place.kind = ForgeKind::kCount;
  place.repository = "acme/site";
  ClientOptions options = OptionsFor(place, "https://forge.example");
  options.token = Secret("x");
  Client client = Client::Create(std::move(options)).value();
  CHECK(Open(client, place).error().code == Code::kInvalid);
}

TEST_CASE("The API's address says whose it is, before the event does") {
  CHECK(ForgeAt("https://gitlab.example/api/v4/", ForgeKind::kGitHub) == ForgeKind::kGitLab);
  CHECK(ForgeAt("https://git.example/api/v1", ForgeKind::kGitea) == ForgeKind::kGitea);
  for (ForgeKind event : {ForgeKind::kNone, ForgeKind::kGitHub, ForgeKind::kGitLab}) {
    CHECK(ForgeAt("https://api.github.com", event) == ForgeKind::kGitHub);
  }
}

}  // namespace
}  // namespace forge
