// SPDX-License-Identifier: Apache-2.0
// The egress gateway: an own process through which everything leaves the sandbox, seen from the
// supervisor that starts and ends it. docs/architecture.md, "Gateway".
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/secret.h"
#include "policy/policy.h"

namespace gateway {

// A value that the sandbox never sees: programs in it hold PlaceholderFor(name), and the gateway
// puts `value` in its place in inspected requests to `host`, over TLS (or to a host alias) only.
struct BoundSecret {
  std::string name;  // As in the sandbox's environment: [A-Za-z_][A-Za-z0-9_]*.
  std::string host;  // Lower case, exact.
  Secret value;
};

struct GatewayConfig {
  policy::Policy policy;
  std::string policy_file;  // As shown in records: "file:line" of the rule that decided.
  std::vector<BoundSecret> secrets;
  std::string ca_bundle_pem;  // Whom the gateway trusts upstream, PEM. Empty: nobody.
  Fd events_jsonl;            // OCSF, one JSON object per line; opened for appending.
  Fd events_log;              // The same events in OpenShell's shorthand; likewise.
  Fd identity;                // The asking end of a sys::SocketPair; see identity.h.
};

// "openshell:resolve:env:NAME": what the sandbox's environment holds instead of the secret.
std::string PlaceholderFor(std::string_view name);

// The running gateway process. One thread of the supervisor uses it. The destructor kills and
// reaps.
class Gateway {
 public:
  // Forks the gateway (no exec), which makes its certificate authority, gives up every descriptor
  // and privilege it does not need, and says so. Call before the sandbox exists, from a process
  // with one thread. The secrets are wiped in the caller. Fails when the process does not get
  // ready: kInvalid for a CA bundle without certificates, kUnsupported where the kernel cannot
  // confine it.
  static Result<Gateway> Start(GatewayConfig config);

  Gateway(Gateway&& other) noexcept;
  Gateway& operator=(Gateway&& other) noexcept;
  ~Gateway();

  // The run's certificate authority (one PEM certificate): what the sandbox must trust.
  const std::string& ca_pem() const { return ca_pem_; }

  // Hands over a listening TCP socket, already bound inside the sandbox's network namespace.
  // Connections made before this wait in its backlog. May be called for several sockets.
  Status Serve(Fd listener);

  // Asks the process to stop accepting, to write its last records and to end; kills it when it has
  // not ended at `deadline` (an Error then). Reaps it in every case. Answers to identity questions
  // may be needed no more. A second call does nothing.
  Status Finish(Deadline deadline);

  // Readable once the process has ended; unexpected before Finish, and the run must stop then.
  int pidfd() const { return pidfd_.get(); }

 private:
  Gateway() = default;

  pid_t pid_ = -1;
  Fd pidfd_;
  Fd control_;  // End of file on it ends the process.
  std::string ca_pem_;
};

}  // namespace gateway
