// SPDX-License-Identifier: Apache-2.0
#include "change/attributes.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <memory>
#include <utility>

#include "base/sys.h"
#include "change/rules/attribute_rules.h"
#include "change/rules/ignore_file.h"
#include "change/rules/ignore_rules.h"

namespace change {
namespace {

constexpr char kFile[] = ".gitattributes";

Error TooMuch(const std::string& costly) {
  return Error{Code::kRefused, costly.empty()
                                   ? "its attributes (.gitattributes) take too long to match"
                                   : costly + " takes too long to match"};
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
    // A file that is too long is replaced by a text that is.
    return text.ok() ? std::move(text).value() : std::string(kIgnoreBytesMax + 1, '#');
  };
}

Attributes::Attributes(const Repository& repository, ReadAttributes read)
    : repository_(repository), read_(std::move(read)) {}

Result<MemoryRepository*> Attributes::Memory() {
  if (!memory_) memory_ = TRY(MemoryRepository::Create());
  return &*memory_;
}

const std::optional<std::string>& Attributes::TextIn(const std::string& directory) {
  auto text = texts_.find(directory);
  if (text == texts_.end()) text = texts_.emplace(directory, read_(directory)).first;
  return text->second;
}

// A commit of the attribute files that count in `directory`. Only the file at the top, and
// info/attributes, may define macros.
Result<Attributes::Rules> Attributes::RulesFor(const std::string& directory) {
  auto known = rules_.find(directory);
  if (known != rules_.end()) return known->second;
  std::set<std::string> macros = MacrosOf(TextIn("").value_or(""));
  macros.merge(MacrosOf(repository_.conversion_facts().attributes));
  Rules rules;
  TreeEntries files;
  for (size_t end = 0;;) {
    const std::string place = directory.substr(0, end) + kFile;
    if (const std::optional<std::string>& text = TextIn(directory.substr(0, end))) {
      const AskedAttributes asked = TakeAsked(*text, macros);
      rules.cost += asked.cost;
      if (asked.costly_line > 0 && rules.costly.empty()) {
        rules.costly = "line " + std::to_string(asked.costly_line) + " of " + place;
      }
      MemoryRepository* memory = TRY(Memory());
      files[place] = TreeEntry{TRY(memory->AddBlob(asked.text)), 0100644};
    }
    if (end >= directory.size()) break;
    end = directory.find('/', end) + 1;
  }
  if (!files.empty() && rules.cost <= kAttributeCostMax) {
    MemoryRepository* memory = TRY(Memory());
    rules.commit = TRY(memory->MakeCommit(files));
  }
  return rules_.emplace(directory, rules).first->second;
}

Result<Attributes::Rules> Attributes::OwnRules() {
  const std::string& text = repository_.conversion_facts().attributes;
  std::set<std::string> macros = MacrosOf(TextIn("").value_or(""));
  macros.merge(MacrosOf(text));
  const AskedAttributes asked = TakeAsked(text, macros);
  Rules rules{asked.cost, "", std::nullopt};
  if (asked.costly_line > 0) {
    rules.costly = "line " + std::to_string(asked.costly_line) + " of info/attributes";
  }
  if (asked.text.empty() || asked.cost > kAttributeCostMax) return rules;
  MemoryRepository* memory = TRY(Memory());
  TreeEntries file = {{kFile, {TRY(memory->AddBlob(asked.text)), 0100644}}};
  rules.commit = TRY(memory->MakeCommit(file));
  return rules;
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
  if (!own_) own_ = TRY(OwnRules());
  if (rules.cost + own_->cost > kAttributeCostMax || spent_ > kIgnoreSpentMax) {
    return TooMuch(rules.costly.empty() ? own_->costly : rules.costly);
  }
  AttributeValues values;
  auto began = std::chrono::steady_clock::now();
  if (rules.commit) TRY(Ask(*rules.commit, path, values));
  if (own_->commit) TRY(Ask(*own_->commit, path, values));  // These take precedence.
  spent_ += std::chrono::steady_clock::now() - began;
  return DecideConversion(values, facts.auto_crlf, facts.native_crlf);
}

}  // namespace change
