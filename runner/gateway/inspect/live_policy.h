// SPDX-License-Identifier: Apache-2.0
// The policy in force. Take it per decision; a reload replaces it, and connections of the old one
// are notified.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>

#include "policy/decide/compiled.h"

namespace gateway {

// The policy that is in force. Another one takes its place at once for whatever is decided next;
// connections that were let in by the old one keep it until they are gone, and are told.
class LivePolicy {
 private:
  struct Edition;

 public:
  // One connection's hold on the policy that decided about it.
  class Lease {
   public:
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    const policy::CompiledPolicy& compiled() const;
    // Returns the policy that is in force, which another may have replaced.
    const policy::Policy& in_force() const { return policy_.source(); }
    // Returns 1 for the first policy of a run, 2 for the next, and so on.
    uint64_t version() const;
    // True once another policy is in force.
    const bool& replaced() const { return replaced_; }
    // Has `call` called once when that happens.
    void WhenReplaced(std::function<void()> call) { when_replaced_ = std::move(call); }
    // Narrow() leaves this connection alone: it is open under the narrower policy, too.
    void KeepWhenNarrowed() { kept_ = true; }
    // Ends a connection that Narrow() spared, if it was replaced meanwhile.
    void EndSpared() const;

   private:
    friend class LivePolicy;
    explicit Lease(LivePolicy& policy);
    void Tell() const;  // Makes the call of WhenReplaced(), once.

    LivePolicy& policy_;
    std::list<Edition>::iterator edition_;
    std::list<Lease*>::iterator place_;
    mutable std::function<void()> when_replaced_;
    bool replaced_ = false;
    bool kept_ = false;
  };

  explicit LivePolicy(policy::Policy first);
  LivePolicy(const LivePolicy&) = delete;
  LivePolicy& operator=(const LivePolicy&) = delete;

  // Gives a lease, which must not outlive this.
  std::unique_ptr<Lease> Take();
  const policy::CompiledPolicy& compiled() const { return editions_.back().compiled; }
  const policy::Policy& source() const { return compiled().source(); }
  uint64_t version() const { return editions_.back().version; }

  // Puts `next` in force, then tells every lease of the policies before it.
  void Replace(policy::Policy next);
  // Does the same with a policy that allows less. Leases that are kept are not told; `spared`,
  // which may be null, is told by EndSpared().
  void Narrow(policy::Policy next, const Lease* spared);

 private:
  struct Edition {
    policy::CompiledPolicy compiled;
    uint64_t version;
    size_t leases = 0;
  };

  void DropUnused();

  std::list<Edition> editions_;  // The one in force last.
  std::list<Lease*> leases_;
};

}  // namespace gateway
