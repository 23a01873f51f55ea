// SPDX-License-Identifier: Apache-2.0
#include "sandbox/workdir.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "sandbox/mask.h"

namespace sandbox {
namespace {

constexpr std::array<std::string_view, 7> kPrivate = {"/proc", "/dev", "/tmp",    "/sandbox",
                                                      "/sys",  "/run", "/var/run"};

}  // namespace

std::string CleanPath(const std::string& path) {
  std::string clean;
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '/');) {
    if (!part.empty() && part != ".") clean += "/" + part;
  }
  return clean.empty() ? "/" : clean;
}

bool IsPrivate(const std::string& path) {
  return std::any_of(kPrivate.begin(), kPrivate.end(),
                     [&](std::string_view top) { return Beneath(path, std::string(top)); });
}

Result<WorkdirAccess> DecideWorkdir(const policy::FilesystemPolicy& filesystem,
                                    const std::vector<LandlockRule>& rules,
                                    const std::string& checkout) {
  if (filesystem.include_workdir) return WorkdirAccess::kWritable;
  bool readable = false;
  bool private_place = IsPrivate(checkout) || Beneath(checkout, "/var/tmp");
  for (const LandlockRule& rule : rules) {
    // The sandbox's own /tmp says nothing about a checkout on the host's.
    bool own = rule.path == "/var/tmp" ||
               std::find(kPrivate.begin(), kPrivate.end(), rule.path) != kPrivate.end();
    if (own || !Beneath(checkout, rule.path)) continue;
    if (rule.writable) return WorkdirAccess::kWritable;
    readable = true;
  }
  std::vector<std::string> inside = filesystem.read_write;
  if (!readable) {
    inside.insert(inside.end(), filesystem.read_only.begin(), filesystem.read_only.end());
  }
  for (const std::string& path : inside) {
    if (!Beneath(CleanPath(path), checkout)) continue;
    if (!private_place) return WorkdirAccess::kByLandlock;
    return Error{Code::kInvalid,
                 path + " of the policy lies in the checkout, which include_workdir: false closes",
                 "include_workdir: true"};
  }
  return readable ? WorkdirAccess::kReadOnly : WorkdirAccess::kEmpty;
}

}  // namespace sandbox
