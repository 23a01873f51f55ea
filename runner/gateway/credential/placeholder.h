// SPDX-License-Identifier: Apache-2.0
// The placeholders that represent secrets in the sandbox, in all of OpenShell's forms (its section
// on placeholders):
//   openshell:resolve:env:KEY                 ours, and OpenShell's plain one
//   openshell:resolve:env:v3_KEY              with a revision
//   openshell:resolve:env:s<64 hex>_KEY       stable over revisions
//   anythingOPENSHELL-RESOLVE-ENV-KEY         for clients that look at the form of a key first
// Only the name after the marker is parsed here; credentials.h looks it up.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gateway {

// One placeholder in a text.
struct Placeholder {
  size_t at = 0;
  size_t size = 0;  // With an alias's prefix.
  // The name as written, which may begin with a revision. Part of the text; not empty.
  std::string_view name;
};

// True if a placeholder begins somewhere in `text`, whole or not.
bool HasMarker(std::string_view text);

// Returns the first placeholder at or behind `from`. A marker without a name behind it does not
// count.
std::optional<Placeholder> FindPlaceholder(std::string_view text, size_t from = 0);

// Returns the name when `text` is one placeholder and nothing else.
std::optional<std::string_view> WholePlaceholder(std::string_view text);

// Returns `name` without "v<digits>_" or "s<64 hex>_" in front; the same when there is neither.
std::string_view WithoutRevision(std::string_view name);

// Returns `text` with every placeholder in it shown as [CREDENTIAL]: for records.
std::string RedactPlaceholders(std::string_view text);

// Looks for the beginning of a placeholder in a body that comes in pieces of any size, plain or
// percent-encoded as in a form.
class MarkerScanner {
 public:
  // True once a marker has ended in this piece or an earlier one.
  bool Feed(std::string_view piece);
  bool found() const { return found_; }

 private:
  std::string tail_;  // The last bytes seen: less than a marker.
  bool found_ = false;
};

}  // namespace gateway
