// SPDX-License-Identifier: Apache-2.0
// What a checkout has when an agent starts, so that its own changes can be told from those that
// others make meanwhile. A look in the background is for a run, LookAtCheckout() for a process that
// forks later.
#pragma once

#include <time.h>

#include <chrono>
#include <functional>
#include <string>

#include "base/fd.h"
#include "base/thread.h"
#include "change/capture.h"
#include "change/repository.h"

namespace change {

// The longest time that one look at a checkout takes.
constexpr std::chrono::milliseconds kLookMax{250};
// The time that a look in the background has in any case: enough for a few thousand files.
constexpr std::chrono::milliseconds kLookMin{5};

// Looks at what the directory `checkout` has, and had at `since` (sys::FileTime): a file with a
// later time (ctime) is listed without its content. Only files that `repository`, which may be
// null, does not have as they are in its index are read. Nothing is written, and no link is
// followed. The look ends after `longest`, or as soon as `ended` returns true. What it has not
// reached is missing, and the list is not whole then; so is all that cannot be listed.
GivenFiles LookAtCheckout(const std::string& checkout, const Repository* repository,
                          const timespec& since, std::chrono::milliseconds longest = kLookMax,
                          const std::function<bool()>& ended = {});

// Looks in the background while an agent works.
class BackgroundLook {
 public:
  // Starts a look (LookAtCheckout()). Borrows `repository` until Take() returns: nothing else may
  // use it before.
  BackgroundLook(const std::string& checkout, const Repository* repository, const timespec& since);
  BackgroundLook(const BackgroundLook&) = delete;
  BackgroundLook& operator=(const BackgroundLook&) = delete;
  ~BackgroundLook() { End(); }

  // Ends the look, if it has had kLookMin, and returns what it saw.
  GivenFiles Take();

 private:
  void End();

  Fd end_;  // An eventfd, readable once the look is to end.
  GivenFiles given_;
  sys::BackgroundTask look_;  // The last: it uses the others.
};

}  // namespace change
