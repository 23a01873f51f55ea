// SPDX-License-Identifier: Apache-2.0
// Reads the event of a GitLab CI run from a job's variables CI_*.
#pragma once

#include "base/result.h"
#include "forge/event.h"
#include "forge/event_fields.h"
#include "forge/event_text.h"

namespace forge {

// A pipeline of a merge request, whatever started it, is recognised by any of CI_MERGE_REQUEST_*,
// even an empty one; where its source is another project than its target (by id) it is a fork's, in
// whichever of the two it runs. Its trusted_ref is kBaseRef: CI_MERGE_REQUEST_TARGET_BRANCH_SHA is
// there in some pipelines only, and CI_MERGE_REQUEST_DIFF_BASE_SHA is a commit that the author
// chooses by branching off it.
//
// A pipeline of a branch or a tag has its own commit for trusted_sha where that branch or tag is
// protected, or is the default branch; otherwise kBaseRef, too. Its head is the project's own if
// its source (CI_PIPELINE_SOURCE) is one that takes the right to write. Any other head's origin is
// unknown.
//
// Fails with kSetup if a variable that every job has is missing, with kInvalid and kRefused as
// ReadEvent does.
Result<Event> ReadGitLabEvent(const Variables& variables);

// Reads the texts of a merge request: empty without one. GitLab cuts a description after 2700
// characters, and names no activity.
// https://docs.gitlab.com/ci/variables/predefined_variables/
EventText ReadGitLabText(const EnvironmentReader& environment);

}  // namespace forge
