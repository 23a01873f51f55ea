// SPDX-License-Identifier: Apache-2.0
// Judges requests to models by what their provider would do for them: `hosted_tools` of the policy.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/budget/budget_limits.h"
#include "gateway/budget/model_api.h"
#include "gateway/http/authority.h"
#include "gateway/inspect/request_judge.h"
#include "policy/decide/hosted_uses.h"

namespace gateway {

// A request to an API of models, as its head tells.
struct HostedQuestion {
  ModelApi api = ModelApi::kNone;  // Its form of an error.
  policy::HostedPlace place;
  // Not empty: the use that the head alone names, which is of this kind; the body is not read.
  std::string_view kind;
};

// Returns whether the body decides.
inline bool ReadsBody(const std::optional<HostedQuestion>& question) {
  return question.has_value() && question->kind.empty();
}

// Recognises the requests that are judged, by method and canonical path; nullopt for all others.
// Pure.
std::optional<HostedQuestion> RecogniseHosted(std::string_view method, std::string_view path,
                                              bool has_body, bool upgrades);

// Returns the uses of a request with this body, of which `fields` say the form. A body that cannot
// be read is a use itself. Pure.
std::vector<policy::HostedUse> ReadHostedUses(const HostedQuestion& question,
                                              const codec::HttpFields& fields,
                                              std::string_view body);

// Judges a request that the policy's rules let pass. Returns its refusal; nullopt if it passes, and
// `allowed` then has what is to be recorded. Pure.
std::optional<RequestVerdict> JudgeHosted(const RequestContext& context,
                                          const HostedQuestion& question, RequestVerdict& allowed);

// Knows the run's model servers. One per process.
class HostedApis {
 public:
  // `models` are those of the run's agent, their hosts names or patterns. `servers` may be null; it
  // is called once, for the first request that is recognised.
  HostedApis(std::vector<Authority> models, std::function<std::vector<ModelServer>()> servers)
      : models_(std::move(models)), ask_(std::move(servers)) {}

  // Returns what is to be judged of a request that passes; nullopt if nothing is.
  std::optional<HostedQuestion> Find(const RequestContext& context, const RequestVerdict& passes,
                                     bool has_body);

 private:
  bool IsModelServer(const Authority& server, std::string_view path);

  std::vector<Authority> models_;
  std::function<std::vector<ModelServer>()> ask_;
  std::optional<std::vector<ModelServer>> servers_;
};

}  // namespace gateway
