// SPDX-License-Identifier: Apache-2.0
#include "base/umask.h"

#include <sys/stat.h>

namespace {

mode_t starters_umask = 022;

}  // namespace

void ReplaceUmask() { starters_umask = ::umask(022); }

mode_t StartersUmask() { return starters_umask; }
