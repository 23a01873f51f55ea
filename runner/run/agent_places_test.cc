// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "agent/description.h"
#include "change/protected_path.h"
#include "sandbox/mask.h"

namespace run {
namespace {

TEST_CASE("Where an agent keeps its settings is protected in a checkout and hidden on the host") {
  size_t files = 0;
  for (const std::string& name : agent::AgentNames()) {
    const agent::AgentDescription agent = agent::FindAgentDescription(name).value();
    for (const auto& [path, text] : agent.files) {
      INFO(name << ": " << path);
      CHECK(change::IsAgentInstruction(path));
      CHECK(sandbox::IsSecret("/root/" + path, {}, {}));
      ++files;
    }
  }
  CHECK(files > 0);
}

}  // namespace
}  // namespace run
