// SPDX-License-Identifier: Apache-2.0
#include "change/attributes.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <memory>
#include <utility>

#include "base/sys.h"
#include "change/rules/ignore_gate.h"

namespace change {
namespace {

constexpr char kFile[] = ".gitattributes";

Error TooMuch() {
  return Error{Code::kRefused, "its attributes (.gitattributes) take too long to match"};
}

}  // namespace

ReadAttributes AttributesOnDisk(const Repository& repository) {
  Result<Fd> opened = sys::Open(repository.top(), O_RDONLY | O_DIRECTORY);
  auto top = std::make_shared<Fd>(opened.ok() ? std::move(opened).value() : Fd());
  return [top](const std::string& directory) -> std::optional<std::string> {
    Result<Fd> file = sys::OpenBeneath(top->get(), directory + kFile,
                                       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat facts {};
    if (!file.ok() || ::fstat(file.value().get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
      return std::nullopt;
    }
    Result<std::string> text = sys::ReadAll(file.value().get(), kIgnoreBytesMax);
    // A file that is too long is replaced by rules whose cost is over the limit.
    return text.ok() ? std::move(text).value() : std::string(kIgnoreBytesMax, '*');
  };
}

Attributes::Attributes(const Repository& repository, ReadAttributes read)
    : repository_(repository), read_(std::move(read)) {}

Result<MemoryRepository*> Attributes::Memory() {
  if (!memory_) memory_ = TRY(MemoryRepository::Create());
  return &*memory_;
}

// A commit of the attribute files that count in `directory`.
Result<Attributes::Rules> Attributes::RulesFor(const std::string& directory) {
  auto known = rules_.find(directory);
  if (known != rules_.end()) return known->second;
  Rules rules;
  TreeEntries files;
  for (size_t end = 0;;) {
    std::string above = directory.substr(0, end);
    auto text = texts_.find(above);
    if (text == texts_.end()) text = texts_.emplace(above, read_(above)).first;
    if (text->second) {
      rules.cost += CostOfRules(*text->second);
      MemoryRepository* memory = TRY(Memory());
      files[above + kFile] = TreeEntry{TRY(memory->AddBlob(*text->second)), 0100644};
    }
    if (end >= directory.size()) break;
    end = directory.find('/', end) + 1;
  }
  if (!files.empty() && rules.cost <= kIgnoreCostMax) {
    MemoryRepository* memory = TRY(Memory());
    rules.commit = TRY(memory->MakeCommit(files));
  }
  return rules_.emplace(directory, rules).first->second;
}

Status Attributes::Ask(const git_oid& commit, const std::string& path, AttributeValues& values) {
  constexpr size_t kCount = 6;
  const char* names[kCount] = {"text", "crlf", "eol", "ident", "working-tree-encoding", "filter"};
  std::string* into[kCount] = {&values.text,  &values.crlf,     &values.eol,
                               &values.ident, &values.encoding, &values.filter};
  const char* found[kCount] = {};
  git_attr_options options = GIT_ATTR_OPTIONS_INIT;
  options.flags =
      GIT_ATTR_CHECK_INDEX_ONLY | GIT_ATTR_CHECK_NO_SYSTEM | GIT_ATTR_CHECK_INCLUDE_COMMIT;
  options.attr_commit_id = commit;
  if (git_attr_get_many_ext(found, memory_->get(), &options, path.c_str(), kCount, names) != 0) {
    return GitError(Code::kRefused, "its attributes cannot be read");
  }
  for (size_t i = 0; i < kCount; ++i) {
    switch (git_attr_value(found[i])) {
      case GIT_ATTR_VALUE_TRUE:
        *into[i] = "true";
        break;
      case GIT_ATTR_VALUE_FALSE:
        *into[i] = "false";
        break;
      case GIT_ATTR_VALUE_STRING:
        *into[i] = found[i];
        break;
      case GIT_ATTR_VALUE_UNSPECIFIED:
        break;
    }
  }
  return Ok();
}

Result<Conversion> Attributes::Of(const std::string& in_checkout) {
  const std::string path = repository_.prefix() + in_checkout;
  Rules rules = TRY(RulesFor(path.substr(0, path.rfind('/') + 1)));
  const ConversionFacts& facts = repository_.conversion_facts();
  if (!own_) {
    own_ = Rules{CostOfRules(facts.attributes), std::nullopt};
    if (!facts.attributes.empty() && own_->cost <= kIgnoreCostMax) {
      MemoryRepository* memory = TRY(Memory());
      TreeEntries file = {{kFile, {TRY(memory->AddBlob(facts.attributes)), 0100644}}};
      own_->commit = TRY(memory->MakeCommit(file));
    }
  }
  if (rules.cost + own_->cost > kIgnoreCostMax || spent_ > kIgnoreSpentMax) return TooMuch();
  AttributeValues values;
  auto began = std::chrono::steady_clock::now();
  if (rules.commit) TRY(Ask(*rules.commit, path, values));
  if (own_->commit) TRY(Ask(*own_->commit, path, values));  // These take precedence.
  spent_ += std::chrono::steady_clock::now() - began;
  return DecideConversion(values, facts.auto_crlf, facts.native_crlf);
}

}  // namespace change
