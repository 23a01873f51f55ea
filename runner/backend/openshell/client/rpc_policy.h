// SPDX-License-Identifier: Apache-2.0
// Policies and policy proposals as messages of OpenShell 0.1.
#pragma once

#include <string>
#include <vector>

#include "backend/openshell/client/proposal.h"
#include "base/result.h"
#include "codec/data/json.h"

namespace openshell {

// Returns the message of a policy as RenderPolicy() gives it, for rpc_messages.h. Fails with
// kInvalid if that is not JSON.
Result<codec::Json> PolicyMessage(const std::string& policy);

// Returns the proposals in the response of GetDraftPolicy whose identifiers are IsProposalId().
std::vector<Proposal> ProposalsOf(const codec::Json& response);

// Return a member of a message: null, an empty list, or an empty line if it is not there.
const codec::Json& MemberOf(const codec::Json& json, const char* name);
const codec::Json::Array& ListOf(const codec::Json& json, const char* name);
// A text as one bounded line.
std::string NeutralMember(const codec::Json& json, const char* name);

}  // namespace openshell
