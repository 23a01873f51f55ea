// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/live_policy.h"

#include <catch2/catch.hpp>

namespace gateway {
namespace {

policy::Policy PolicyFor(const char* host) {
  policy::Endpoint endpoint;
  endpoint.host = host;
  endpoint.ports = {443};
  policy::NetworkPolicy network;
  network.key = network.name = "only";
  network.endpoints = {endpoint};
  network.binaries = {"/bin/a"};
  policy::Policy policy;
  policy.network = {network};
  return policy;
}

bool Allows(const policy::CompiledPolicy& policy, const char* host) {
  return policy.FindRoute(policy.MatchCaller({"/bin/a", {}, {}}), host, 443).connection().allowed;
}

TEST_CASE("A new policy decides what is asked next; a lease keeps the old one, and is told once") {
  LivePolicy live(PolicyFor("old.example"));
  std::unique_ptr<LivePolicy::Lease> lease = live.Take();
  int told = 0;
  lease->WhenReplaced([&] { ++told; });
  live.Replace(PolicyFor("new.example"));
  CHECK(told == 1);
  CHECK(lease->replaced());
  CHECK(Allows(lease->compiled(), "old.example"));
  CHECK_FALSE(Allows(live.compiled(), "old.example"));
  CHECK(Allows(live.compiled(), "new.example"));
  CHECK(lease->version() == 1);
  CHECK(live.version() == 2);
  live.Replace(PolicyFor("newer.example"));
  CHECK(told == 1);
}

TEST_CASE("A lease of the policy in force is not replaced") {
  LivePolicy live(PolicyFor("old.example"));
  live.Replace(PolicyFor("new.example"));
  std::unique_ptr<LivePolicy::Lease> lease = live.Take();
  CHECK_FALSE(lease->replaced());
  CHECK(Allows(lease->compiled(), "new.example"));
}

}  // namespace
}  // namespace gateway
