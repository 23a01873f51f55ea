// SPDX-License-Identifier: Apache-2.0
// The only list of the keys of a policy file, with endpoint_keys.h: unknown-key hints, the checks
// of parse.cc, the JSON Schema and docs/reference/policy.md all come from it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace policy {

// The mappings of a policy file.
enum class Section {
  kShortForm,  // A file with `endpoints:`.
  kDocument,   // A file with `version:`.
  kFilesystem,
  kLandlock,
  kProcess,
  kNetworkPolicy,
  kBinary,
  kEndpoint,
  kRule,     // One entry of `rules`.
  kMatch,    // `allow`, and one entry of `deny_rules`.
  kMatcher,  // One value under `query`, when it is a mapping.
  kParams,   // `params`.
  kPersistedQuery,
  kJsonRpc,
  kMcp,
  kCredentialBinding,
  kMiddleware,
  kMiddlewareConfig,
  kMiddlewareEndpoints,
};

// The form of a key's value.
enum class Shape {
  kText,  // A plain number or boolean too, as it is written; of a matcher, neither.
  kBoolean,
  kNumber,     // From `least` to `most`.
  kNumbers,    // A list of them.
  kChoice,     // One of `values`.
  kTexts,      // A list.
  kMapping,    // Of section `inner`, as all below.
  kMappings,   // A list.
  kMap,        // Names of the author's choice to mappings.
  kPattern,    // One pattern, as text, or a mapping.
  kPatterns,   // Names of the author's choice to these.
  kHosted,     // `none`, or a list of kinds of hosted tools (hosted_tools.h).
  kUntrusted,  // `none`, or a mapping (after_untrusted.h).
};

struct KeySpec {
  Section section;
  std::string_view name;
  Shape shape;
  std::string_view fallback;  // The fallback as shown; "required" if there is none.
  std::string_view doc;       // One sentence or more.
  std::span<const std::string_view> values = {};  // The values of a kChoice.
  bool any_case = false;                          // kChoice: in any case of letters.
  int64_t least = 0;                              // kNumber and kNumbers.
  int64_t most = 0;
  Section inner = Section::kDocument;  // The shapes that have one.
  std::string_view pattern = {};       // kText and kTexts: what a text looks like (ECMA-262).
};

std::span<const KeySpec> PolicyKeys();
// Returns the sections in the order of the reference.
std::span<const Section> PolicySections();
// Returns whether `key` may be there with nothing behind it (null, blank text, an empty list or
// mapping) and is then read as absent. Returns false if more passes without the key than with any
// value of it.
bool MayBeEmpty(const KeySpec& key);
// Returns null if `section` has no such key.
const KeySpec* FindKey(Section section, std::string_view name);
// Returns "an endpoint", "a rule", ...: how messages call a mapping.
std::string_view SectionName(Section section);

// Returns the name that the JSON Schema has for it: "endpoint".
std::string_view SectionId(Section section);

// Renders docs/reference/policy.md, in Markdown: every key, in the order of the table.
std::string RenderPolicyReference();

}  // namespace policy
