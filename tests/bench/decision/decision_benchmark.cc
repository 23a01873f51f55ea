// SPDX-License-Identifier: Apache-2.0
// What one decision costs, for policies of 20 to 10 000 rules. Prints nanoseconds, the median of
// several rounds; judges nothing.
//
//   exact      as many policies, each for one name: connection and request on a kept route
//   wildcard   as many policies, each for a pattern of names
//   one suffix as many patterns of names that end alike
//   rest       one endpoint with as many rules: allowed by the last, refused by all
//   stars      one endpoint with as many rules that begin with a star
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "policy/decide/compiled.h"

namespace {

using policy::Caller;
using policy::CallerMatch;
using policy::CompiledPolicy;
using policy::Endpoint;
using policy::HttpRule;
using policy::NetworkPolicy;
using policy::Policy;
using policy::Route;

constexpr int kRounds = 5;
constexpr double kRoundNanoseconds = 4e6;
constexpr std::array<int, 4> kSizes = {20, 200, 1000, 10000};
const Caller kCaller = {"/usr/bin/git", {"/usr/bin/bash", "/usr/local/bin/claude"}, {}};

HttpRule NewRule(const std::string& method, const std::string& path) {
  HttpRule rule;
  rule.method = method;
  rule.path = path;
  return rule;
}

Endpoint NewEndpoint(const std::string& host) {
  Endpoint endpoint;
  endpoint.host = host;
  endpoint.ports = {443};
  endpoint.protocol = policy::Protocol::kRest;
  endpoint.rules = {NewRule("GET", "/repos/**"), NewRule("POST", "/repos/*/issues")};
  return endpoint;
}

NetworkPolicy NewPolicy(int number, Endpoint endpoint) {
  NetworkPolicy network;
  network.key = "policy" + std::to_string(1000000 + number);
  network.name = network.key;
  network.endpoints.push_back(std::move(endpoint));
  network.binaries = {"/usr/local/bin/claude", "/usr/bin/*"};
  return network;
}

double CpuNanoseconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Median nanoseconds of processor time of one call of `work`, which says whether the answer was the
// expected one.
template <typename Work>
double Measure(Work work) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    int calls = 0;
    double spent = 0;
    double begin = CpuNanoseconds();
    for (int batch = 1; spent < kRoundNanoseconds; batch *= 2) {
      for (int i = 0; i < batch; ++i) {
        if (!work()) std::fputs("a decision is wrong\n", stderr);
      }
      calls += batch;
      spent = CpuNanoseconds() - begin;
    }
    rounds.push_back(spent / calls);
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[rounds.size() / 2];
}

struct Case {
  Policy policy;
  std::string host;
  std::string path;
  std::string refused;
};

void Run(std::string_view what, int size, Case setup) {
  double begin = CpuNanoseconds();
  CompiledPolicy compiled(std::move(setup.policy));
  double compile_ms = (CpuNanoseconds() - begin) / 1e6;
  double caller = Measure([&] {
    compiled.MatchCaller(kCaller);
    return true;
  });
  CallerMatch match = compiled.MatchCaller(kCaller);
  double connection =
      Measure([&] { return compiled.FindRoute(match, setup.host, 443).connection().allowed; });
  double nowhere = Measure([&] {
    return !compiled.FindRoute(match, "elsewhere.example.net", 443).connection().allowed;
  });
  Route route = compiled.FindRoute(match, setup.host, 443);
  double allowed = Measure([&] { return route.Decide({"GET", setup.path, ""}).allowed; });
  double refused = Measure([&] { return !route.Decide({"PUT", setup.refused, ""}).allowed; });
  std::printf("%-11s %6d %9.0f %10.0f %9.0f %8.0f %8.0f %9.1f\n", std::string(what).c_str(), size,
              caller, connection, nowhere, allowed, refused, compile_ms);
  std::fflush(stdout);
}

Case Hosts(int size, const std::string& before, const std::string& after,
           const std::string& asked_before) {
  Case made;
  for (int i = 0; i < size; ++i) {
    made.policy.network.push_back(NewPolicy(i, NewEndpoint(before + std::to_string(i) + after)));
  }
  made.host = asked_before + std::to_string(size - 1) + after;
  made.host.erase(std::remove(made.host.begin(), made.host.end(), '*'), made.host.end());
  made.path = "/repos/acme/site";
  made.refused = "/repos/acme/site";
  return made;
}

Case Rules(int size, const std::string& before, const std::string& after) {
  Case made;
  Endpoint endpoint = NewEndpoint("api.example.com");
  endpoint.rules.clear();
  for (int i = 0; i < size; ++i) {
    endpoint.rules.push_back(NewRule("GET", before + std::to_string(i) + after));
  }
  made.policy.network.push_back(NewPolicy(0, std::move(endpoint)));
  made.host = "api.example.com";
  made.path = "/repos/acme/project" + std::to_string(size - 1) + "/issues";
  made.refused = "/repos/acme/other/issues";
  return made;
}

}  // namespace

int main() {
  std::puts(
      "nanoseconds; a request is judged on a route that its connection keeps\n"
      "policy       rules    caller connection  no route  allowed  refused  compiling/ms");
  for (int size : kSizes) Run("exact", size, Hosts(size, "host", ".example.com", "host"));
  for (int size : kSizes) Run("wildcard", size, Hosts(size, "*.team", ".example.com", "x.team"));
  for (int size : kSizes) Run("one suffix", size, Hosts(size, "", "-*.example.com", ""));
  for (int size : kSizes) Run("rest", size, Rules(size, "/repos/acme/project", "/**"));
  for (int size : kSizes) Run("stars", size, Rules(size, "/**/project", "/*"));
  return 0;
}
