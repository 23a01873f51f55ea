// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/program_places.h"
#include "image/registry/credential.h"

namespace image {

using EnvironmentGetter = std::function<std::optional<std::string>(const std::string& name)>;

// Asks `docker-credential-NAME get`, found in `places`, about `host`. Returns nullopt if it has
// none. It gets the variables that such programs read and no others, no shell, and 20 seconds.
// `name` is one that ParseDockerConfig gave. Fails with kSetup if it is not there, or prints
// nothing that can be read.
Result<std::optional<Credential>> AskCredentialHelper(const std::string& name,
                                                      const std::string& host,
                                                      const ProgramPlaces& places,
                                                      const EnvironmentGetter& environment);

}  // namespace image
