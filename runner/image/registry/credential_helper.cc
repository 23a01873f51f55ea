// SPDX-License-Identifier: Apache-2.0
#include "image/registry/credential_helper.h"

#include <string.h>

#include "base/process.h"
#include "base/secret.h"
#include "image/registry/docker_config.h"

namespace image {
namespace {

constexpr std::chrono::seconds kHelperTime(20);
constexpr size_t kAnswerBytesMax = 64 * 1024;

// The variables of the desktop's and the clouds' helpers.
constexpr const char* kVariables[] = {"HOME",
                                      "USER",
                                      "LANG",
                                      "XDG_CONFIG_HOME",
                                      "XDG_RUNTIME_DIR",
                                      "DBUS_SESSION_BUS_ADDRESS",
                                      "GNUPGHOME",
                                      "PASSWORD_STORE_DIR",
                                      "HTTPS_PROXY",
                                      "https_proxy",
                                      "NO_PROXY",
                                      "no_proxy",
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

}  // namespace

Result<std::optional<Credential>> AskCredentialHelper(const std::string& name,
                                                      const std::string& host,
                                                      const ProgramPlaces& places,
                                                      const EnvironmentGetter& environment) {
  const std::string program = "docker-credential-" + name;
  Process::Command command;
  for (const char* variable : kVariables) {
    if (std::optional<std::string> value = environment(variable)) {
      command.environment.emplace_back(variable, *value);
    }
  }
  command.argv = {program, "get"};
  // Docker's own registry has its old name here.
  command.input = host == "docker.io" ? "https://index.docker.io/v1/" : host;
  command.with_errors = false;
  Result<Process> process = Process::Start(places, command);
  if (!process.ok()) return Error{Code::kSetup, process.error().what};
  SecretString answer = process.value().Finish(kAnswerBytesMax, Deadline::After(kHelperTime));
  Result<std::optional<Credential>> credential = ParseHelperAnswer(answer);
  if (!credential.ok()) return Error{Code::kSetup, program + ": " + credential.error().what};
  if (credential.value()) credential.value()->origin = program;
  return credential;
}

}  // namespace image
