// SPDX-License-Identifier: Apache-2.0
#include "change/gate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "change/patch.h"
#include "change/protected_path.h"
#include "change/secrets/secret_pattern.h"
#include "change/sections/binary_block.h"
#include "change/sections/patch_section.h"
#include "codec/text/fold.h"

namespace change {
namespace {

constexpr char kSecrets[] = "secrets";
constexpr char kPaths[] = "protected-paths";
constexpr char kSize[] = "size";

class Judge {
 public:
  Judge(const GateLimits& limits, const codec::SecretMask* known)
      : limits_(limits), known_(known) {}

  void JudgeSize(const ChangeSet& changes) {
    auto files = static_cast<int64_t>(changes.files.size());
    if (files > limits_.files_max) {
      Add(kSize, Severity::kError, "", 0,
          std::to_string(files) + " files changed; the limit is " +
              std::to_string(limits_.files_max) + " (gates.files)");
    }
    auto bytes = static_cast<int64_t>(changes.patch.size());
    if (bytes > limits_.patch_bytes_max) {
      Add(kSize, Severity::kError, "", 0,
          "the patch has " + std::to_string(bytes) + " bytes; the limit is " +
              std::to_string(limits_.patch_bytes_max) + " (gates.bytes)");
    }
    if (!changes.complete) {
      // One cause by name; the report has a finding for each.
      auto lost = std::find_if(changes.left_out.begin(), changes.left_out.end(),
                               [](const LeftOut& left) { return left.lost; });
      bool known = lost != changes.left_out.end();
      Add(kSize, Severity::kError, known ? lost->path : "", 0,
          "the patch is incomplete: " + (known ? lost->reason : "part of it is missing") +
              " (paths left out: " + std::to_string(changes.left_out_count) + ")");
    }
  }

  void JudgeLinks() {
    if (limits_.links_unknown.empty()) return;
    Add(kPaths, Severity::kError, "", 0,
        "what the checkout's symbolic links protect is not known: " + limits_.links_unknown);
  }

  void JudgeFile(const FileChange& file) {
    JudgeName(file.path);
    if (!file.old_path.empty() && file.old_path != file.path) JudgeName(file.old_path);
    for (int mode : {file.old_mode, file.new_mode}) {
      if (mode != 0 && mode != 0100644 && mode != 0100755 && mode != 0120000) {
        Add(kPaths, Severity::kError, file.path, 0, "neither a file nor a symbolic link");
      }
    }
    if (file.new_mode == 0120000 && LinkMayLeave(file.path, file.link_target)) {
      Add(kPaths, Severity::kError, file.path, 0,
          "a symbolic link that may lead outside the checkout or into .git");
    }
    JudgeText("", 0, file.path);  // The finding does not repeat the name.
  }

  void JudgeRepositories(const std::vector<FileChange>& files) {
    const std::vector<std::string> written = WrittenPaths(files, limits_.prefix);
    for (const EmbeddedRepository& one : FindEmbeddedRepositories(written, limits_.before)) {
      Add(kPaths, Severity::kError, written[one.file].substr(limits_.prefix.size()), 0,
          "git takes the directory '" + one.directory +
              "' for a repository with it, whose configuration can run commands");
    }
  }

  // They are not part of the patch; the report has them all the same.
  void JudgeConflicts(const std::vector<Conflict>& conflicts) {
    for (const Conflict& conflict : conflicts) {
      JudgeText("", 0, conflict.path);
      JudgeLines(conflict.path, conflict.bytes);
      std::string letters = conflict.bytes;
      std::erase(letters, '\0');
      if (letters.size() != conflict.bytes.size()) JudgeText(conflict.path, 0, letters);
    }
  }

  void JudgeLines(const std::string& path, std::string_view lines) {
    for (int64_t line = 1; !lines.empty(); ++line) {
      const size_t end = std::min(lines.find('\n'), lines.size());
      JudgeText(path, line, lines.substr(0, end));
      lines.remove_prefix(std::min(end + 1, lines.size()));
    }
  }

  // The patch is what will be applied; the records only describe it. They must agree.
  void JudgeSections(const ChangeSet& changes) {
    Result<std::vector<PatchSection>> read = ReadSections(changes.patch);
    if (!read.ok()) {
      Add(kPaths, Severity::kError, "", 0, read.error().what);
      return;
    }
    const std::vector<PatchSection>& sections = read.value();
    bool agree = sections.size() == changes.files.size();
    for (size_t at = 0; agree && at < sections.size(); ++at) {
      agree = Agree(sections[at], changes.files[at]);
    }
    if (!agree) {
      Add(kPaths, Severity::kError, "", 0, "the change records do not match the patch");
      return;
    }
    for (const PatchSection& section : sections) JudgeAdded(section);
  }

  Verdict Finish() {
    if (more_ > 0) {
      verdict_.findings.push_back(
          {kSize, Severity::kNote, "", 0, std::to_string(more_) + " more findings"});
    }
    return std::move(verdict_);
  }

 private:
  void Add(const char* gate, Severity severity, const std::string& path, int64_t line,
           std::string message) {
    if (severity == Severity::kError) verdict_.accepted = false;
    if (static_cast<int64_t>(verdict_.findings.size()) >= limits_.findings_max) {
      ++more_;
      return;
    }
    verdict_.findings.push_back({gate, severity, path, line, std::move(message)});
  }

  void JudgeName(const std::string& path) {
    if (!ValidPath(path)) {
      Add(kPaths, Severity::kError, path, 0, "a path outside the checkout or inside .git");
      return;
    }
    std::string whole = limits_.prefix + path;
    if (limits_.merged.contains(whole)) return;
    if (IsPolicy(whole)) {
      Add(kPaths, Severity::kError, path, 0, "the policy of this run, which --policy names");
      return;
    }
    std::optional<ProtectedPath> found = FindProtectedPath(whole, limits_.paths);
    for (const ProtectedLink& link : limits_.links) {
      if (found.has_value() && found->refused) break;
      if (whole != link.target && !whole.starts_with(link.target + "/")) continue;
      std::optional<ProtectedPath> linked =
          FindProtectedPath(link.path + whole.substr(link.target.size()), limits_.paths);
      if (!linked.has_value()) continue;
      found = std::move(linked);
      found->why += ", by the link " + link.path;
    }
    if (!found.has_value()) return;
    Add(kPaths, found->refused ? Severity::kError : Severity::kWarning, path, 0,
        std::move(found->why));
  }

  // Also for a directory above it, in whose place a link may come.
  bool IsPolicy(const std::string& path) const {
    const std::string folded = codec::FoldFileText(path);
    return std::any_of(limits_.policy.begin(), limits_.policy.end(),
                       [&](const std::string& policy) {
                         return (codec::FoldFileText(policy) + "/").starts_with(folded + "/");
                       });
  }

  // One byte of zero makes a text binary: that must not be a way past this gate.
  void JudgeBinary(const PatchSection& section) {
    if (section.new_path.empty()) return;
    Result<std::string> bytes = InflateBlock(*section.binary);
    if (!bytes.ok()) {
      Add(kSecrets, Severity::kError, section.new_path, 0, bytes.error().what);
      return;
    }
    const size_t begin = verdict_.findings.size();
    JudgeText(section.new_path, 0, bytes.value());
    // In UTF-16, each letter has a zero beside it.
    std::string letters = bytes.value();
    std::erase(letters, '\0');
    if (letters.size() != bytes.value().size()) {
      const size_t end = verdict_.findings.size();
      JudgeText(section.new_path, 0, letters);
      EraseRepeated(begin, end);
    }
    if (section.binary->delta) {
      Add(kSecrets, Severity::kNote, section.new_path, 0,
          "a binary file; only its new parts were searched for secrets");
    }
  }

  // Erases the findings from `end` on that say what one from `begin` says.
  void EraseRepeated(size_t begin, size_t end) {
    std::vector<GateFinding>& all = verdict_.findings;
    auto at = [&](size_t index) { return all.begin() + static_cast<ptrdiff_t>(index); };
    auto repeats = [&](const GateFinding& finding) {
      return std::any_of(at(begin), at(end), [&](const GateFinding& other) {
        return other.message == finding.message;
      });
    };
    all.erase(std::remove_if(at(end), all.end(), repeats), all.end());
  }

  void JudgeAdded(const PatchSection& section) {
    if (section.binary.has_value()) JudgeBinary(section);
    for (const PatchHunk& hunk : section.hunks) {
      int64_t line = hunk.new_start;
      for (const PatchLine& change : hunk.lines) {
        if (change.kind == '+') JudgeText(section.new_path, line, change.text);
        if (change.kind != '-') ++line;
      }
    }
  }

  void JudgeText(const std::string& path, int64_t line, std::string_view text) {
    if (known_ != nullptr && known_->Finds(text)) {
      verdict_.reveals_secret = true;
      Add(kSecrets, Severity::kError, path, line,
          "contains a secret of this run, and is withheld from the report");
    }
    if (limits_.merged.contains(limits_.prefix + path)) return;
    for (const SecretMatch& match : FindSecrets(text)) {
      std::string message = match.kind;
      if (!match.shown.empty()) message += ", " + match.shown + "...";
      message += ", " + std::to_string(match.length) + " characters";
      Add(kSecrets, match.certain ? Severity::kError : Severity::kWarning, path, line,
          std::move(message));
    }
  }

  static bool Agree(const PatchSection& section, const FileChange& file) {
    bool created = file.kind == ChangeKind::kCreated;
    bool deleted = file.kind == ChangeKind::kDeleted;
    bool renamed = file.kind == ChangeKind::kRenamed;
    if (created != section.old_path.empty() || deleted != section.new_path.empty()) return false;
    if (!created && section.old_path != (renamed ? file.old_path : file.path)) return false;
    if (!deleted && section.new_path != file.path) return false;
    if (section.new_mode != 0 && section.new_mode != file.new_mode) return false;
    if (section.binary.has_value() && !file.binary) return false;
    if (!section.hunks.empty() && file.binary) return false;
    // A link's target is all its text; a record may not say another.
    if (file.new_mode != 0120000 || (section.hunks.empty() && !file.binary)) return true;
    Result<std::string> target = ApplySection(section, "");
    return !created || (target.ok() && target.value() == file.link_target);
  }

  const GateLimits& limits_;
  const codec::SecretMask* known_;
  Verdict verdict_;
  int64_t more_ = 0;
};

// The reasons to refuse, by path; "" for the whole set.
std::map<std::string, std::string> Refusals(const Verdict& verdict) {
  std::map<std::string, std::string> refusals;
  for (const GateFinding& finding : verdict.findings) {
    if (finding.severity == Severity::kError) refusals.emplace(finding.path, finding.message);
  }
  return refusals;
}

// Removes the files at the paths of `refusals` from both the records and the patch, which agree.
void Remove(const std::map<std::string, std::string>& refusals, ChangeSet* changes) {
  Result<std::vector<PatchSection>> sections = ReadSections(changes->patch);
  std::string patch;
  std::vector<FileChange> files;
  for (size_t at = 0; sections.ok() && at < sections.value().size(); ++at) {
    FileChange& file = changes->files[at];
    if (refusals.contains(file.path)) continue;
    patch += sections.value()[at].text;
    files.push_back(std::move(file));
  }
  changes->patch = std::move(patch);
  changes->files = std::move(files);
}

}  // namespace

std::vector<std::string> WrittenPaths(const std::vector<FileChange>& files,
                                      const std::string& prefix) {
  std::vector<std::string> written;
  for (const FileChange& file : files) {
    if (file.kind != ChangeKind::kDeleted) written.push_back(prefix + file.path);
  }
  return written;
}

Verdict JudgeChanges(const ChangeSet& changes, const GateLimits& limits,
                     const codec::SecretMask* known) {
  Judge judge(limits, known);
  judge.JudgeSize(changes);
  judge.JudgeLinks();
  for (const FileChange& file : changes.files) judge.JudgeFile(file);
  judge.JudgeRepositories(changes.files);
  judge.JudgeSections(changes);
  judge.JudgeConflicts(changes.conflicts);
  return judge.Finish();
}

ChangeSet LeaveOutRefused(ChangeSet changes, GateLimits limits, const codec::SecretMask* known) {
  for (const Conflict& conflict : changes.conflicts) {
    LeaveOut(changes, conflict.path, conflict.reason, false);
  }
  changes.conflicts.clear();
  changes.complete = true;
  limits.findings_max = std::numeric_limits<int64_t>::max();
  // Without a file, others may be refused in its place: for a repository that they are part of.
  constexpr int kRoundsMax = 10;
  for (int round = 0;; ++round) {
    std::map<std::string, std::string> refusals = Refusals(JudgeChanges(changes, limits, known));
    if (refusals.empty()) return changes;
    const bool whole = refusals.contains("") || round == kRoundsMax;
    if (whole) refusals = {{".", refusals.begin()->second}};
    for (const auto& [path, why] : refusals) LeaveOut(changes, path, why, false);
    if (whole) {
      changes.files.clear();
      changes.patch.clear();
      return changes;
    }
    Remove(refusals, &changes);
  }
}

Verdict JudgeLines(const std::string& path, std::string_view lines, const GateLimits& limits) {
  FileChange file;
  file.path = path;
  file.kind = ChangeKind::kModified;
  Judge judge(limits, nullptr);
  judge.JudgeLinks();
  judge.JudgeFile(file);
  judge.JudgeRepositories({file});
  judge.JudgeLines(path, lines);
  return judge.Finish();
}

}  // namespace change
