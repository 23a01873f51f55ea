// SPDX-License-Identifier: Apache-2.0
#include "policy/access.h"

namespace policy {

std::vector<HttpRule> ExpandAccess(Access access, codec::Position at) {
  std::vector<std::string_view> methods;
  if (access == Access::kReadOnly) methods = {"GET", "HEAD", "OPTIONS"};
  if (access == Access::kReadWrite) methods = {"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH"};
  if (access == Access::kFull) methods = {"*"};
  std::vector<HttpRule> rules;
  for (std::string_view method : methods) {
    rules.push_back({std::string(method), "**", {}, at});
  }
  return rules;
}

std::string_view AccessName(Access access) {
  switch (access) {
    case Access::kNone:
      return "";
    case Access::kReadOnly:
      return "read-only";
    case Access::kReadWrite:
      return "read-write";
    case Access::kFull:
      return "full";
  }
  return "";
}

std::vector<std::string_view> AccessNames() { return {"read-only", "read-write", "full"}; }

bool IsKnownMethod(std::string_view method) {
  for (std::string_view known : {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "*"}) {
    if (method == known) return true;
  }
  return false;
}

}  // namespace policy
