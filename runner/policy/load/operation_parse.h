// SPDX-License-Identifier: Apache-2.0
// Parses what a policy says about GraphQL operations.
#pragma once

#include <vector>

#include "base/result.h"
#include "policy/load/fields.h"
#include "policy/model/policy.h"

namespace policy {

// True if the mapping has `operation_type`, `operation_name` or `fields`.
bool NamesOperation(const Fields& fields);

// Parses one match of `protocol: graphql`, or of WebSocket messages that carry it. Fails with
// kInvalid and the place.
Result<HttpRule> ParseOperationMatch(Reader* reader, const Fields& fields);

// Parses `graphql_persisted_queries`: id to operation, in the file's order.
Result<std::vector<PersistedQuery>> ParsePersistedQueries(Reader* reader, const Fields& endpoint);

}  // namespace policy
