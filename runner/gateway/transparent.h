// SPDX-License-Identifier: Apache-2.0
// Connections of programs that know no proxy. The kernel hands each to one listener, with the
// destination it wanted as the socket's own address; from there on it is judged like a CONNECT to
// that destination, but nothing is ever answered: what is refused is reset.
#pragma once

#include "base/fd.h"
#include "gateway/async/task.h"
#include "gateway/services.h"

namespace gateway {

// One captured connection from first byte to last. Never fails: what goes wrong is recorded.
Task<Done> ServeCaptured(Services& services, Fd socket);

}  // namespace gateway
