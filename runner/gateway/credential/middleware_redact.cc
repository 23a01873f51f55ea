// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/middleware_redact.h"

#include <algorithm>

#include "base/ascii.h"
#include "codec/text/utf8.h"
#include "policy/model/host_pattern.h"

namespace gateway {
namespace {

constexpr std::string_view kPrefix = "sk-";
constexpr size_t kKeyBytesMin = kPrefix.size() + 16;
constexpr std::string_view kShown = "[REDACTED]";
constexpr size_t kCharacterBytesMax = 4;

bool IsKeyChar(char c) { return ascii::IsAlphanumeric(c) || c == '_' || c == '-'; }

bool Covers(const policy::Middleware& middleware, std::string_view host) {
  auto matches = [&](const std::string& pattern) { return policy::HostMatches(pattern, host); };
  return std::any_of(middleware.include.begin(), middleware.include.end(), matches) &&
         std::none_of(middleware.exclude.begin(), middleware.exclude.end(), matches);
}

OutgoingRefusal Fail(std::string why) {
  return {NewRefusal(503, "middleware_failed", why), record::Engine::kMiddleware, why};
}

class RedactFilter final : public StreamFilter {
 public:
  explicit RedactFilter(bool fail_open) : fail_open_(fail_open) {}

  std::optional<OutgoingRefusal> Filter(std::string_view in, bool end, std::string& out) override {
    std::string text = std::exchange(unfinished_, {});
    text.append(in);
    size_t bad = blind_ ? std::string::npos : codec::FindInvalidUtf8(text);
    if (bad != std::string::npos) {
      // Bytes at the end that could still become a character wait for the next piece.
      size_t size = codec::NextUtf8(std::string_view(text).substr(bad)).bytes;
      if (!end && bad + size == text.size() && size < kCharacterBytesMax) {
        unfinished_ = text.substr(bad);
        text.resize(bad);
      } else if (fail_open_) {
        blind_ = true;
        eraser_.Feed("", true, out);
      } else {
        return Fail("the body is not UTF-8 and cannot be redacted");
      }
    }
    if (blind_) {
      out.append(text);
    } else {
      eraser_.Feed(text, end, out);
    }
    return std::nullopt;
  }
  bool keeps_length() const override { return false; }

 private:
  bool fail_open_;
  bool blind_ = false;  // It was not UTF-8, and passes.
  std::string unfinished_;
  KeyEraser eraser_;
};

}  // namespace

void KeyEraser::Feed(std::string_view in, bool end, std::string& out) {
  for (size_t i = 0; i < in.size();) {
    if (inside_) {
      while (i < in.size() && IsKeyChar(in[i])) ++i;
      inside_ = i == in.size();
      continue;
    }
    if (held_.empty()) {
      size_t start = std::min(in.find(kPrefix.front(), i), in.size());
      out.append(in.substr(i, start - i));
      i = start;
      if (i < in.size()) held_ += in[i++];
      continue;
    }
    bool fits = held_.size() < kPrefix.size() ? in[i] == kPrefix[held_.size()] : IsKeyChar(in[i]);
    if (!fits) {
      // No key begins inside of what was held: a prefix in there would have fewer bytes left.
      out.append(held_);
      held_.clear();
      continue;
    }
    held_ += in[i++];
    if (held_.size() == kKeyBytesMin) {
      out.append(kShown);
      held_.clear();
      inside_ = true;
    }
  }
  if (end) {
    out.append(held_);
    held_.clear();
    inside_ = false;
  }
}

Redaction PlanRedaction(const std::vector<policy::Middleware>& middlewares, std::string_view host,
                        const codec::HttpFields& fields) {
  bool covered = false;
  bool fail_open = true;
  for (const policy::Middleware& middleware : middlewares) {
    if (!Covers(middleware, host)) continue;
    covered = true;
    fail_open = fail_open && middleware.fail_open;
  }
  if (!covered) return {};
  bool compressed = !codec::CodingsOf(fields).empty();
  if (compressed && !fail_open) {
    return {nullptr, Fail("the body is compressed and cannot be redacted")};
  }
  if (compressed) return {};
  return {std::make_unique<RedactFilter>(fail_open), std::nullopt};
}

bool RedactsMessages(const std::vector<policy::Middleware>& middlewares, std::string_view host) {
  return std::any_of(
      middlewares.begin(), middlewares.end(),
      [&](const policy::Middleware& middleware) { return Covers(middleware, host); });
}

}  // namespace gateway
