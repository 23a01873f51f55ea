// SPDX-License-Identifier: Apache-2.0
// Finds the texts that a run begins with and a stranger may have written.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "change/repository.h"
#include "forge/event.h"
#include "forge/event_text.h"
#include "policy/model/untrusted_text.h"
#include "run/trusted/trusted_file.h"

namespace run {

// Returns what people wrote in the event: titles, texts, comments. Pure.
std::vector<policy::UntrustedText> TextsOfEvent(const forge::EventText& text, bool proposal);

// Returns the lines that a patch of change::Repository::ReadProposal() adds, for each file one
// text; not complete if it leaves a file out: a binary one may have a text, too. Pure.
policy::UntrustedTexts AddedTexts(std::string_view patch);

// Returns all of both for the run's event; nothing outside of CI. What the pull request adds since
// `ref` is read from the commits of `repository`, which may be null; where that cannot be read, the
// result is not complete. Fails as ReadEventText() does.
Result<policy::UntrustedTexts> FindUntrustedTexts(const forge::Event& event,
                                                  const change::Repository* repository,
                                                  const TrustedRef& ref);

}  // namespace run
