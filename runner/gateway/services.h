// SPDX-License-Identifier: Apache-2.0
// Everything that connections share, one of each per process: policy, resolver, recorder, budget,
// credentials. Passed by reference.
#pragma once

#include <string>

#include "gateway/async/event_loop.h"
#include "gateway/budget/response_observer.h"
#include "gateway/certificate_authority.h"
#include "gateway/credential/credentials.h"
#include "gateway/egress_proxy.h"
#include "gateway/host_allowances.h"
#include "gateway/http/upstream_pool.h"
#include "gateway/identity_asker.h"
#include "gateway/inspect/hosted_judge.h"
#include "gateway/inspect/live_policy.h"
#include "gateway/inspect/ratchet.h"
#include "gateway/inspect/sent_watch.h"
#include "gateway/inspect/websocket_inspector.h"
#include "gateway/names/model_names.h"
#include "gateway/names/resolver.h"
#include "gateway/names/synthetic_pool.h"
#include "gateway/upstream_trust.h"
#include "record/recorder.h"

namespace gateway {

class TokenGrants;  // token_grant.h

// The services that every connection needs; one of each per process. All outlive every connection.
struct Services {
  EventLoop& loop;
  LivePolicy& policy;
  const std::string& policy_file;  // The policy's name in records.
  const Credentials& credentials;
  CertificateAuthority& authority;
  UpstreamTrust& trust;
  UpstreamPool& pool;
  Resolver& resolver;
  record::Recorder& recorder;
  IdentityAsker& identities;
  SyntheticPool& names;
  RequestGuard* guard = nullptr;  // The budgets; may be null.
  SentWatch* sent = nullptr;      // Null if nothing is watched.
  TokenGrants* grants = nullptr;
  HostAllowances* allowances = nullptr;  // Null if no host has a bound.
  const EgressProxy* proxy = nullptr;    // Null if all is dialled directly.
  LargeMessages large_messages = {};
  ModelNames* model_names = nullptr;  // May be null.
  HostedApis* hosted = nullptr;       // Null if no request is judged for hosted tools.
  Ratchet* ratchet = nullptr;         // Null if nothing ever closes.

  // Records, and ends the process's loop when that fails: the caller then drops its connection.
  [[nodiscard]] bool Record(const record::Event& event) {
    bool recorded = recorder.Record(event);
    if (!recorded) loop.Stop();
    return recorded;
  }
};

}  // namespace gateway
