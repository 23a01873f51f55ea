// SPDX-License-Identifier: Apache-2.0
#include "gateway/policy_wire.h"

#include "base/wire.h"

namespace codec {

WIRE_ALL(Position, line, column)

}  // namespace codec

namespace policy {

// The gateway has no use for the other three; they must be named all the same.
template <typename Archive>
void Visit(Archive& archive, Policy& value) {
  auto& [filesystem, landlock, process, network, middlewares, hosted_tools, after_untrusted,
         narrowed_by] = value;
  archive(network, middlewares, hosted_tools, after_untrusted, narrowed_by);
}

}  // namespace policy

namespace gateway {

std::string RenderPolicyWire(const policy::Policy& policy) { return wire::Write(policy); }

std::optional<policy::Policy> ParsePolicyWire(std::string_view bytes) {
  policy::Policy policy;
  if (!wire::Read(bytes, policy)) return std::nullopt;
  return policy;
}

}  // namespace gateway
