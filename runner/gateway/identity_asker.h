// SPDX-License-Identifier: Apache-2.0
// Asks the supervisor which program owns a connection. The other side is caller/identity.h.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "base/fd.h"
#include "caller/identity.h"
#include "gateway/async/event_loop.h"
#include "gateway/async/task.h"
#include "gateway/limits.h"

namespace gateway {

// The asking side of identity.h, in the gateway's loop. Many questions may be open at once.
class IdentityAsker {
 public:
  // Takes the gateway's end of the socket pair. `loop` must outlive this.
  IdentityAsker(EventLoop& loop, Fd socket);
  ~IdentityAsker();
  IdentityAsker(const IdentityAsker&) = delete;
  IdentityAsker& operator=(const IdentityAsker&) = delete;

  // Returns the owner of the connection. A missing answer within kIdentityTimeout, or a malformed
  // one, is a refusal.
  Task<caller::Owner> Ask(caller::Endpoint local, caller::Endpoint remote);

 private:
  struct Pending {
    explicit Pending(EventLoop& loop) : answered(loop) {}
    Signal answered;
    caller::Owner answer;
  };
  Task<void> ReadAnswers();
  Task<caller::Owner> AskNow(caller::Endpoint local, caller::Endpoint remote);

  EventLoop& loop_;
  Fd socket_;
  std::unique_ptr<char[]> buffer_;  // The buffer of ReadAnswers.
  std::map<uint64_t, Pending*> pending_;
  std::deque<Signal*> waiting_;  // Waiters until fewer than kQuestionsAtOnceMax are open.
  size_t open_ = 0;
  uint64_t next_number_ = 1;
  bool reading_ = false;
  bool broken_ = false;
};

}  // namespace gateway
