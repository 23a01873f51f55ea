// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/upstream_pool.h"

#include <algorithm>

#include "gateway/http/limits.h"

namespace gateway {

std::string UpstreamKey(bool tls, const std::string& host, uint16_t port) {
  return (tls ? "https://" : "http://") + host + ":" + std::to_string(port);
}

// Drops what it finds closed on the way.
UpstreamPool::Idle::iterator UpstreamPool::Find(const std::string& key,
                                                const std::vector<policy::Address>& addresses) {
  for (size_t behind = idle_.size(); behind > 0; --behind) {
    auto at = idle_.begin() + static_cast<Idle::difference_type>(behind) - 1;
    const UpstreamConnection& connection = **at;
    bool leads = connection.key == key && std::find(addresses.begin(), addresses.end(),
                                                    connection.address) != addresses.end();
    if (!leads) continue;
    if (!connection.stream->IsStale()) return at;
    idle_.erase(at);
  }
  return idle_.end();
}

bool UpstreamPool::Has(const std::string& key, const std::vector<policy::Address>& addresses) {
  return Find(key, addresses) != idle_.end();
}

std::unique_ptr<UpstreamConnection> UpstreamPool::Take(
    const std::string& key, const std::vector<policy::Address>& addresses) {
  auto found = Find(key, addresses);
  if (found == idle_.end()) return nullptr;
  std::unique_ptr<UpstreamConnection> connection = std::move(*found);
  idle_.erase(found);
  return connection;
}

void UpstreamPool::Keep(std::unique_ptr<UpstreamConnection> connection) {
  connection->used = true;
  connection->idle_since = Deadline::Clock::now();
  idle_.push_back(std::move(connection));
  if (idle_.size() > kIdleUpstreamsMax) idle_.erase(idle_.begin());
  if (sweeping_) return;
  sweeping_ = true;
  loop_.Spawn(Sweep());
}

// Closes connections that were not used for a while, or that their server has closed.
Task<void> UpstreamPool::Sweep() {
  while (!idle_.empty()) {
    co_await loop_.Sleep(Deadline::After(sweep_));
    auto oldest = Deadline::Clock::now() - kIdleUpstreamTimeout;
    std::erase_if(idle_, [&](const std::unique_ptr<UpstreamConnection>& connection) {
      return connection->idle_since < oldest || connection->stream->IsStale();
    });
  }
  sweeping_ = false;
}

}  // namespace gateway
