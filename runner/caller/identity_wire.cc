// SPDX-License-Identifier: Apache-2.0
// The wire form of identity.h: little-endian numbers of fixed size, texts behind their length.
#include <string.h>

#include <algorithm>

#include "caller/identity.h"

namespace caller {
namespace {

// A path in the kernel is at most 4096 bytes; ancestors are bounded as OpenShell bounds them.
constexpr size_t kTextBytesMax = 4096;
constexpr size_t kTextsMax = 64;

void AppendNumber(std::string& out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
}

// Takes numbers and texts off the front; `ok` stays false after the first that is not there.
struct Reader {
  std::string_view rest;
  bool ok = true;

  uint64_t Number(size_t bytes) {
    if (rest.size() < bytes) ok = false;
    if (!ok) return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      value |= static_cast<uint64_t>(static_cast<unsigned char>(rest[i])) << (8 * i);
    }
    rest.remove_prefix(bytes);
    return value;
  }

  std::string Text() {
    size_t size = static_cast<size_t>(Number(2));
    if (size > kTextBytesMax || rest.size() < size) ok = false;
    if (!ok) return "";
    std::string text(rest.substr(0, size));
    rest.remove_prefix(size);
    return text;
  }

  std::vector<std::string> Texts() {
    size_t count = static_cast<size_t>(Number(1));
    if (count > kTextsMax) ok = false;
    std::vector<std::string> texts;
    for (size_t i = 0; ok && i < count; ++i) texts.push_back(Text());
    return texts;
  }

  Endpoint End() {
    Endpoint end;
    if (rest.size() < end.address.size()) ok = false;
    if (!ok) return end;
    ::memcpy(end.address.data(), rest.data(), end.address.size());
    rest.remove_prefix(end.address.size());
    end.port = static_cast<uint16_t>(Number(2));
    return end;
  }
};

void AppendEnd(std::string& out, const Endpoint& end) {
  out.append(reinterpret_cast<const char*>(end.address.data()), end.address.size());
  AppendNumber(out, end.port, 2);
}

void AppendText(std::string& out, std::string_view text) {
  text = text.substr(0, kTextBytesMax);
  AppendNumber(out, text.size(), 2);
  out.append(text);
}

// As many of `texts` as fit: what is cut off can only make a match fail.
void AppendTexts(std::string& out, const std::vector<std::string>& texts, size_t bytes_max) {
  size_t count = 0;
  size_t bytes = 0;
  for (const std::string& text : texts) {
    bytes += 2 + std::min(text.size(), kTextBytesMax);
    if (count >= kTextsMax || bytes > bytes_max) break;
    ++count;
  }
  AppendNumber(out, count, 1);
  for (size_t i = 0; i < count; ++i) AppendText(out, texts[i]);
}

// Number, pid, agent, two texts and the three lists fit into one message.
constexpr size_t kAncestorsBytesMax = 12288;
constexpr size_t kCmdlineBytesMax = 4096;
constexpr size_t kLinksBytesMax = 8000;
static_assert(17 + 2 * (2 + kTextBytesMax) + 3 + kAncestorsBytesMax + kCmdlineBytesMax +
                  kLinksBytesMax <=
              kAnswerBytesMax);

}  // namespace

policy::Caller Judged(const Answer& owner) {
  if (owner.refusal.empty()) return owner.caller;
  policy::Caller unknown;
  unknown.agent = owner.caller.agent;
  return unknown;
}

std::string RenderQuestion(const Question& question) {
  std::string out;
  AppendNumber(out, question.number, 8);
  AppendEnd(out, question.local);
  AppendEnd(out, question.remote);
  ENSURE(out.size() == kQuestionBytes);
  return out;
}

std::optional<Question> ParseQuestion(std::string_view bytes) {
  if (bytes.size() != kQuestionBytes) return std::nullopt;
  Reader reader{bytes};
  Question question;
  question.number = reader.Number(8);
  question.local = reader.End();
  question.remote = reader.End();
  if (!reader.ok || !reader.rest.empty()) return std::nullopt;
  return question;
}

std::string RenderAnswer(const Answer& answer) {
  std::string out;
  AppendNumber(out, answer.number, 8);
  AppendNumber(out, static_cast<uint32_t>(answer.pid), 4);
  AppendNumber(out, answer.caller.agent ? 1 : 0, 1);
  AppendText(out, answer.refusal);
  AppendText(out, answer.caller.binary);
  AppendTexts(out, answer.caller.ancestors, kAncestorsBytesMax);
  AppendTexts(out, answer.caller.cmdline, kCmdlineBytesMax);
  AppendTexts(out, answer.caller.links, kLinksBytesMax);
  return out;
}

std::optional<Answer> ParseAnswer(std::string_view bytes) {
  if (bytes.size() > kAnswerBytesMax) return std::nullopt;
  Reader reader{bytes};
  Answer answer;
  answer.number = reader.Number(8);
  answer.pid = static_cast<int32_t>(reader.Number(4));
  uint64_t agent = reader.Number(1);
  answer.caller.agent = agent == 1;
  answer.refusal = reader.Text();
  answer.caller.binary = reader.Text();
  answer.caller.ancestors = reader.Texts();
  answer.caller.cmdline = reader.Texts();
  answer.caller.links = reader.Texts();
  if (!reader.ok || !reader.rest.empty() || agent > 1) return std::nullopt;
  // Somebody, or a reason why nobody.
  if (answer.caller.binary.empty() && answer.refusal.empty()) return std::nullopt;
  return answer;
}

}  // namespace caller
