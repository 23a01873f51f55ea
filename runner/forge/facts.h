// SPDX-License-Identifier: Apache-2.0
// What the program knows of a forge before it speaks to it: one row per forge, in the forge's own
// folder. forge/open/open.h has the list.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "base/secret.h"
#include "codec/text/neutral.h"
#include "forge/client.h"
#include "forge/event.h"
#include "forge/event_text.h"
#include "forge/forge.h"
#include "net/proxy.h"

namespace forge {

// How it becomes known who started a run, which decides about secrets.
enum class StarterProof {
  kNone,        // It does not: no run has secrets.
  kPermission,  // The forge is asked what the event's actors may do: ReadPermission().
  kSignature,   // The forge signs what it says of the job: Facts::verify.
};

// The values that a signature is verified against, and the ways to get them.
struct SignatureTerms {
  std::string issuer;     // If empty, the event's server.
  std::string keys_file;  // Empty if the issuer publishes them.
  std::string ca_file;    // If empty, the system's.
  net::Proxy proxy;
};

// An application of the forge, which can post in its own name.
struct AppKey {
  std::string id;
  Secret pem;  // Its private key.
};

// A member that a row leaves out permits nothing, or is the usual word.
struct Facts {
  ForgeKind kind = ForgeKind::kNone;
  std::string_view name = "none";  // For records; report/wording.cc has the addresses of its pages.
  Capabilities can = {};

  // Variables that its CI sets in every job, and no other CI does. Forges whose jobs have each
  // other's variables share one list. A job's own YAML can change the values, and remove none.
  std::span<const char* const> variables = {};
  std::span<const char* const> flags = {};  // Those of them that are "true" for this forge alone.
  std::span<const std::string_view> prefixes = {};  // That its other variables begin with.
  // The variable with the path of the event's file; null if other variables have all of the event.
  const char* event_file = nullptr;
  // Never null in a row. Read the event and its texts; `payload` is the file's text, which a
  // stranger wrote parts of. Fail as ParseEvent() does.
  Result<Event> (*parse_event)(const EnvironmentReader&, std::string_view payload) = nullptr;
  Result<EventText> (*parse_text)(const EnvironmentReader&, std::string_view payload) = nullptr;
  std::span<const std::string_view> events = {};  // Its names of events, for a task's `when`.
  // What a job's log is searched for. Of kWorkflow there are also annotations, and a fork's run
  // has a token that only reads.
  codec::LogCommands log_commands = codec::LogCommands::kAll;
  bool folds_log = false;                  // By the sections of forge/open/log_section.h.
  std::string_view artifacts_anchor = {};  // The part of a run's page that has its artifacts.
  StarterProof starter = StarterProof::kNone;
  // With kSignature. Takes what the job's token says into the event; returns whether there is one.
  // Fails with kSetup if it does not verify or contradicts the variables, with kTemporary if the
  // issuer did not answer.
  Result<bool> (*verify)(const EnvironmentReader&, const SignatureTerms&, Event*,
                         Deadline) = nullptr;
  std::string_view id_token = {};       // The variable with that token.
  std::string_view id_token_hint = {};  // What makes a job have it.

  std::string_view api_ending = {};  // Of the API's address, if that distinguishes this forge.
  bool (*valid_repository)(std::string_view) = ValidRepository;
  std::string_view repository = "repository";  // The word for one.
  std::string_view repository_form = "OWNER/NAME";
  const char* token = "";  // The variable with the token that posts.
  // Returns a token of the application for `repository` alone, with `permissions` alone; and ends
  // that token. Both null if there are no applications.
  Result<Secret> (*app_token)(const ClientOptions&, const std::string& repository, const AppKey&,
                              const std::vector<std::string>& permissions, Deadline) = nullptr;
  Status (*revoke)(Client&, Deadline) = nullptr;
  // A token that jobs have, which may not post, and where the findings are instead: in the job's
  // log, whenever a part could not be posted. Both empty if there is none.
  const char* weak_token = "";
  std::string_view findings_elsewhere = {};
  // Never null in a row: what OptionsFor() and Open() of forge/open/open.h need.
  ClientOptions (*client)(const Place&) = nullptr;
  std::unique_ptr<Forge> (*open)(Client&, const Place&) = nullptr;
  // Returns the open proposal whose head is the event's, 0 if there is none. Fails with kRefused if
  // there are several. Null if no event needs it.
  Result<int64_t> (*find_proposal)(Client&, const Event&, Deadline) = nullptr;
  // Returns the address of the report's page; empty if it is not known. Null if there is none.
  std::string (*find_page)(Client&, const EnvironmentReader&, const Event&,
                           const std::string& report_dir, Deadline) = nullptr;
};

// Opens a forge of the class T: Facts::open.
template <typename T>
std::unique_ptr<Forge> OpenAs(Client& client, const Place& place) {
  return std::make_unique<T>(client, place);
}

}  // namespace forge
