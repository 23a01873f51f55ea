// SPDX-License-Identifier: Apache-2.0
// The sandbox's name service. It sends no queries: a name that the policy covers gets a synthetic
// address (synthetic_pool.h), so that a connection can be judged by its name, and only an allowed
// connection makes the gateway resolve it. So no data can leave in a query.
#pragma once

#include "base/fd.h"
#include "caller/identity.h"
#include "codec/wire/dns_message.h"
#include "gateway/async/stream.h"
#include "gateway/async/task.h"
#include "gateway/names/synthetic_pool.h"
#include "gateway/services.h"
#include "policy/decide/compiled.h"

namespace gateway {

// Answers a question. A name that an endpoint covers has its address for A, no data for AAAA and
// other types, which makes clients take the other answer. A name that none covers does not exist:
// clients of every kind (musl waits when told REFUSED) fail with it at once.
codec::DnsReply AnswerName(const policy::CompiledPolicy& policy, SyntheticPool& pool,
                           const codec::DnsQuery& query);

// Answers queries that arrive at a UDP socket, from the address they were sent to, until the
// process ends. Names that were refused are recorded, at most at RecordRate's rate.
Task<void> ServeNames(Services& services, Fd socket);

// Does the same over one captured TCP connection.
Task<void> ServeNameStream(Services& services, const caller::Owner& owner, Stream& client);

}  // namespace gateway
