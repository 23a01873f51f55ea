// SPDX-License-Identifier: Apache-2.0
#include "policy/decide/compiled.h"
#include "policy/decide/compiled_tables.h"
#include "policy/decide/judge.h"
#include "policy/model/access.h"
#include "policy/model/protocol.h"

namespace policy {
namespace {

const CompiledEndpoint* FindGoverning(const Route& route, std::string_view path) {
  const CompiledEndpoint* governing = nullptr;
  for (const CompiledEndpoint* endpoint : route.judging()) {
    if (!IsNarrower(*endpoint, governing) || !endpoint->selector.Matches(path)) continue;
    governing = endpoint;
  }
  return governing;
}

bool IsJudgedByBody(Protocol protocol) {
  return protocol == Protocol::kGraphql || protocol == Protocol::kJsonRpc ||
         protocol == Protocol::kMcp;
}

// Decides for one reading of the request's path.
Verdict DecideOne(const Route& route, const HttpRequest& request) {
  if (!RequestFault(request.path, request.query).empty()) {
    return Refuse(route, Reason::kMalformedPath, nullptr, {});
  }
  const CompiledEndpoint* governing = FindGoverning(route, request.path);
  if (governing != nullptr && IsJudgedByBody(governing->protocol()) && !request.websocket_upgrade) {
    return Refuse(route, Reason::kBodyNotJudged, governing, {});
  }
  // Nothing of what a WebSocket carries would be judged, so it does not open where the policy only
  // audits, either.
  if (governing != nullptr && request.websocket_upgrade &&
      (governing->protocol() == Protocol::kRest || IsJudgedByBody(governing->protocol()))) {
    return Refuse(route, Reason::kUpgradeNotJudged, governing, ProtocolName(governing->protocol()));
  }
  if (governing != nullptr && governing->source->only_reads && request.websocket_upgrade) {
    return Refuse(route, Reason::kUpgradeNotJudged, governing, AccessName(Access::kReadOnly));
  }
  bool plain = governing != nullptr && governing->protocol() == Protocol::kWebSocket &&
               !request.websocket_upgrade;
  if (plain) return Refuse(route, Reason::kNoUpgrade, governing, {});
  return JudgeHead(route, request);
}

}  // namespace

const Endpoint* Route::GoverningEndpoint(std::string_view path) const {
  const CompiledEndpoint* governing = FindGoverning(*this, path);
  return governing == nullptr ? nullptr : governing->source;
}

Verdict Route::Decide(const HttpRequest& request) const {
  if (!connection_.allowed || judging_.empty()) return connection_;
  return DecideReadings(request, [&](const HttpRequest& one) { return DecideOne(*this, one); });
}

Verdict Route::RefuseMalformed(Reason reason, std::string_view path,
                               std::string_view detail) const {
  return Refuse(*this, reason, FindGoverning(*this, path), detail);
}

bool Route::NeedsBody(std::string_view path) const {
  const CompiledEndpoint* governing = FindGoverning(*this, path);
  return connection_.allowed && governing != nullptr && IsJudgedByBody(governing->protocol());
}

}  // namespace policy
