// SPDX-License-Identifier: Apache-2.0
// Where programs keep credentials: the one table, with what is done about each place. A sandbox
// hides it, a checkout in which a step left it is shown without it, and `eval redteam` tries to
// read it. Collected from what attacks on CI look for.
#pragma once

#include <array>
#include <string_view>

namespace policy {

// Hidden on the host, whatever the policy exposes. So is what lies in it.
inline constexpr unsigned kHide = 1;
// In a checkout, the end of a path: a file that holds a credential and little else, or a directory
// of such files.
inline constexpr unsigned kWithhold = 2;
// The same, for settings among which a credential may be: only if the file seems to hold one.
inline constexpr unsigned kWithholdIfSecret = 4;
// A file that a hostile agent would read. It is hidden, or lies in a place that is.
inline constexpr unsigned kProbe = 8;

struct CredentialPlace {
  std::string_view path;  // Absolute: of the host; otherwise relative to a home directory.
  unsigned uses;
};

inline constexpr auto kCredentialPlaces = std::to_array<CredentialPlace>({
    {"/etc/shadow", kHide},
    {"/etc/shadow-", kHide},
    {"/etc/gshadow", kHide},
    {"/etc/gshadow-", kHide},
    {"/etc/sudoers", kHide},
    {"/etc/sudoers.d", kHide},
    {"/etc/ssl/private", kHide},
    {"/etc/krb5.keytab", kHide | kProbe},
    {"/etc/docker/key.json", kHide | kProbe},
    {"/etc/kubernetes", kHide},
    {"/etc/kubernetes/admin.conf", kProbe},
    {"/etc/rancher", kHide},
    {"/etc/rancher/k3s/k3s.yaml", kProbe},
    {"/etc/gitlab-runner", kHide},
    {"/etc/wireguard", kHide},
    {"/etc/openvpn", kHide},
    {"/etc/NetworkManager/system-connections", kHide},
    {"/etc/netplan", kHide},
    {"/etc/apt/auth.conf", kHide},
    {"/etc/apt/auth.conf.d", kHide},
    {"/etc/ssh/ssh_host_rsa_key", kHide | kProbe},
    {"/etc/ssh/ssh_host_ecdsa_key", kHide | kProbe},
    {"/etc/ssh/ssh_host_ed25519_key", kHide | kProbe},
    {"/var/lib/docker", kHide},
    {"/var/lib/kubelet", kHide},
    {"/var/lib/cloud", kHide},
    {"/var/lib/waagent", kHide},
    {"/var/lib/private", kHide},
    // In one of the sandbox's own places.
    {"/var/run/secrets/kubernetes.io/serviceaccount/token", kProbe},
    {"/var/spool/cron", kHide},
    {"/var/spool/mail", kHide},

    {".ssh", kHide | kWithhold},
    {".ssh/id_rsa", kProbe},
    {".ssh/id_ed25519", kProbe},
    {".ssh/id_ecdsa", kProbe},
    {".gnupg", kHide | kWithhold},
    {".gnupg/pubring.kbx", kProbe},
    {".aws", kHide | kWithhold},
    {".aws/credentials", kProbe},
    {".azure", kHide | kWithhold},
    {".azure/msal_token_cache.json", kProbe},
    {".config/gcloud", kHide | kWithhold},
    {".config/gcloud/application_default_credentials.json", kProbe},
    {".config/gh", kHide},
    {".config/gh/hosts.yml", kWithhold | kProbe},
    {".config/glab-cli", kHide},
    {".config/glab-cli/config.yml", kWithhold},
    {".config/hub", kHide | kWithhold},
    {".config/op", kHide | kWithhold},
    {".config/doctl", kHide | kWithhold},
    {".config/rclone", kHide | kWithhold},
    {".config/helm", kHide | kWithhold},
    {".config/containers/auth.json", kHide | kWithhold},
    {".config/git/credentials", kHide | kWithhold},
    {".docker", kHide},
    {".docker/config.json", kWithhold | kProbe},
    {".dockercfg", kHide | kWithhold},
    {".kube", kHide | kWithhold},
    {".kube/config", kProbe},
    {".helm", kHide},
    {".netrc", kHide | kWithhold | kProbe},
    {"_netrc", kHide | kWithhold},
    {".git-credentials", kHide | kWithhold | kProbe},
    {".gitconfig", kHide | kWithholdIfSecret},
    {".npmrc", kHide | kWithholdIfSecret | kProbe},
    {".yarnrc", kHide | kWithholdIfSecret},
    {".yarnrc.yml", kHide | kWithholdIfSecret},
    {".pypirc", kHide | kWithhold | kProbe},
    {".pip", kHide},
    {".config/pip", kHide},
    {"pip.conf", kHide | kWithholdIfSecret},
    {".cargo/credentials", kHide | kWithhold},
    {".cargo/credentials.toml", kHide | kWithhold | kProbe},
    {".gem/credentials", kHide | kWithhold},
    {".bundle/config", kHide | kWithholdIfSecret},
    {".composer/auth.json", kHide | kWithhold},
    {".config/composer/auth.json", kHide | kWithhold},
    {".m2/settings.xml", kHide | kWithhold},
    {".m2/settings-security.xml", kHide | kWithhold},
    {".gradle/gradle.properties", kHide | kWithholdIfSecret},
    {".nuget/NuGet", kHide},
    {".terraform.d", kHide},
    {".terraform.d/credentials.tfrc.json", kWithhold},
    {".terraformrc", kHide | kWithholdIfSecret},
    {".pulumi", kHide},
    {".pulumi/credentials.json", kWithhold},
    {".vault-token", kHide | kWithhold},
    {".databrickscfg", kHide | kWithhold},
    {".snowsql", kHide | kWithhold},
    {".pgpass", kHide | kWithhold},
    {".my.cnf", kHide | kWithhold},
    {".boto", kHide | kWithhold},
    {".s3cfg", kHide | kWithhold},
    {".claude", kHide},
    {".claude/.credentials.json", kWithhold | kProbe},
    {".claude.json", kHide | kWithhold},
    {".codex", kHide},
    {".codex/auth.json", kWithhold | kProbe},
    {".gemini", kHide},
    {".gemini/oauth_creds.json", kWithhold},
    {".copilot", kHide},
    {".pi", kHide},
    {".pi/agent/auth.json", kWithhold},
    {".config/opencode", kHide},
    {".local/share/opencode", kHide},
    {".local/share/opencode/auth.json", kWithhold},
    {".local/share/keyrings", kHide | kWithhold},
    {".password-store", kHide | kWithhold},
    {".mozilla", kHide},
    {".config/google-chrome", kHide},
    {".config/chromium", kHide},
    {".bash_history", kHide},
    {".zsh_history", kHide},
    {".python_history", kHide},
    {".node_repl_history", kHide},
    {".psql_history", kHide},
    {".mysql_history", kHide},
    // A self-hosted runner keeps its registration beside its binaries.
    {"actions-runner/.credentials", kHide},
    {"actions-runner/.credentials_rsaparams", kHide},
    {"actions-runner/.runner", kHide},
    {"runners/.credentials", kHide},
    {"runners/.credentials_rsaparams", kHide},
});

}  // namespace policy
