// SPDX-License-Identifier: Apache-2.0
#include "image/registry/credential_helper.h"

#include <string.h>

#include "base/process.h"
#include "base/secret.h"
#include "base/sys.h"
#include "image/registry/docker_config.h"

namespace image {
namespace {

constexpr std::chrono::seconds kHelperTime(20);
constexpr size_t kAnswerBytesMax = 64 * 1024;

// Of the desktop's and the clouds' helpers.
constexpr const char* kVariables[] = {"PATH",
                                      "HOME",
                                      "USER",
                                      "LANG",
                                      "XDG_CONFIG_HOME",
                                      "XDG_RUNTIME_DIR",
                                      "DBUS_SESSION_BUS_ADDRESS",
                                      "GNUPGHOME",
                                      "PASSWORD_STORE_DIR",
                                      "HTTPS_PROXY",
                                      "NO_PROXY",
                                      "AWS_PROFILE",
                                      "AWS_REGION",
                                      "AWS_DEFAULT_REGION",
                                      "AWS_CONFIG_FILE",
                                      "AWS_SHARED_CREDENTIALS_FILE",
                                      "AWS_ACCESS_KEY_ID",
                                      "AWS_SECRET_ACCESS_KEY",
                                      "AWS_SESSION_TOKEN",
                                      "AWS_ROLE_ARN",
                                      "AWS_WEB_IDENTITY_TOKEN_FILE",
                                      "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                      "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                      "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                                      "GOOGLE_APPLICATION_CREDENTIALS",
                                      "CLOUDSDK_CONFIG",
                                      "CLOUDSDK_CORE_PROJECT",
                                      "AZURE_CONFIG_DIR",
                                      "AZURE_CLIENT_ID",
                                      "AZURE_CLIENT_SECRET",
                                      "AZURE_TENANT_ID",
                                      "AZURE_FEDERATED_TOKEN_FILE"};

// The first on $PATH; only absolute directories count.
std::string FindProgram(const std::string& program, const std::string& path) {
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find(':', at), path.size());
    const std::string candidate = path.substr(at, end - at) + "/" + program;
    if (candidate.starts_with('/') && sys::Exists(candidate)) return candidate;
    at = end + 1;
  }
  return "";
}

}  // namespace

Result<std::optional<Credential>> AskCredentialHelper(const std::string& name,
                                                      const std::string& host,
                                                      const EnvironmentGetter& environment) {
  const std::string program = "docker-credential-" + name;
  Process::Command command;
  for (const char* variable : kVariables) {
    if (std::optional<std::string> value = environment(variable)) {
      command.environment.emplace_back(variable, *value);
    }
  }
  command.argv = {FindProgram(program, environment("PATH").value_or("")), "get"};
  if (command.argv[0].empty()) return Error{Code::kSetup, program + " is not on the PATH"};
  // Docker's own registry has its old name here.
  command.input = host == "docker.io" ? "https://index.docker.io/v1/" : host;
  command.with_errors = false;
  Process process = TRY(Process::Start(command).Context(program));
  std::string answer = process.Finish(kAnswerBytesMax, Deadline::After(kHelperTime));
  Result<std::optional<Credential>> credential = ParseHelperAnswer(answer);
  Wipe(answer);
  if (!credential.ok()) return Error{Code::kSetup, program + ": " + credential.error().what};
  if (credential.value()) credential.value()->origin = program;
  return credential;
}

}  // namespace image
