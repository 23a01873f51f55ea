// SPDX-License-Identifier: Apache-2.0
#include "sandbox/mask.h"

#include <algorithm>
#include <array>
#include <set>

#include "policy/model/own_places.h"

namespace sandbox {
namespace {

constexpr std::array<std::string_view, 8> kHomes = {"/root", "/home",       "/mnt",  "/media",
                                                    "/srv",  "/lost+found", "/boot", "/Users"};

constexpr auto kSystemSecrets = std::to_array<std::string_view>({
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/etc/docker/key.json",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/gitlab-runner",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/NetworkManager/system-connections",
    "/etc/netplan",
    "/etc/apt/auth.conf",
    "/etc/apt/auth.conf.d",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/var/lib/docker",
    "/var/lib/kubelet",
    "/var/lib/cloud",
    "/var/lib/waagent",
    "/var/lib/private",
    "/var/spool/cron",
    "/var/spool/mail",
});

// Relative to a home directory. Collected from what attacks on CI look for.
constexpr auto kHomeSecrets = std::to_array<std::string_view>({
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/op",
    ".config/doctl",
    ".config/rclone",
    ".config/helm",
    ".config/containers/auth.json",
    ".config/git/credentials",
    ".docker",
    ".kube",
    ".helm",
    ".netrc",
    "_netrc",
    ".git-credentials",
    ".gitconfig",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pip",
    ".config/pip",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".bundle/config",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".nuget/NuGet",
    ".terraform.d",
    ".terraformrc",
    ".pulumi",
    ".vault-token",
    ".databrickscfg",
    ".snowsql",
    ".pgpass",
    ".my.cnf",
    ".boto",
    ".s3cfg",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".config/opencode",
    ".local/share/opencode",
    ".local/share/keyrings",
    ".password-store",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
});

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

// A self-hosted runner keeps its registration beside its binaries.
constexpr auto kRunnerSecrets = std::to_array<std::string_view>({
    "actions-runner/.credentials",
    "actions-runner/.credentials_rsaparams",
    "actions-runner/.runner",
    "runners/.credentials",
    "runners/.credentials_rsaparams",
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
  auto beneath = [&](std::string_view secret) { return Beneath(path, std::string(secret)); };
  if (std::any_of(kSystemSecrets.begin(), kSystemSecrets.end(), beneath)) return true;
  std::vector<std::string> homes = {"/root", host.home};
  if (Beneath(path, "/home")) homes.push_back(path.substr(0, path.find('/', 6)));
  for (const std::string& home : homes) {
    auto beneath_home = [&](std::string_view name) {
      return !home.empty() && Beneath(path, home + "/" + std::string(name));
    };
    if (std::any_of(kHomeSecrets.begin(), kHomeSecrets.end(), beneath_home)) return true;
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
  for (std::string_view path : kSystemSecrets) consider(std::string(path));
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
  for (const std::string& home : homes) {
    for (std::string_view name : kHomeSecrets) consider(home + "/" + std::string(name));
    for (std::string_view name : kRunnerSecrets) consider(home + "/" + std::string(name));
  }

  // The topmost is enough: what lies beneath a hidden directory is hidden with it.
  std::vector<std::string> topmost;
  for (const std::string& path : found) {
    if (!IsBeneathAny(path, topmost)) topmost.push_back(path);
  }
  return topmost;
}

}  // namespace sandbox
