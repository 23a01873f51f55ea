// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "change/repository.h"
#include "run/trusted/trusted_file.h"

namespace run {

// Reads the prompt of `--prompt-file`: in `.agentic-ci/` of the repository (which may be null) as
// it is at `ref`, like the configuration that lies there, anywhere else as ReadNamedFile() does.
// Fails with kNotFound for a file that the commit does not have.
Result<std::string> ReadPromptFile(const std::string& path, const change::Repository* repository,
                                   const TrustedRef& ref);

}  // namespace run
