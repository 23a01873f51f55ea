// SPDX-License-Identifier: Apache-2.0
// The one place that knows which forges there are, and which of them runs this job.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/text/neutral.h"
#include "forge/client.h"
#include "forge/event.h"
#include "forge/event_text.h"
#include "forge/facts.h"
#include "forge/forge.h"

namespace forge {

std::span<const Facts* const> AllFacts();

// Returns the row of a forge. For kNone, and a kind that has no row, one that permits nothing.
const Facts& FactsOf(ForgeKind kind);

// Returns the forge that runs this job: kNone if none does, or if the variables of several CI
// systems are there.
ForgeKind ForgeOf(const EnvironmentReader& environment);

// Reads the event of the forge that runs this job. Where none does, the event's forge is kNone, and
// only the variables that other continuous integrations set are looked at, for `unread_ci`. Fails
// with kInvalid if it is not an event (no JSON, larger than kEventBytesMax, a malformed hash or
// repository), with kRefused for a reference that is not handled, with kNotFound if its file is not
// there, with kSetup if a variable is missing that every job has.
Result<Event> ReadEvent(const EnvironmentReader& environment);

// Does the part of ReadEvent that is pure: `payload` is the text of the event's file, which a
// stranger wrote parts of; empty if there is none.
Result<Event> ParseEvent(const EnvironmentReader& environment, std::string_view payload);

// Reads the texts of that event, as ReadEvent() does. Returns an empty text without a forge, or
// without the event's file.
Result<EventText> ReadEventText(const EnvironmentReader& environment, const Event& event);

// Returns whether the forge searches a job's log for GitHub's workflow commands (forge/actions.h).
bool ReadsWorkflowCommands(ForgeKind forge);

// Returns the commands that the log of this job is searched for; nullopt if no continuous
// integration runs it.
std::optional<codec::LogCommands> LogCommandsOf(const EnvironmentReader& environment);

// Returns whether `name` is a variable by which ReadEvent() recognises a continuous integration,
// also one whose events are not read.
bool ShowsCi(std::string_view name);

// Returns whether `name` is, or by its beginning may be, a variable that a CI system sets.
bool IsOfCi(std::string_view name);

// Returns the forge whose API is at `api_url`: by its ending (Facts::api_ending), else that of the
// event if its API has no such ending, else GitHub.
ForgeKind ForgeAt(std::string_view api_url, ForgeKind event);

// Returns the options that all requests to the forge share, and the address that they go to unless
// the caller says otherwise; the token and how to reach the service are left to the caller.
// `api_url` may be empty.
ClientOptions OptionsFor(const Place& place, const std::string& api_url);

// Opens the forge at `place`, which borrows the client. Fails with kInvalid for a malformed
// repository or number, or a kind without a row.
Result<std::unique_ptr<Forge>> Open(Client& client, const Place& place);

}  // namespace forge
