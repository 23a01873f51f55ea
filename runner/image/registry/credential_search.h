// SPDX-License-Identifier: Apache-2.0
// Looks for credentials for a registry in these places, the most specific one first:
//   1. SourceOptions::username and password, for exactly password_host
//   2. $DOCKER_AUTH_CONFIG, a configuration of Docker's as text (GitLab)
//   3. $REGISTRY_AUTH_FILE, $XDG_RUNTIME_DIR/containers/auth.json,
//      $XDG_CONFIG_HOME/containers/auth.json (else ~/.config/...), $DOCKER_CONFIG/config.json (else
//      ~/.docker/config.json): files, and the helpers they name
//   4. GitHub: $GITHUB_TOKEN, for ghcr.io alone
//   5. GitLab: $CI_REGISTRY_USER and $CI_REGISTRY_PASSWORD, else $CI_JOB_TOKEN, for exactly
//      $CI_REGISTRY; $CI_DEPLOY_USER and $CI_DEPLOY_PASSWORD there too when neither is set;
//      $CI_DEPENDENCY_PROXY_USER and _PASSWORD for exactly $CI_DEPENDENCY_PROXY_SERVER
#pragma once

#include "image/registry/credential.h"
#include "image/source/source.h"

namespace image {

CredentialSearch FindCredential(const std::string& host, const std::string& repository,
                                const SourceOptions& options);

}  // namespace image
