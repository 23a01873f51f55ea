// SPDX-License-Identifier: Apache-2.0
// The processes of a sandbox that lasts: a keeper, which holds its name and the environment that it
// was created with, and for each instance of the sandbox a supervisor, which is one run.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "run/request.h"
#include "session/place.h"
#include "session/protocol.h"

namespace session {

struct CreateRequest {
  run::Request run;  // Its `timeout_s` is each command's; its command and prompt do not count.
  std::string name;  // Empty if one is made up.
  int64_t ttl_s = 0;
  std::string pool = {};    // It waits there to be taken.
  run::OptionRules rules;   // The rules, as Run() takes them.
  std::string policy = {};  // The text that replaces the policy of its request; empty if none does.
};

struct Created {
  Facts facts;
  SandboxState state;
};

// Makes absolute everything that a person may have named relative to where they stood.
Status MakeAbsolute(run::Request* request);
// Fails with kUsage if another sandbox is to write its report there, and would remove this one's.
Status CheckReport(const Place& place, const CreateRequest& create);
// Returns the request of a sandbox: a run that lasts as long as it may, of no task of its own.
run::Request RequestOf(const CreateRequest& create);
// Returns the facts that `sandbox list` shows.
Facts FactsOf(const CreateRequest& create, const std::string& name, pid_t keeper);
// Sends standard output and error to the sandbox's log.
Status RedirectStreams(const Entry& entry);

// Returns the descriptors that this process has from its creator's callers: all but `own` and the
// standard ones. Programs that it executes do not get them. They stay open until its sandbox is
// ready, because options may name one (`--policy /dev/fd/63`), and no longer: an open lock or pipe
// of a CI's step keeps others waiting.
std::vector<int> TakeInherited(const std::vector<int>& own);
void CloseInherited(std::vector<int>* inherited);

// Reads what a process that keeps a sandbox reports of its start, once, over a pipe: a state, or
// the error for which it failed. Fails with kIo if it was killed.
Result<SandboxState> AwaitReady(const Fd& ready);

// A sandbox that is being started.
struct Starting {
  Facts facts;  // Its `pid` is a child of the calling process.
  Fd ready;     // AwaitReady() reads it. If it is closed before, the sandbox ends.
};
// Starts the two processes. Fails if the name is taken. `in_keeper` is what the keeper, a copy of
// the calling process, does first.
Result<Starting> StartKeeper(const CreateRequest& request,
                             const std::function<void()>& in_keeper = {});

// Starts the two processes and waits until the first command could run. If the caller ends before
// that, so do they. Fails as run::Run() does, or if the name is taken. `in_keeper` is what the
// keeper, a copy of the calling process, does first.
Result<Created> Create(const CreateRequest& request, const std::function<void()>& in_keeper = {});

}  // namespace session
