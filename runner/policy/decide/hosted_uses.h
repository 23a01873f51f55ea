// SPDX-License-Identifier: Apache-2.0
// Finds in the body of a request to a model what the model's provider would do for it: one table of
// the APIs' tools. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codec/data/json.h"
#include "policy/model/hosted_tools.h"

namespace policy {

// The APIs whose bodies differ. Bedrock has members of its own beside those of Anthropic.
enum class ModelFamily : unsigned { kAnthropic = 1, kChat = 2, kResponses = 4, kGemini = 8 };

// One thing that the provider would do.
struct HostedUse {
  std::string kind;  // A name of kHostedKinds; empty for a type that is of no known kind.
  std::string name;  // What asks for it, as the request has it: "web_search_20250305".
  // The request restricts the tool to `domains`; if that is empty, the tool reaches no further
  // host.
  bool bounded = false;
  std::vector<std::string> domains = {};  // As written, but without a path; "" for an odd one.

  friend bool operator==(const HostedUse&, const HostedUse&) = default;
};

// What is known about a request, apart from its body.
struct HostedPlace {
  ModelFamily family = ModelFamily::kAnthropic;
  std::string model;  // The model that the path names; may be empty.
  std::string host;   // The server's name: URLs of its own files are not fetched.
};

// Returns all uses, in the order of the body. Members count in any case of letters and with or
// without '_', since some servers read them so.
std::vector<HostedUse> FindHostedUses(const HostedPlace& place, const codec::Json& body);

}  // namespace policy
