// SPDX-License-Identifier: Apache-2.0
// Bounds on records.
#pragma once

#include <cstddef>

namespace record {

// A sandbox that knocks for hours may not fill the disk of its host: then nothing passes any more.
constexpr size_t kRecordBytesMax = size_t{512} << 20;

// One line of that file, which is read back.
constexpr size_t kRecordLineBytesMax = size_t{256} << 10;

// Lines for people that wait to be written together.
constexpr size_t kRecordLinesBytesMax = size_t{64} << 10;

// One record: the path and the reason in it.
constexpr size_t kRecordPathBytesMax = 1024;
constexpr size_t kReasonBytesMax = 256;   // OpenShell's, in the shorthand.
constexpr size_t kMessageBytesMax = 120;  // Likewise.

}  // namespace record
