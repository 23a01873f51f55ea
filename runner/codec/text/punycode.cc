// SPDX-License-Identifier: Apache-2.0
#include "codec/text/punycode.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "codec/text/utf8.h"

namespace codec {
namespace {

// RFC 3492, 5.
constexpr uint32_t kBase = 36;
constexpr uint32_t kMinimum = 1;
constexpr uint32_t kMaximum = 26;
constexpr uint32_t kSkew = 38;
constexpr uint32_t kDamp = 700;
constexpr uint32_t kFirst = 0x80;
constexpr uint32_t kInitialBias = 72;
constexpr size_t kLabelBytesMax = 63;

// `text` is valid UTF-8.
std::vector<uint32_t> CodePoints(std::string_view text) {
  std::vector<uint32_t> points;
  for (unsigned char c : text) {
    if ((c & 0xc0) == 0x80) {
      points.back() = points.back() << 6 | (c & 0x3fU);
    } else {
      points.push_back(c < 0x80 ? c : c < 0xe0 ? c & 0x1fU : c < 0xf0 ? c & 0x0fU : c & 0x07U);
    }
  }
  return points;
}

uint32_t Adapt(uint32_t delta, uint32_t points, bool first) {
  delta = first ? delta / kDamp : delta / 2;
  delta += delta / points;
  uint32_t bias = 0;
  for (; delta > (kBase - kMinimum) * kMaximum / 2; bias += kBase) delta /= kBase - kMinimum;
  return bias + (kBase - kMinimum + 1) * delta / (delta + kSkew);
}

char Digit(uint32_t value) {
  return static_cast<char>(value < 26 ? 'a' + value : '0' + (value - 26));
}

// 6.3. A label is short enough that nothing overflows.
std::string EncodeLabel(const std::vector<uint32_t>& points) {
  std::string out;
  for (uint32_t point : points) {
    if (point < kFirst) out += static_cast<char>(point);
  }
  auto handled = static_cast<uint32_t>(out.size());
  const uint32_t basic = handled;
  if (basic > 0) out += '-';
  uint32_t next = kFirst;
  uint32_t delta = 0;
  uint32_t bias = kInitialBias;
  while (handled < points.size()) {
    uint32_t least = std::numeric_limits<uint32_t>::max();
    for (uint32_t point : points) {
      if (point >= next) least = std::min(least, point);
    }
    delta += (least - next) * (handled + 1);
    next = least;
    for (uint32_t point : points) {
      if (point < next) ++delta;
      if (point != next) continue;
      uint32_t rest = delta;
      for (uint32_t k = kBase;; k += kBase) {
        uint32_t threshold = k <= bias ? kMinimum : std::min(k - bias, kMaximum);
        if (rest < threshold) break;
        out += Digit(threshold + (rest - threshold) % (kBase - threshold));
        rest = (rest - threshold) / (kBase - threshold);
      }
      out += Digit(rest);
      bias = Adapt(delta, handled + 1, handled == basic);
      delta = 0;
      ++handled;
    }
    ++delta;
    ++next;
  }
  return "xn--" + out;
}

}  // namespace

std::optional<std::string> PunycodeHost(std::string_view host) {
  bool ascii = std::none_of(host.begin(), host.end(), [](char c) { return (c & 0x80) != 0; });
  if (ascii || FindInvalidUtf8(host) != std::string_view::npos) return std::nullopt;
  std::string out;
  for (;;) {
    std::string_view label = host.substr(0, host.find('.'));
    std::vector<uint32_t> points = CodePoints(label);
    bool plain = std::all_of(points.begin(), points.end(), [](uint32_t p) { return p < kFirst; });
    if (points.size() > kLabelBytesMax) return std::nullopt;
    std::string encoded = plain ? std::string(label) : EncodeLabel(points);
    if (encoded.size() > kLabelBytesMax) return std::nullopt;
    out += encoded;
    if (label.size() == host.size()) return out;
    out += '.';
    host.remove_prefix(label.size() + 1);
  }
}

}  // namespace codec
