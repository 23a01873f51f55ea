// SPDX-License-Identifier: Apache-2.0
// Finds how git converts the files of a working tree, as its attribute files say. Internal to
// change/.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "change/memory_repository.h"
#include "change/repository.h"
#include "change/rules/conversion.h"

namespace change {

// Gives the text of the .gitattributes in `directory`, named from the top of the working tree with
// a `/` at its end ("" is the top); nullopt if git would read none there.
using ReadAttributes = std::function<std::optional<std::string>(const std::string& directory)>;

// Reads the .gitattributes files of the working tree on disk.
ReadAttributes AttributesOnDisk(const Repository& repository);

class Attributes {
 public:
  // `repository` is borrowed; its configuration and its info/attributes count too.
  Attributes(const Repository& repository, ReadAttributes read);

  // Returns the conversion of `path`, relative to the checkout. Fails with kRefused if the rules
  // cost too much to ask: they belong to the pull request (attribute_rules.h).
  Result<Conversion> Of(const std::string& path);

 private:
  struct Rules {
    int64_t cost = 0;
    std::string costly;             // The line that costs too much alone, and its file.
    std::optional<git_oid> commit;  // nullopt if there are no rules.
  };
  Result<Rules> RulesFor(const std::string& directory);
  Result<Rules> OwnRules();
  const std::optional<std::string>& TextIn(const std::string& directory);
  Status Ask(const git_oid& commit, const std::string& path, AttributeValues& values);
  Result<MemoryRepository*> Memory();

  const Repository& repository_;
  ReadAttributes read_;
  std::optional<MemoryRepository> memory_;
  std::map<std::string, std::optional<std::string>> texts_;  // By directory.
  std::map<std::string, Rules> rules_;
  std::optional<Rules> own_;  // The rules in the repository's info/attributes.
  std::chrono::steady_clock::duration spent_{};
};

}  // namespace change
