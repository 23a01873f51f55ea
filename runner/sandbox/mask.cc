// SPDX-License-Identifier: Apache-2.0
#include "sandbox/mask.h"

#include <algorithm>
#include <array>
#include <set>

#include "policy/model/credential_places.h"
#include "policy/model/own_places.h"

namespace sandbox {
namespace {

constexpr std::array<std::string_view, 8> kHomes = {"/root", "/home",       "/mnt",  "/media",
                                                    "/srv",  "/lost+found", "/boot", "/Users"};

// Relative to where programs are installed: what npm, pip and shells read there.
constexpr auto kInstallationSecrets = std::to_array<std::string_view>({
    "etc/npmrc",
    ".npmrc",
    "pip.conf",
    ".pypirc",
    ".netrc",
    ".git-credentials",
    ".env",
    ".ssh",
    ".aws",
    ".docker",
    "credentials",
    "credentials.toml",
});

}  // namespace

bool Beneath(const std::string& path, const std::string& top) {
  return path == top || (path.size() > top.size() && path.compare(0, top.size(), top) == 0 &&
                         (top == "/" || path[top.size()] == '/'));
}

bool IsBeneathAny(const std::string& path, const std::vector<std::string>& tops) {
  return std::any_of(tops.begin(), tops.end(),
                     [&](const std::string& top) { return Beneath(path, top); });
}

bool IsHome(std::string_view top_level) {
  return std::find(kHomes.begin(), kHomes.end(), top_level) != kHomes.end();
}

bool IsPrivate(const std::string& path) {
  return std::any_of(policy::kOwnPlaces.begin(), policy::kOwnPlaces.end(),
                     [&](std::string_view top) { return Beneath(path, std::string(top)); });
}

bool IsSecret(const std::string& path, const HostView& host, const std::vector<std::string>& also) {
  if (IsBeneathAny(path, also)) return true;
  std::vector<std::string> homes = {"/root", host.home};
  if (Beneath(path, "/home")) homes.push_back(path.substr(0, path.find('/', 6)));
  for (const policy::CredentialPlace& place : policy::kCredentialPlaces) {
    if ((place.uses & policy::kHide) == 0) continue;
    const std::string name(place.path);
    auto in_home = [&](const std::string& home) {
      return !home.empty() && Beneath(path, home + "/" + name);
    };
    if (name.starts_with('/') ? Beneath(path, name)
                              : std::any_of(homes.begin(), homes.end(), in_home))
      return true;
  }
  return false;
}

std::vector<std::string> InstallationSecrets(const std::string& top) {
  std::vector<std::string> paths;
  for (std::string_view name : kInstallationSecrets) paths.push_back(top + "/" + std::string(name));
  return paths;
}

std::vector<std::string> SecretPaths(const std::vector<std::string>& shown, const HostView& host,
                                     const std::vector<std::string>& also) {
  std::set<std::string> found;
  auto consider = [&](const std::string& path) {
    if (host.kind(path) == PathKind::kMissing) return;
    // Compares with its own path: /var/spool/mail is a link, and so may a home be.
    std::string real = host.real(path);
    if (IsBeneathAny(real, shown)) found.insert(std::move(real));
  };
  for (const std::string& path : also) consider(path);

  bool homes_visible = std::any_of(shown.begin(), shown.end(), [](const std::string& top) {
    return Beneath(top, "/root") || Beneath(top, "/home") || Beneath("/home", top);
  });
  std::set<std::string> homes;
  if (!host.home.empty()) homes.insert(host.home);
  if (homes_visible) {
    homes.insert("/root");
    for (const std::string& name : host.list("/home")) {
      std::string home = "/home/" + name;
      bool seen = IsBeneathAny(home, shown) ||
                  std::any_of(shown.begin(), shown.end(),
                              [&](const std::string& top) { return Beneath(top, home); });
      if (seen) homes.insert(std::move(home));
    }
  }
  for (const policy::CredentialPlace& place : policy::kCredentialPlaces) {
    if ((place.uses & policy::kHide) == 0) continue;
    const std::string name(place.path);
    if (name.starts_with('/')) {
      consider(name);
      continue;
    }
    for (const std::string& home : homes) consider(home + "/" + name);
  }

  // The topmost is enough: what lies beneath a hidden directory is hidden with it.
  std::vector<std::string> topmost;
  for (const std::string& path : found) {
    if (!IsBeneathAny(path, topmost)) topmost.push_back(path);
  }
  return topmost;
}

}  // namespace sandbox
