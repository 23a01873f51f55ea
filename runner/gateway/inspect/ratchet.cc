// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/ratchet.h"

#include <utility>

#include "codec/text/neutral.h"

namespace gateway {
namespace {

// A WebSocket, and a body that is encoded, are not looked into.
bool IsPlainText(const OutgoingRequest& request) {
  return codec::CodingsOf(request.fields).empty() &&
         !codec::FieldHasToken(request.fields, "upgrade", "websocket");
}

std::vector<std::string> TakeTexts(policy::UntrustedTexts* texts) {
  std::vector<std::string> bytes;
  for (policy::UntrustedText& one : texts->texts) bytes.push_back(std::move(one.text));
  return bytes;
}

std::string Name(const Authority& server) { return RenderAuthority(server, 0); }

}  // namespace

class Ratchet::PromptFilter final : public StreamFilter {
 public:
  PromptFilter(Ratchet& ratchet, Authority server, std::string path)
      : ratchet_(ratchet),
        server_(std::move(server)),
        path_(std::move(path)),
        look_(ratchet.prints_) {}

  std::optional<OutgoingRefusal> Filter(std::string_view in, bool, std::string& out) override {
    out.append(in);
    if (!ratchet_.watches()) return std::nullopt;
    const std::optional<size_t> text = look_.Find(in);
    if (text) ratchet_.CloseByText(*text, server_, path_);
    return std::nullopt;
  }
  bool keeps_length() const override { return true; }

 private:
  Ratchet& ratchet_;
  Authority server_;
  std::string path_;
  TextPrints::Look look_;
};

Ratchet::Ratchet(LivePolicy& policy, Facts facts, std::function<void(const record::Notice&)> record,
                 std::function<void(const std::string&)> closed)
    : policy_(policy),
      facts_(std::move(facts)),
      prints_(TakeTexts(&facts_.texts)),
      record_(std::move(record)),
      tell_(std::move(closed)) {}

bool Ratchet::Keeps(const Authority& server) const {
  return IsModel(server) ||
         policy::Covers(policy_.source().after_untrusted.stays.hosts, server.host, server.port);
}

bool Ratchet::IsTrusted(const Authority& server) const {
  return IsModel(server) ||
         policy::Covers(policy_.source().after_untrusted.trusts, server.host, server.port);
}

void Ratchet::LookAtRequest(const Authority& server, std::string_view path,
                            const OutgoingRequest& request) {
  if (!watches() || !IsModel(server)) return;
  if (!facts_.texts.complete) {
    return Close("more of the pull request than is compared", server, path, nullptr);
  }
  if (facts_.texts.texts.empty()) return;
  if (!IsPlainText(request)) {
    return Close("a request to the model that cannot be read", server, path, nullptr);
  }
  if (request.body.empty()) return;
  const std::optional<size_t> text = TextPrints::Look(prints_).Find(last_.NewPart(request.body));
  if (text) CloseByText(*text, server, path);
}

std::unique_ptr<StreamFilter> Ratchet::NewFilter(const Authority& server, std::string_view path) {
  if (!watches() || !IsModel(server) || facts_.texts.texts.empty()) return nullptr;
  return std::make_unique<PromptFilter>(*this, server, std::string(path));
}

void Ratchet::NoteAnswer(const Authority& server, const record::Event& event,
                         const LivePolicy::Lease& lease) {
  if (!watches() || IsTrusted(server)) return;
  const bool mcp = event.engine == record::Engine::kL7Mcp;
  Close((mcp ? "a result of the MCP server " : "an answer of ") + Name(server) + event.path, server,
        event.path, &lease);
}

void Ratchet::NotePassage(const Authority& server) {
  if (!watches() || IsTrusted(server)) return;
  Close("a connection to " + Name(server) + " that is not inspected", server, {}, nullptr);
}

void Ratchet::Inherit(std::string_view by) {
  if (!closed_) Close(std::string(by), {}, {}, nullptr);
}

policy::Policy Ratchet::Narrowed(policy::Policy next) const {
  if (!closed_) return next;
  const policy::AfterUntrusted own = next.after_untrusted;
  next.after_untrusted = rules_;
  next = policy::Narrow(std::move(next), facts_.models, facts_.bound, by_);
  if (!own.used()) return next;
  next.after_untrusted = own;
  return policy::Narrow(std::move(next), facts_.models, facts_.bound, by_);
}

void Ratchet::CloseByText(size_t text, const Authority& server, std::string_view path) {
  Close(facts_.texts.texts[text].name, server, path, nullptr);
}

void Ratchet::Close(const std::string& text, const Authority& server, std::string_view path,
                    const LivePolicy::Lease* spared) {
  closed_ = true;
  by_ = codec::NeutralLine(text);
  rules_ = policy_.source().after_untrusted;
  record::Notice notice = record::Notice::Seen(std::string(record::kNarrowedType),
                                               "the run was narrowed: its model may know " + by_,
                                               record::Notice::Severity::kMedium);
  notice.context = {{"text", by_},
                    {"host", server.host},
                    {"path", std::string(path)},
                    {"rule", policy::RenderAfterUntrusted(rules_)}};
  notice.counts = {{"port", server.port}};
  if (rules_.used()) record_(notice);
  tell_(by_);
  policy_.Narrow(Narrowed(policy_.source()), spared);
}

}  // namespace gateway
