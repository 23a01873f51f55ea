// SPDX-License-Identifier: Apache-2.0
#include "gateway/policy_dns.h"

#include <catch2/catch.hpp>

namespace gateway {
namespace {

constexpr uint16_t kText = 16;

policy::CompiledPolicy PolicyFor(std::vector<std::string> hosts) {
  policy::Policy policy;
  policy.network.resize(1);
  for (std::string& host : hosts) {
    policy::Endpoint endpoint;
    endpoint.host = std::move(host);
    endpoint.ports = {443};
    policy.network[0].endpoints.push_back(std::move(endpoint));
  }
  return policy::CompiledPolicy(std::move(policy));
}

codec::DnsReply Ask(const policy::CompiledPolicy& policy, std::string name, uint16_t type) {
  SyntheticPool pool;
  codec::DnsQuery query;
  query.name = std::move(name);
  query.type = type;
  query.query_class = codec::kDnsClassIn;
  return AnswerName(policy, pool, query);
}

TEST_CASE("A name that an endpoint covers has one synthetic address, for a short time") {
  policy::CompiledPolicy policy = PolicyFor({"api.example.com", "*.wild.example.com"});
  for (const char* name : {"api.example.com", "a.wild.example.com"}) {
    codec::DnsReply answer = Ask(policy, name, codec::kDnsTypeA);
    CHECK(answer.rcode == codec::DnsRcode::kNoError);
    CHECK(answer.addresses == std::vector<std::string>{std::string("\xc6\x12\0\1", 4)});
    CHECK(answer.ttl_s == 30);
  }
}

TEST_CASE("A name that an endpoint covers has nothing else, and exists") {
  policy::CompiledPolicy policy = PolicyFor({"api.example.com"});
  for (uint16_t type : {codec::kDnsTypeAaaa, kText}) {
    codec::DnsReply answer = Ask(policy, "api.example.com", type);
    CHECK(answer.rcode == codec::DnsRcode::kNoError);
    CHECK(answer.addresses.empty());
  }
}

TEST_CASE("A name that no endpoint covers does not exist") {
  policy::CompiledPolicy policy = PolicyFor({"api.example.com", "*.wild.example.com"});
  for (const char* name : {"example.com", "x.api.example.com", "wild.example.com",
                           "a.b.wild.example.com", "api.example.com.evil.test", ""}) {
    codec::DnsReply answer = Ask(policy, name, codec::kDnsTypeA);
    CHECK(answer.rcode == codec::DnsRcode::kNameError);
    CHECK(answer.addresses.empty());
  }
}

TEST_CASE("A policy without endpoints knows no name, one that judges by address alone knows all") {
  CHECK(Ask(PolicyFor({}), "example.com", codec::kDnsTypeA).addresses.empty());
  CHECK(Ask(PolicyFor({""}), "example.com", codec::kDnsTypeA).addresses.size() == 1);
}

}  // namespace
}  // namespace gateway
