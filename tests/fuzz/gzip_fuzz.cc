// SPDX-License-Identifier: Apache-2.0
#include "inflate_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  inflate_property::Check(data, size);
  return 0;
}
