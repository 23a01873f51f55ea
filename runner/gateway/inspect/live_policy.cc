// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/live_policy.h"

#include <utility>

namespace gateway {

LivePolicy::LivePolicy(policy::Policy first) {
  editions_.push_back({policy::CompiledPolicy(std::move(first)), 1});
}

LivePolicy::Lease::Lease(LivePolicy& policy)
    : policy_(policy),
      edition_(std::prev(policy.editions_.end())),
      place_(policy.leases_.insert(policy.leases_.end(), this)) {
  ++edition_->leases;
}

LivePolicy::Lease::~Lease() {
  policy_.leases_.erase(place_);
  --edition_->leases;
  policy_.DropUnused();
}

const policy::CompiledPolicy& LivePolicy::Lease::compiled() const { return edition_->compiled; }

uint64_t LivePolicy::Lease::version() const { return edition_->version; }

std::unique_ptr<LivePolicy::Lease> LivePolicy::Take() {
  return std::unique_ptr<Lease>(new Lease(*this));
}

void LivePolicy::Replace(policy::Policy next) {
  editions_.push_back({policy::CompiledPolicy(std::move(next)), version() + 1});
  // All of them first: a call may lead to a decision elsewhere.
  for (Lease* lease : leases_) lease->replaced_ = true;
  for (Lease* lease : leases_) lease->Tell();
  DropUnused();
}

void LivePolicy::Narrow(policy::Policy next, const Lease* spared) {
  editions_.push_back({policy::CompiledPolicy(std::move(next)), version() + 1});
  for (Lease* lease : leases_) {
    if (!lease->kept_) lease->replaced_ = true;
  }
  for (Lease* lease : leases_) {
    if (!lease->kept_ && lease != spared) lease->Tell();
  }
  DropUnused();
}

void LivePolicy::Lease::EndSpared() const {
  if (replaced_) Tell();
}

void LivePolicy::Lease::Tell() const {
  std::function<void()> call = std::exchange(when_replaced_, nullptr);
  if (call) call();
}

void LivePolicy::DropUnused() {
  while (editions_.size() > 1 && editions_.front().leases == 0) editions_.pop_front();
}

}  // namespace gateway
