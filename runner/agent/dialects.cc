// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <utility>

#include "agent/dialect.h"

namespace agent {

// NAME_dialect.cc has each, and says what it reads.
std::unique_ptr<Dialect> MakeClaudeDialect();
std::unique_ptr<Dialect> MakeCodexDialect();
std::unique_ptr<Dialect> MakeCopilotDialect();
std::unique_ptr<Dialect> MakeGeminiDialect();
std::unique_ptr<Dialect> MakeOpencodeDialect();
std::unique_ptr<Dialect> MakePiDialect();

namespace {

using Make = std::unique_ptr<Dialect> (*)();

constexpr auto kDialects = std::to_array<std::pair<std::string_view, Make>>({
    {"plain", MakePlainDialect},
    {"claude-code", MakeClaudeDialect},
    {"codex", MakeCodexDialect},
    {"gemini", MakeGeminiDialect},
    {"opencode", MakeOpencodeDialect},
    {"pi", MakePiDialect},
    {"copilot", MakeCopilotDialect},
});

}  // namespace

std::vector<std::string_view> StreamNames() {
  std::vector<std::string_view> names;
  for (const auto& [name, make] : kDialects) names.push_back(name);
  return names;
}

std::unique_ptr<Dialect> MakeDialect(std::string_view stream) {
  for (const auto& [name, make] : kDialects) {
    if (name == stream) return make();
  }
  return MakePlainDialect();
}

}  // namespace agent
