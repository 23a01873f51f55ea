// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/load/fields.h"
#include "policy/model/policy.h"

namespace policy {

// Parses `rules` and `deny_rules` of `endpoint`, whose protocol and options are known. An entry
// with several tools gives several rules. Both fail with kInvalid and the place.
Result<std::vector<HttpRule>> ParseRules(Reader* reader, const Endpoint& endpoint,
                                         const codec::YamlNode& list);
Result<std::vector<HttpRule>> ParseDenyRules(Reader* reader, const Endpoint& endpoint,
                                             const codec::YamlNode& list);

// Parses the patterns of a matcher: text, `{glob: text}` or `{any: [text]}`; at least one, none
// empty. `what` names it in messages: "query 'tag'".
Result<std::vector<std::string>> ParsePatterns(Reader* reader, std::string_view what,
                                               const codec::YamlNode& node);

// Fails unless `pattern` is a glob. `what` names it in the message; `delimiter` as
// codec/glob/glob.h.
Status CheckGlob(const Reader& reader, codec::Position at, std::string_view what,
                 std::string_view pattern, char delimiter);

// True if OpenShell's documents let a star of `path` cross '/', which its code does not.
bool HasShortStar(std::string_view path);

}  // namespace policy
