// SPDX-License-Identifier: Apache-2.0
// The wire form of identity.h.
#include <algorithm>

#include "base/wire.h"
#include "caller/identity.h"

namespace caller {
namespace {

// A path in the kernel is at most 4096 bytes; ancestors are bounded as OpenShell bounds them.
constexpr size_t kTextBytesMax = 4096;
constexpr size_t kTextsMax = 64;
constexpr size_t kSizeBytes = 4;

// Returns as many of `texts` as fit; the ones cut off can only make a match fail.
std::vector<std::string> Fitting(const std::vector<std::string>& texts, size_t bytes_max) {
  std::vector<std::string> fitting;
  size_t bytes = 0;
  for (const std::string& text : texts) {
    std::string cut = text.substr(0, kTextBytesMax);
    bytes += kSizeBytes + cut.size();
    if (fitting.size() >= kTextsMax || bytes > bytes_max) break;
    fitting.push_back(std::move(cut));
  }
  return fitting;
}

// Number, pid, agent, stranger, destination, two texts and the three lists fit into one message.
constexpr size_t kAncestorsBytesMax = 12288;
constexpr size_t kCmdlineBytesMax = 4096;
constexpr size_t kLinksBytesMax = 8000;
static_assert(32 + 2 * (kSizeBytes + kTextBytesMax) + 3 * kSizeBytes + kAncestorsBytesMax +
                  kCmdlineBytesMax + kLinksBytesMax <=
              kOwnerBytesMax);

}  // namespace

template <typename Archive>
void Visit(Archive& archive, Endpoint& value) {
  archive(value.address, value.port);
}
template <typename Archive>
void Visit(Archive& archive, Question& value) {
  archive(value.number, value.local, value.remote);
}
template <typename Archive>
void Visit(Archive& archive, Owner& value) {
  archive(value.number, value.pid, value.caller.agent, value.stranger, value.refusal,
          value.caller.binary, value.caller.ancestors, value.caller.cmdline, value.caller.links,
          value.destination);
}

policy::Caller Judged(const Owner& owner) {
  if (owner.refusal.empty()) return owner.caller;
  policy::Caller unknown;
  unknown.agent = owner.caller.agent;
  return unknown;
}

std::string RenderQuestion(const Question& question) { return wire::Write(question); }

std::optional<Question> ParseQuestion(std::string_view bytes) {
  Question question;
  if (!wire::Read(bytes, question)) return std::nullopt;
  return question;
}

std::string RenderOwner(const Owner& answer) {
  Owner cut = answer;
  cut.refusal.resize(std::min(cut.refusal.size(), kTextBytesMax));
  cut.caller.binary.resize(std::min(cut.caller.binary.size(), kTextBytesMax));
  cut.caller.ancestors = Fitting(answer.caller.ancestors, kAncestorsBytesMax);
  cut.caller.cmdline = Fitting(answer.caller.cmdline, kCmdlineBytesMax);
  cut.caller.links = Fitting(answer.caller.links, kLinksBytesMax);
  return wire::Write(cut);
}

std::optional<Owner> ParseOwner(std::string_view bytes) {
  Owner answer;
  if (bytes.size() > kOwnerBytesMax || !wire::Read(bytes, answer)) return std::nullopt;
  // An owner, or the reason why there is none.
  if (answer.caller.binary.empty() && answer.refusal.empty()) return std::nullopt;
  return answer;
}

}  // namespace caller
