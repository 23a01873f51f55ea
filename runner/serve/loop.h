// SPDX-License-Identifier: Apache-2.0
// The loop of a process that gives one client sandboxes, whose requests are lines of JSON-RPC. What
// the requests mean is decided by a class derived from it.
#pragma once

#include <signal.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "serve/creation.h"
#include "serve/message.h"
#include "serve/method.h"
#include "serve/output.h"
#include "serve/task.h"
#include "session/place.h"

namespace serve {

inline constexpr size_t kTasksMax = 512;  // Requests that go on at once.

// One client. Its sandboxes end with it, and so do they if this process is killed.
class Loop {
 public:
  // `in` and `out` are borrowed. `out` is made non-blocking where it is a pipe.
  Loop(session::Place place, CreateOptions options, int in, int out);
  virtual ~Loop() = default;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Serves until the client has gone: `in` ends, `out` breaks, the process ends that started this
  // one, or SIGTERM, SIGINT or SIGHUP comes, which are blocked from now on. When this returns, no
  // sandbox of the client is left.
  Status Serve();

 protected:
  virtual void Take(const Request& request) = 0;
  // A sandbox that was created here has ended.
  virtual void TakeEnd(const std::string& sandbox) = 0;
  // Called in each turn of the loop, and by next_turn(): requests may be begun.
  virtual void Turn() {}
  virtual Deadline next_turn() const { return Deadline::Never(); }

  // Begins a request that goes on, by the name and the params of the protocol's method (checked).
  // Its result goes to `answer`, if that is set, and otherwise to the client.
  Status BeginTask(const std::string& id, const std::string& method, const codec::Json& params,
                   Task::Answer answer = {});
  // Returns the request with that id that goes on; nullptr if there is none.
  Task* FindTask(const std::string& id);
  // Has a sandbox that was created here read its policy again.
  Status ReloadPolicy(const std::string& sandbox) const;
  const std::vector<Method>& methods() const { return methods_; }
  Output& output() { return output_; }

 private:
  // A sandbox that was created here, or is being.
  struct Own {
    std::string name;                // One that ends may have given it up to another.
    Fd process;                      // A pidfd of its keeper.
    codec::Json options;             // What it was created with.
    const Task* creation = nullptr;  // Until it is answered.
    bool ended = false;
  };

  bool ReadsClient() const;
  std::vector<pollfd> Sources() const;
  Deadline Next() const;
  void ReadClient();
  void TakeLine(std::string_view line);
  // Fails with kNotFound if no sandbox of that name was created here and lives, and with kTemporary
  // if it is being created.
  Result<std::map<pid_t, Own>::const_iterator> FindOwn(const std::string& sandbox) const;
  Result<std::unique_ptr<Task>> StartCreation(const std::string& id, const codec::Json& params,
                                              const std::string& origin);
  Result<std::unique_ptr<Task>> StartTask(const std::string& id, const std::string& method,
                                          const codec::Json& params);
  void DropEnded(const pollfd* sources);
  void DropAnswered();
  void TellEnded();
  Status AskEnd(pid_t keeper, const std::string& name) const;
  void EndSandboxes();
  // Closes, in a copy of this process, what is the client's and its requests'. Nothing of it is
  // destroyed there.
  void Forget();

  session::Place place_;
  CreateOptions options_;
  const std::vector<Method> methods_;
  int in_;
  Output output_;
  Fd client_;   // A pidfd of the process that started this one.
  Fd signals_;  // Readable once this process is to end.
  sigset_t mask_before_{};
  bool ended_ = false;
  std::string line_;    // What came of the next line,
  bool skips_ = false;  // or that the rest of it is skipped.
  std::map<std::string, std::unique_ptr<Task>> tasks_;
  std::map<pid_t, Own> own_;  // By their keepers, which are children of this process.
};

}  // namespace serve
