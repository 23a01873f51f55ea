// SPDX-License-Identifier: Apache-2.0
// Finds credentials in one line of text, in time linear in its length.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace change {

struct SecretMatch {
  size_t at = 0;        // Offset of the secret in the line.
  size_t length = 0;    // In bytes, its prefix included.
  std::string kind;     // "a GitHub token".
  std::string shown;    // The part that may be shown: the fixed prefix ("ghp_"), or empty.
  bool certain = true;  // False for a mention rather than the thing itself; worth a warning.
};

// Finds tokens by the forms that their issuers document, private key headers, and values with much
// entropy that are assigned to a name such as password, secret, token or api_key. What repeats few
// characters, or says EXAMPLE, is a placeholder and no match. Matches do not overlap and come in
// order.
std::vector<SecretMatch> FindSecrets(std::string_view line);

}  // namespace change
