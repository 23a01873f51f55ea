// SPDX-License-Identifier: Apache-2.0
// OpenShell's gateway: starts one for this run, or attaches to one that is there. sandbox.h
// creates sandboxes on it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "backend/openshell/client/client.h"
#include "backend/openshell/client/command_line.h"
#include "backend/openshell/state_directory.h"
#include "base/child.h"
#include "base/result.h"

namespace openshell {

// OpenShell's gateway: one of this run's own, or one that others run. Its configuration is in this
// run's own directory.
class Gateway {
 public:
  // Starts a gateway on this machine, for this run alone: its own port, keys, database, podman
  // socket and network. Fails with kUnsupported if this user cannot have one; with kNotFound,
  // naming it, if a program is missing.
  static Result<std::unique_ptr<Gateway>> Start(ProgramPlaces places, int cancel = -1);
  // Attaches to the gateway `where`: a URL, with client certificates (ca.crt, tls.crt, tls.key) in
  // `tls`; or a name that this user has registered with `openshell gateway add`, whose credentials
  // are copied. Fails with kTemporary if it does not answer, with kSetup if it refuses the
  // credentials or is not the one that they are for, with kUnsupported for its version.
  static Result<std::unique_ptr<Gateway>> Attach(ProgramPlaces places, const std::string& where,
                                                 const std::string& tls, int cancel = -1);

  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  // Ends what Start() started.
  ~Gateway();

  // Leaves the state on this machine, so that the next sweeps remove what is still at the gateway.
  void KeepState() { state_.Keep(); }

  const Client& client() const { return *client_; }
  // Returns another client of it, for an object of its own.
  std::unique_ptr<Client> Connect() const;
  const StateDirectory& state() const { return state_; }
  // Returns the name of the run, which sandbox, providers and labels have.
  const std::string& name() const { return state_.name(); }
  bool local() const { return service_.has_value(); }
  // Returns the words that make the user's `openshell` talk to it, before its subcommand.
  const std::string& invocation() const { return invocation_; }
  // Returns a descriptor that is readable once a gateway of this run's own has ended; -1 if the
  // gateway is not this run's own.
  int ended() const { return service_ ? service_->exit().get() : -1; }
  const std::string& version() const { return version_; }
  // Returns what a gateway of this run's own has written to its log so far; empty if it is not this
  // run's own, or wrote more than 4 MiB.
  std::string Log() const;

 private:
  Gateway(StateDirectory state, CommandLine openshell)
      : state_(std::move(state)), openshell_(std::move(openshell)), client_(Connect()) {}

  Status StartPodman();
  Status AwaitPodman();
  Status MakeNetwork();
  struct Network {
    std::string range;    // "10.89.7.0/24".
    std::string address;  // The bridge's own: "10.89.7.1/24".
  };
  // Adopts the network that podman made, with its interface called `bridge`.
  Result<Network> AdoptNetwork(const std::string& bridge);
  Status MakeKeys();
  Status StartService();
  Result<bool> TryPort(int port);
  Status CheckPortWasTaken();
  std::string LogPath() const { return state_.path() + "/gateway.log"; }
  Status Register(const std::string& endpoint, const std::string& tls, int port);
  Status CopyRegistered(const std::string& name);
  Status CheckAnswer(std::chrono::milliseconds time);
  // Finds out which generation it is of. Fails as Attach() does.
  Status ChooseClient();

  StateDirectory state_;  // Destroyed last.
  CommandLine openshell_;
  std::unique_ptr<Client> client_;
  bool by_rpc_ = false;  // The client asks by gRPC, and not OpenShell's command.
  std::string version_;
  std::string invocation_;
  std::optional<Child> podman_;
  std::optional<Child> service_;
};

// The value of `--gateway` for a gateway of the run's own, whatever this user has selected.
inline constexpr char kOwnGateway[] = "own";
// Returns the name of the gateway that this user's `openshell` talks to: of OPENSHELL_GATEWAY, or
// as `openshell gateway select` left it; empty if there is none.
std::string ActiveGateway();

}  // namespace openshell
