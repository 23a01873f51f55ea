// SPDX-License-Identifier: Apache-2.0
// The egress gateway as the supervisor sees it: a separate process through which all traffic leaves
// the sandbox. docs/architecture.md, "Gateway".
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/gateway_socket.h"
#include "base/result.h"
#include "base/shared_text.h"
#include "caller/identity.h"
#include "gateway/budget/budget_limits.h"
#include "gateway/budget/price_list.h"
#include "gateway/credential/bound_secret.h"
#include "gateway/credential/exchange.h"
#include "gateway/egress_proxy.h"
#include "gateway/http/authority.h"
#include "gateway/limits.h"
#include "policy/model/policy.h"
#include "policy/model/untrusted_text.h"

namespace gateway {

struct GatewayConfig {
  policy::Policy policy;
  std::string policy_file;  // Named in records: "file:line:col" of the rule that decided.
  std::vector<BoundSecret> secrets;
  SharedText ca_bundle_pem;  // The authorities that the gateway trusts upstream, PEM. May be empty.
  std::string sandbox_uid;   // In each record.
  Fd events_jsonl;           // OCSF, one JSON object per line; opened for appending.
  Fd events_log;             // The same events in OpenShell's shorthand; likewise.
  Fd identity;               // The asking end of a sys::SocketPair; see identity.h.
  std::vector<TokenGrant> grants = {};
  BudgetLimits budget = {};
  std::vector<std::string> sent_texts = {};  // SentWatch's, as the next.
  std::vector<Authority> models = {};
  policy::UntrustedTexts untrusted_texts = {};  // Ratchet's.
  int64_t host_bytes_max = 0;   // The bytes to and from each host; 0 if not bounded.
  PriceList prices = {};        // In front of the built-in ones.
  std::vector<Fd> groups = {};  // JoinCgroups(): the limits that it works under.
  std::optional<EgressProxy> proxy = {};
};

// The events that the gateway process reports by itself while it serves.
struct GatewayNotices {
  // A model's host refuses the run's credential again and again, as Budget has it.
  std::string credential_refused_by;
  // Why the name of a model's host has no address, as ModelNames has it.
  std::string model_unresolved;
  // An access token that was fetched in place of a bound secret and will be used next.
  Secret token;
  std::optional<TakenIdentity> identity;  // An identity was exchanged.
  std::optional<size_t> wants_subject;    // The content of that grant's `subject_file` is wanted.
  std::string narrowed_by;                // Why `after_untrusted` narrowed the run.
  bool ended = false;                     // There is no gateway any more.
};

enum class ServerEvent : uint8_t;  // server.h.

// The running gateway process. One thread of the supervisor uses it. The destructor kills and
// reaps.
class Gateway {
 public:
  // Forks the gateway (no exec) and returns: it makes its certificate authority, gives up every
  // descriptor and privilege it does not need, and says so, which AwaitReady() waits for. Call
  // before the sandbox exists, from a process with one thread. The secrets are wiped in the caller.
  static Result<Gateway> Start(GatewayConfig config);
  // Returns the run's certificate authority (one PEM certificate), which the sandbox must trust;
  // called once, first. Fails as AwaitReady() does.
  Result<std::string> AwaitAuthority();
  // Waits until the process is ready; called once, before Serve(). Fails if it does not get ready:
  // with kInvalid for a CA bundle without certificates, with kUnsupported if the kernel cannot
  // confine it, with kSetup for an identity that its service refuses, and with kTemporary for a
  // service that cannot be reached.
  Status AwaitReady();

  Gateway(Gateway&& other) noexcept;
  Gateway& operator=(Gateway&& other) noexcept;
  ~Gateway();

  // Hands over a socket, bound and, for TCP, listening. Connections that came before this wait in
  // it. May be called up to kGatewaySocketsMax times.
  Status Serve(GatewaySocket served);

  // Puts another policy in force: for what is asked next at once, and connections that the one
  // before let in are closed. `hash` names it in the records.
  Status Update(const policy::Policy& policy, std::string_view hash);
  // Called if there should be another policy, and it cannot be read or may not take the place of
  // this one. With `quarantine` nothing passes any more, until an update that succeeds (OpenShell's
  // fail_closed); otherwise the policy in force stays (retain_last_valid).
  Status RejectUpdate(std::string_view why, bool quarantine);

  // Gives it the content of a grant's `subject_file`, which it asked for; empty if it cannot be
  // read.
  Status GiveSubject(size_t grant, std::string_view text);

  // Narrows the run as `by` has narrowed another one, whose state the sandbox goes on from.
  Status Narrow(std::string_view by);

  // Has the gateway record that `owner` was refused a connection to `remote` at connect(2). Never
  // waits: fails if the gateway is too busy to take it.
  Status RecordRefusedConnect(const caller::Endpoint& remote, const caller::Owner& owner);

  // Asks the process to stop accepting, to write its last records and to end; kills it when it has
  // not ended at `deadline` (an Error then). Reaps it in every case. Answers to identity questions
  // may be needed no more. A second call does nothing.
  Status Finish(Deadline deadline);

  // Returns a descriptor that is readable when TakeNotices has something to give; also at the
  // process's end, with nothing.
  int notices() const { return control_.get(); }
  Result<GatewayNotices> TakeNotices();
  // Returns the process: it is put under the run's limits, and what it uses is measured.
  pid_t pid() const { return pid_; }
  // Returns the processor time so far; after Finish, altogether.
  std::chrono::nanoseconds ProcessorTime() const;
  // Returns the memory of its own, now.
  int64_t MemoryBytes() const;

  // Returns a pidfd, readable once the process has ended; unexpected before Finish, and the run
  // must stop then.
  int pidfd() const { return pidfd_.get(); }

 private:
  Gateway() = default;
  template <typename... T>
  Status Await(ServerEvent wanted, T&... values);

  pid_t pid_ = -1;
  std::chrono::nanoseconds processor_time_{0};  // Once it has ended.
  Fd pidfd_;
  Fd control_;  // End of file on it ends the process.
};

}  // namespace gateway
