// SPDX-License-Identifier: Apache-2.0
#include "gateway/names/model_names.h"

#include <algorithm>

#include "policy/model/host_pattern.h"

namespace gateway {
namespace {

constexpr int kRowMax = 3;
constexpr size_t kHostsMax = 64;  // A pattern has as many names as an agent thinks of.

}  // namespace

void ModelNames::Take(const std::string& host, const Error* failure) {
  const bool known = std::any_of(hosts_.begin(), hosts_.end(), [&](const std::string& pattern) {
    return policy::HostMatches(pattern, host);
  });
  if (!known) return;
  if (failure == nullptr) {
    failures_.erase(host);
    return;
  }
  if (failures_.size() >= kHostsMax && !failures_.contains(host)) return;
  const int row = ++failures_[host];
  if (told_ || (failure->code != Code::kNotFound && row < kRowMax)) return;
  told_ = true;
  tell_(failure->what);
}

}  // namespace gateway
