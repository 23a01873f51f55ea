// SPDX-License-Identifier: Apache-2.0
// After a refusal: the rule that came closest to allowing the request, for people and agents who
// wonder what to ask for. Walks over all rules, so it is never used for requests that pass.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "codec/call/graphql.h"
#include "codec/call/json_rpc.h"
#include "policy/decide/compiled.h"

namespace advise {

// The content of a refused request. The spans are empty for protocols that have none.
struct Wanted {
  policy::HttpRequest request;
  std::span<const codec::GraphqlOperation> operations;
  std::span<const codec::JsonRpcCall> calls;
};

// The nearest rule or endpoint. All pointers are null if nothing came near.
struct Nearest {
  const policy::NetworkPolicy* policy = nullptr;
  const policy::Endpoint* endpoint = nullptr;
  const policy::HttpRule* rule = nullptr;
};

// Finds the nearest rule to a refused request: the allow rule of the route's endpoints that matches
// in most of path, method and query, then in the longest beginning of the path.
Nearest FindNearestRule(const policy::Route& route, const Wanted& wanted);

// Finds the nearest endpoint to a refused connection: one of this host for other programs or ports;
// else one whose name shares the most labels at the end, at least two.
Nearest FindNearestEndpoint(const policy::CompiledPolicy& policy, const policy::Route& route);

// Renders the nearest rule: "nearest rule: FILE:LINE:COL allows GET /repos/**", "nearest rule:
// FILE:LINE:COL allows example.com:443 for /usr/bin/git"; empty if nothing came near.
std::string RenderNearest(const Nearest& nearest, const std::string& file);

// Renders the hint of any refusal: the deny rule that fired ("denied by FILE:LINE:COL: POST
// /x/**"), or what came nearest. Empty for what was allowed, and when there is nothing to say.
std::string RenderHint(const policy::CompiledPolicy& policy, const policy::Route& route,
                       const policy::Verdict& verdict, const Wanted& wanted,
                       const std::string& file);

}  // namespace advise
