// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace codec {

// Returns a repository's configuration with only what git needs to work in the checkout: how the
// repository is stored, its remotes and branches, who the author is. Everything else is dropped,
// because checkout steps keep credentials there in ever new ways (http.*.extraheader, credential.*,
// url.*.insteadOf, includeIf), and user names and passwords are cut out of remote addresses. A
// core.hooksPath that leads into the working tree is kept, as a path from there: `top` is where the
// working tree is, if it may be named by that. Total: a line that is not understood is a line that
// is dropped.
std::string RedactGitConfig(std::string_view text, std::string_view top = {});

// Returns the paths of the files that `text` includes, as git reads them, in order: "include.path",
// and "includeIf" under any condition. Total: behind a line that git would refuse, the next one
// counts.
std::vector<std::string> IncludedGitConfigs(std::string_view text);

}  // namespace codec
