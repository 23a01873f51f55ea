// SPDX-License-Identifier: Apache-2.0
#include "post/suggestion_gate.h"

#include <utility>

namespace post {

SuggestionGate::SuggestionGate(forge::Branches& branches, std::string head_sha,
                               ReadGates read_gates, Deadline deadline)
    : branches_(branches),
      head_sha_(std::move(head_sha)),
      read_gates_(std::move(read_gates)),
      deadline_(deadline) {}

Status SuggestionGate::Read() {
  if (tree_) return Ok();
  limits_ = TRY(read_gates_());
  std::vector<forge::CommitRecord> history = TRY(branches_.ReadHistory(head_sha_, 1, deadline_));
  if (history.empty()) return Error{Code::kNotFound, "there is no commit " + head_sha_};
  CommitTree tree = TRY(CommitTree::Read(branches_, history.front().tree, deadline_));
  limits_.links = TRY(tree.ProtectedLinks());
  tree_.emplace(std::move(tree));
  return Ok();
}

Result<std::string> SuggestionGate::Judge(const std::string& path, const std::string& lines) {
  TRY(Read());
  forge::TreeEntry entry = tree_->Find(path);
  if (entry.mode == kLinkMode) return std::string("the file is a symbolic link");
  limits_.before = tree_->Names(change::RepositoryCandidates({path}));
  for (const change::GateFinding& finding : change::JudgeLines(path, lines, limits_).findings) {
    if (finding.severity == change::Severity::kError) {
      return "the gate " + finding.gate + " refuses it: " + finding.message;
    }
  }
  return std::string();
}

Result<std::string> SuggestionGate::WhyNot(const std::string& path, const std::string& lines) {
  if (!unread_.empty()) return unread_;
  Result<std::string> judged = Judge(path, lines);
  if (judged.ok()) return judged;
  const bool temporary = judged.error().code == Code::kTemporary;
  if (temporary && !deadline_.passed()) return judged;
  unread_ = temporary ? "it cannot be judged in time"
                      : "it cannot be judged here: " + judged.error().what;
  return unread_;
}

}  // namespace post
