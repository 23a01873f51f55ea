// SPDX-License-Identifier: Apache-2.0
#include "change/raw/raw_changes.h"

#include <fcntl.h>

#include <utility>

#include "base/sys.h"
#include "change/tree_file.h"
#include "change/upper_walk.h"

namespace change {
namespace {

class Lister {
 public:
  Lister(const ChangedTree& tree, int lower, const RawLimits& limits,
         const std::function<Status(const RawChange&)>& take)
      : tree_(tree), lower_(lower), limits_(limits), take_(take) {}

  Status Present(const std::string& path) {
    Result<TreeFile> now = TreeFile::Open(tree_.fd, path, Unreadable::kMakeReadable);
    auto given = tree_.replaced.find(path);
    if (given != tree_.replaced.end()) return Replaced(path, now, given->second);
    Result<TreeFile> was = TreeFile::Open(lower_, path, Unreadable::kFail);
    if (was.ok() && now.ok() && was.value().mode() == now.value().mode()) {
      Result<bool> same = now.value().SameBytes(was.value());
      if (same.ok() && same.value()) return Ok();
    }
    const bool is_new = was.ok() ? was.value().mode() == 0 : was.error().code == Code::kNotFound;
    return Take({path, is_new ? ChangeKind::kCreated : ChangeKind::kModified, Content(now)});
  }

  Status Gone(const std::string& path) {
    auto given = tree_.replaced.find(path);
    if (given != tree_.replaced.end() && !given->second) return Ok();
    return Take({path, ChangeKind::kDeleted, std::nullopt});
  }

  // A pipe, a socket or a device is there; what is lost may be anything.
  Status LeftOut(const std::string& path, bool lost) {
    if (!lost) return Take({path, ChangeKind::kCreated, std::nullopt});
    complete_ = false;
    return Ok();
  }

  bool complete() const { return complete_; }

 private:
  // The agent was given `text`, or no file, in place of what the checkout has.
  Status Replaced(const std::string& path, const Result<TreeFile>& now,
                  const std::optional<std::string>& text) {
    std::optional<std::string> content = Content(now);
    if (text && content == text) return Ok();
    return Take({path, text ? ChangeKind::kModified : ChangeKind::kCreated, std::move(content)});
  }

  std::optional<std::string> Content(const Result<TreeFile>& file) {
    if (!file.ok() || file.value().size() > limits_.content_bytes_max - content_bytes_) {
      return std::nullopt;
    }
    Result<std::string> bytes = file.value().Read(limits_.file_bytes_max);
    if (!bytes.ok()) return std::nullopt;
    content_bytes_ += static_cast<int64_t>(bytes.value().size());
    return std::move(bytes).value();
  }

  Status Take(const RawChange& change) {
    if (changes_++ < limits_.changes_max) return take_(change);
    complete_ = false;
    return Ok();
  }

  const ChangedTree& tree_;
  int lower_;
  const RawLimits& limits_;
  const std::function<Status(const RawChange&)>& take_;
  int64_t changes_ = 0;
  int64_t content_bytes_ = 0;
  bool complete_ = true;
};

}  // namespace

Result<bool> ListRawChanges(const ChangedTree& tree, const std::string& checkout,
                            const RawLimits& limits,
                            const std::function<Status(const RawChange&)>& take) {
  Fd lower = TRY(sys::Open(checkout, O_RDONLY | O_DIRECTORY).Context("opening the checkout"));
  CopyFacts copy;
  if (tree.copied) copy = FactsOfCopy(tree, checkout);
  if (tree.copied && TRY(HasNoBase(tree.fd, lower.get(), copy))) return false;
  Lister lister(tree, lower.get(), limits, take);
  Status taken = Ok();
  UpperVisitor visitor;
  visitor.present = [&](const std::string& path) { return lister.Present(path); };
  visitor.gone = [&](const std::string& path) { return lister.Gone(path); };
  visitor.left_out = [&](const std::string& path, const std::string&, bool lost) {
    if (taken.ok()) taken = lister.LeftOut(path, lost);
  };
  visitor.submodule = [](const std::string&) {};
  visitor.ignored = [](const std::string&) {};
  WalkedLayers layers{tree.fd, lower.get(), tree.copied ? &copy : nullptr};
  layers.with_git = true;
  TRY(WalkUpper(layers, nullptr, limits.entries_max, visitor));
  TRY(std::move(taken));
  return lister.complete();
}

}  // namespace change
