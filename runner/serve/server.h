// SPDX-License-Identifier: Apache-2.0
// `agentic-ci serve`: sandboxes for a program that talks to this process over its standard streams.
#pragma once

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

// One client. Its sandboxes end with it, and so do they if this process is killed.
class Server {
 public:
  // `in` and `out` are borrowed. `out` is made non-blocking where it is a pipe.
  Server(session::Place place, CreateOptions options, int in, int out);

  // Serves until the client has gone: `in` ends, `out` breaks, or the process ends that started
  // this one. When this returns, no sandbox of the client is left.
  Status Serve();

 private:
  // A sandbox that was created here, or is being.
  struct Own {
    pid_t keeper = -1;
    Fd process;  // A pidfd of it.
    bool has_policy = false;
  };

  bool ReadsClient() const;
  std::vector<pollfd> Sources() const;
  Deadline Next() const;
  void ReadClient();
  void TakeLine(std::string_view line);
  void Take(const Request& request);
  Status Begin(const Request& request);
  Status BeginTask(const Request& request);
  Status TakeControl(const Request& request, codec::Json* result);
  Status ReloadPolicy(const std::string& name) const;
  codec::Json Introduce() const;
  void DropEnded(const pollfd* sources);
  void EndSandboxes();
  // Closes, in a copy of this process, what is the client's and its requests'. Nothing of it is
  // destroyed there.
  void Forget();

  session::Place place_;
  CreateOptions options_;
  const std::vector<Method> methods_;
  int in_;
  Output output_;
  Fd client_;  // A pidfd of the process that started this one.
  bool initialized_ = false;
  bool ended_ = false;
  std::string line_;    // What came of the next line,
  bool skips_ = false;  // or that the rest of it is skipped.
  std::map<std::string, std::unique_ptr<Task>> tasks_;
  std::map<std::string, Own> own_;
};

}  // namespace serve
