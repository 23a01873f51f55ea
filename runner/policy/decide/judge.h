// SPDX-License-Identifier: Apache-2.0
// The internals of request decisions: how the endpoints of a route come to one verdict. Whatever
// the protocol, a deny rule of any endpoint wins, then an allow of any, then the answer is no; and
// the endpoint with the narrowest path says whether "no" is only written down (audit).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "policy/decide/compiled_tables.h"
#include "policy/decide/decide.h"
#include "policy/decide/verdict.h"

namespace policy {

// The answer of one endpoint to a request.
struct EndpointVerdict {
  enum Kind { kSilent, kAllowed, kDenied };
  Kind kind = kSilent;
  const HttpRule* rule = nullptr;
  Reason reason = Reason::kDenyRule;  // The reason of kDenied.
};

// True if `endpoint` has a narrower path than `than` (which may be null); enforce wins among
// equals.
bool IsNarrower(const CompiledEndpoint& endpoint, const CompiledEndpoint* than);

// Returns what is wrong with a request that no rule is asked about: a zero byte (an error, and so a
// no, in OpenShell's engine), a query that cannot be read. Empty if there is nothing wrong.
std::string_view RequestFault(std::string_view path, std::string_view query);

// Returns the verdict on a request that is not permitted and not audited either.
Verdict Refuse(const Route& route, Reason reason, const CompiledEndpoint* governing,
               std::string_view detail);

// Collects what the endpoints say.
class Judge {
 public:
  explicit Judge(const Route& route) : route_(route) {}

  // `examine` is called with each endpoint whose path takes the request, and gives its
  // EndpointVerdict.
  template <typename Examine>
  Verdict Decide(std::string_view path, Reason not_permitted, const Examine& examine) {
    for (const CompiledEndpoint* endpoint : route_.judging()) {
      if (!endpoint->selector.Matches(path)) continue;
      if (IsNarrower(*endpoint, governing_)) governing_ = endpoint;
      if (endpoint->JudgesPath(path)) Take(*endpoint, examine(*endpoint));
    }
    return Conclude(not_permitted);
  }

 private:
  void Take(const CompiledEndpoint& endpoint, const EndpointVerdict& examined);
  Verdict Conclude(Reason not_permitted) const;

  const Route& route_;
  const CompiledEndpoint* governing_ = nullptr;
  const CompiledEndpoint* judged_ = nullptr;  // The first that was asked.
  const CompiledEndpoint* allowed_ = nullptr;
  const CompiledEndpoint* denied_ = nullptr;
  EndpointVerdict allow_;
  EndpointVerdict deny_;
};

// Returns the path as read by a server that takes a backslash for a slash, and with `encoded_slash`
// "%2F" too; nullopt if it is the same.
std::optional<std::string> SlashReading(std::string_view path, bool encoded_slash);

// The verdict of `decide` on a request whose path servers read differently: it must pass as each
// reads it, except that an encoded slash, which an endpoint has to allow, only meets deny rules.
template <typename DecideOne>
Verdict DecideReadings(const HttpRequest& request, const DecideOne& decide) {
  Verdict verdict = decide(request);
  if (request.path.find('%') == std::string_view::npos) return verdict;
  for (bool encoded_slash : {false, true}) {
    if (!verdict.allowed) return verdict;
    std::optional<std::string> path = SlashReading(request.path, encoded_slash);
    if (!path.has_value()) continue;
    HttpRequest read = request;
    read.path = *path;
    Verdict other = decide(read);
    bool stricter = !other.allowed || (other.audited && !verdict.audited);
    if (stricter && (!encoded_slash || other.by_deny_rule())) verdict = std::move(other);
  }
  return verdict;
}

// Asks the rules over method, path and query alone.
EndpointVerdict ExamineHead(const CompiledEndpoint& endpoint, const HttpRequest& request);
Verdict JudgeHead(const Route& route, const HttpRequest& request);

}  // namespace policy
