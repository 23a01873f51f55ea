// SPDX-License-Identifier: Apache-2.0
// The one list of what a policy file may say: unknown-key hints, the checks of parse.cc and
// docs/reference/policy.md all come from it.
#pragma once

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
  kRule,   // One entry of `rules`.
  kMatch,  // `allow`, and one entry of `deny_rules`.
  kQuery,  // One value under `query`, when it is a mapping.
};

enum class KeyState {
  kEnforced,
  kIgnored,      // Read and without effect.
  kNotEnforced,  // OpenShell's, and refused here: a promise this version cannot keep.
};

struct KeySpec {
  Section section;
  std::string_view name;
  std::string_view type;
  std::string_view fallback;  // As shown; "required" when there is none.
  std::string_view doc;       // One sentence or more.
  KeyState state = KeyState::kEnforced;
};

std::span<const KeySpec> PolicyKeys();
// Null when `section` has no such key.
const KeySpec* FindKey(Section section, std::string_view name);
// "endpoint", "deny rule", ...: how messages call a mapping.
std::string_view SectionName(Section section);

// docs/reference/policy.md, in Markdown: every key, in the order of the table.
std::string RenderPolicyReference();

}  // namespace policy
