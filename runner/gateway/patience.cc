// SPDX-License-Identifier: Apache-2.0
#include "gateway/patience.h"

#include <string_view>

#include "gateway/http/limits.h"
#include "gateway/limits.h"

namespace gateway {

bool MayFallSilent(const codec::HttpFields& fields) {
  const codec::HttpField* type = codec::FindField(fields, "content-type");
  if (type == nullptr) return false;
  for (std::string_view kind : {"text/event-stream", "application/grpc"}) {
    if (codec::EqualIgnoringCase(std::string_view(type->value).substr(0, kind.size()), kind)) {
      return true;
    }
  }
  return false;
}

milliseconds IdleOf(const codec::ResponseHead& head, const codec::BodyFraming& framing) {
  if (MayFallSilent(head.fields)) return milliseconds{0};
  bool unframed = framing.kind == codec::BodyFraming::kUntilClose;
  return unframed ? kUnframedBodyIdleTimeout : kBodyIdleTimeout;
}

Deadline IdleDeadline(milliseconds idle) {
  return idle.count() == 0 ? Deadline::Never() : Deadline::After(idle);
}

}  // namespace gateway
