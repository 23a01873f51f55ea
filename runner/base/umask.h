// SPDX-License-Identifier: Apache-2.0
// The umask that this process was started with. A run's report is readable by the job's later
// steps and does not obey it; what is copied for the person who started the run does.
#pragma once

#include <sys/types.h>

// Replaces the umask by 022, and keeps the one before. To be called once, before there are threads.
void ReplaceUmask();

// Returns the umask before ReplaceUmask(); 022 if that was not called.
mode_t StartersUmask();
