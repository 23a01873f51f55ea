// SPDX-License-Identifier: Apache-2.0
// Narrows a run for good once a stranger's text may have reached its model: `after_untrusted` of
// the policy. docs/decisions.md says why answers count as soon as they come.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/http/authority.h"
#include "gateway/http/body_filter.h"
#include "gateway/inspect/live_policy.h"
#include "gateway/inspect/text_prints.h"
#include "policy/model/after_untrusted.h"
#include "policy/model/untrusted_text.h"
#include "record/event.h"

namespace gateway {

class Ratchet {
 public:
  struct Facts {
    policy::UntrustedTexts texts;
    std::vector<policy::HostPort> models;  // The servers of the run's own model.
    std::vector<policy::HostPort> bound;   // Those that other credentials are bound to.
  };

  // When it closes, calls `closed` with the cause, and `record` if the policy in force has
  // `after_untrusted`.
  Ratchet(LivePolicy& policy, Facts facts, std::function<void(const record::Notice&)> record,
          std::function<void(const std::string&)> closed);
  Ratchet(const Ratchet&) = delete;
  Ratchet& operator=(const Ratchet&) = delete;

  // Returns whether something may still close.
  bool watches() const { return !closed_ && policy_.source().after_untrusted.used(); }
  // Returns whether closing changes nothing for connections to this server, so that they are kept.
  bool Keeps(const Authority& server) const;

  // Looks at a request as it is sent to `server`, with its body if that was read whole. Closes if
  // it is the model's and has a stranger's text, or cannot be read. `path` is for records.
  void LookAtRequest(const Authority& server, std::string_view path,
                     const OutgoingRequest& request);
  // Makes a filter for the same look at a body that streams; null if it needs none.
  std::unique_ptr<StreamFilter> NewFilter(const Authority& server, std::string_view path);
  // Called before the client is given anything of an answer from `server` to the request that
  // `event` is about. `lease` is of its connection, which may go on until that answer's end.
  void NoteAnswer(const Authority& server, const record::Event& event,
                  const LivePolicy::Lease& lease);
  // Called before bytes of another protocol than HTTP pass.
  void NotePassage(const Authority& server);

  // Narrows a run whose sandbox was restored from a run that `by` had narrowed: its files may have
  // the text.
  void Inherit(std::string_view by);

  // Returns `next` narrowed as the run is now; unchanged if nothing has closed.
  policy::Policy Narrowed(policy::Policy next) const;

 private:
  class PromptFilter;

  bool IsModel(const Authority& server) const {
    return policy::Covers(facts_.models, server.host, server.port);
  }
  bool IsTrusted(const Authority& server) const;
  void CloseByText(size_t text, const Authority& server, std::string_view path);
  // `text` names what closed it, `server` and `path` the request.
  void Close(const std::string& text, const Authority& server, std::string_view path,
             const LivePolicy::Lease* spared);

  LivePolicy& policy_;
  Facts facts_;
  TextPrints prints_;
  LastMessage last_;  // To the model; none of it was found.
  std::function<void(const record::Notice&)> record_;
  std::function<void(const std::string&)> tell_;
  bool closed_ = false;
  std::string by_;                // What closed it.
  policy::AfterUntrusted rules_;  // Those that were in force then.
};

}  // namespace gateway
