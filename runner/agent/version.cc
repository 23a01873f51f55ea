// SPDX-License-Identifier: Apache-2.0
#include "agent/version.h"

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "base/sys.h"
#include "codec/data/json.h"
#include "codec/text/neutral.h"

namespace agent {
namespace {

constexpr size_t kPackageBytesMax = 1 << 20;
constexpr size_t kVersionBytesMax = 100;

using Numbers = std::array<unsigned, 3>;

std::optional<Numbers> ParseVersion(std::string_view text) {
  Numbers numbers{};
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) {
      if (!text.starts_with('.')) return std::nullopt;
      text.remove_prefix(1);
    }
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), numbers.at(i));
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  return numbers;
}

}  // namespace

bool IsTried(std::string_view version, std::string_view tried) {
  const std::optional<Numbers> is = ParseVersion(version);
  const std::optional<Numbers> was = ParseVersion(tried);
  return !is || !was || ((*is)[0] == (*was)[0] && *is >= *was);
}

std::string PackageVersion(const std::string& program) {
  for (size_t slash = program.rfind('/'); slash != std::string::npos && slash > 0;
       slash = program.rfind('/', slash - 1)) {
    Result<std::string> text =
        sys::ReadBeneath(program.substr(0, slash), "package.json", kPackageBytesMax);
    if (!text.ok()) continue;
    Result<codec::Json> package = codec::ParseJson(text.value());
    if (!package.ok()) return "";
    std::string version = package.value().StringAt("version");
    if (!version.empty()) return codec::CutUtf8(version, kVersionBytesMax);
  }
  return "";
}

}  // namespace agent
