// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "change/secrets/secret_pattern.h"

namespace change {

// Values that look random, assigned to a name whose last word says that they are secret:
// `"db_password": "..."`, `API_KEY=...`, `authToken := "..."`. A name that goes on (token_count,
// secretName) says something else. Linear in `line`; at most 100 matches. Use FindSecrets().
std::vector<SecretMatch> FindAssignedSecrets(std::string_view line);

}  // namespace change
