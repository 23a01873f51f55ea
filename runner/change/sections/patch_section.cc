// SPDX-License-Identifier: Apache-2.0
#include "change/sections/patch_section.h"

#include <charconv>
#include <optional>
#include <utility>

#include "change/sections/binary_block.h"
#include "codec/text/git_name.h"

namespace change {
namespace {

// Takes a number off the front of `text`; nullopt if there is none or it is too large.
std::optional<int64_t> TakeNumber(std::string_view& text, int base = 10) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || number < 0 || end == text.data()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

bool TakeText(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

bool IsId(std::string_view text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

class SectionReader {
 public:
  explicit SectionReader(std::string_view patch) : patch_(patch), rest_(patch) { Next(); }

  Result<std::vector<PatchSection>> ReadAll() {
    std::vector<PatchSection> sections;
    while (!end_) {
      const char* begin = line_.data();
      if (!ReadSection()) {
        return Error{Code::kInvalid,
                     "not a patch as git writes it, at line " + std::to_string(number_)};
      }
      const char* end = end_ ? patch_.data() + patch_.size() : line_.data();
      section_.text = std::string_view(begin, static_cast<size_t>(end - begin));
      sections.push_back(std::move(section_));
    }
    return sections;
  }

 private:
  // Steps to the next line.
  void Next() {
    if (rest_.empty()) {
      end_ = true;
      line_ = {};
      return;
    }
    size_t newline = rest_.find('\n');
    line_ = rest_.substr(0, newline);
    rest_.remove_prefix(newline == std::string_view::npos ? rest_.size() : newline + 1);
    ++number_;
  }

  bool ReadSection() {
    section_ = PatchSection();
    created_ = deleted_ = false;
    std::string_view head = line_;
    if (end_ || !TakeText(head, "diff --git ")) return false;
    std::optional<std::string> both = codec::NameOfDiff(head);
    Next();
    if (!ReadExtendedHeader()) return false;
    bool named = !section_.old_path.empty() && !section_.new_path.empty();
    if (!named && !both.has_value()) return false;
    if (!named) section_.old_path = section_.new_path = *both;
    if (!end_ && line_.starts_with("--- ") && !ReadText()) return false;
    if (!end_ && line_ == "GIT binary patch" && !ReadBinary()) return false;
    if (created_ && deleted_) return false;
    if (created_) section_.old_path.clear();
    if (deleted_) section_.new_path.clear();
    bool changes = section_.binary.has_value() || !section_.hunks.empty();
    if (changes && section_.old_id.empty()) return false;
    return end_ || line_.starts_with("diff --git ");
  }

  bool ReadMode(int& into) {
    std::optional<int64_t> mode = TakeNumber(line_, 8);
    if (!mode.has_value() || !line_.empty() || *mode > 0777777) return false;
    into = static_cast<int>(*mode);
    return true;
  }

  bool ReadRenameName(std::string& into) {
    std::optional<std::string> name = codec::UnquoteGitName(line_);
    if (!name.has_value() || name->empty()) return false;
    into = *name;
    return true;
  }

  // "index OLD..NEW", full ids, with the mode behind when it does not change.
  bool ReadIndex() {
    std::string_view old_id = line_.substr(0, 40);
    line_.remove_prefix(old_id.size());
    if (!IsId(old_id) || !TakeText(line_, "..")) return false;
    std::string_view new_id = line_.substr(0, 40);
    line_.remove_prefix(new_id.size());
    if (!IsId(new_id)) return false;
    section_.old_id = old_id;
    section_.new_id = new_id;
    if (line_.empty()) return true;
    if (!TakeText(line_, " ") || !ReadMode(section_.new_mode)) return false;
    section_.old_mode = section_.new_mode;
    return true;
  }

  // Returns true if the line was one of the extended header's; sets `good` if it could be read.
  bool ReadHeaderLine(bool& good) {
    if (TakeText(line_, "new file mode ")) {
      created_ = true;
      good = ReadMode(section_.new_mode);
    } else if (TakeText(line_, "deleted file mode ")) {
      deleted_ = true;
      good = ReadMode(section_.old_mode);
    } else if (TakeText(line_, "old mode ")) {
      good = ReadMode(section_.old_mode);
    } else if (TakeText(line_, "new mode ")) {
      good = ReadMode(section_.new_mode);
    } else if (TakeText(line_, "rename from ")) {
      good = ReadRenameName(section_.old_path);
    } else if (TakeText(line_, "rename to ")) {
      good = ReadRenameName(section_.new_path);
    } else if (TakeText(line_, "index ")) {
      good = ReadIndex();
    } else {
      return line_.starts_with("similarity index ");
    }
    return true;
  }

  bool ReadExtendedHeader() {
    bool good = true;
    while (good && !end_ && ReadHeaderLine(good)) Next();
    return good;
  }

  // `--- ` and `+++ ` must say what the head said, or /dev/null.
  bool NameIs(std::string_view mark, std::string_view side, const std::string& path, bool none) {
    std::string_view text = line_;
    if (end_ || !TakeText(text, mark)) return false;
    if (text.ends_with('\t')) text.remove_suffix(1);  // git's, behind names with spaces.
    if (none) return text == "/dev/null";
    std::optional<std::string> name = codec::UnquoteGitName(text);
    return name.has_value() && *name == std::string(side) + path;
  }

  bool ReadText() {
    if (!NameIs("--- ", "a/", section_.old_path, created_)) return false;
    Next();
    if (!NameIs("+++ ", "b/", section_.new_path, deleted_)) return false;
    Next();
    while (!end_ && line_.starts_with("@@ ")) {
      if (!ReadHunk()) return false;
    }
    return true;
  }

  // "@@ -12,3 +15,4 @@ anything"; a missing count is 1.
  bool ReadHunk() {
    auto range = [&](std::string_view mark, int64_t& start, int64_t& count) {
      if (!TakeText(line_, mark)) return false;
      std::optional<int64_t> first = TakeNumber(line_);
      std::optional<int64_t> second = 1;
      if (TakeText(line_, ",")) second = TakeNumber(line_);
      if (!first.has_value() || !second.has_value()) return false;
      start = *first;
      count = *second;
      return true;
    };
    PatchHunk hunk;
    int64_t new_count = 0;
    bool good = range("@@ -", hunk.old_start, hunk.old_count) &&
                range(" +", hunk.new_start, new_count) && TakeText(line_, " @@");
    if (!good) return false;
    int64_t old_count = hunk.old_count;
    for (Next(); !end_ && (old_count > 0 || new_count > 0 || line_.starts_with('\\')); Next()) {
      char kind = line_.empty() ? '\0' : line_.front();
      if (kind == '\\') {
        if (hunk.lines.empty()) return false;
        hunk.lines.back().newline = false;
        continue;
      }
      if (kind != '+' && kind != '-' && kind != ' ') return false;
      if (kind != '+' && --old_count < 0) return false;
      if (kind != '-' && --new_count < 0) return false;
      hunk.lines.push_back({kind, line_.substr(1), true});
    }
    if (old_count != 0 || new_count != 0) return false;
    section_.hunks.push_back(std::move(hunk));
    return true;
  }

  // Two blocks, forward and back, each "literal N" or "delta N", base85 lines and an empty line.
  bool ReadBinary() {
    Next();
    for (int number = 0; number < 2; ++number) {
      BinaryBlock block;
      block.delta = line_.starts_with("delta ");
      if (end_ || (!TakeText(line_, "literal ") && !TakeText(line_, "delta "))) return false;
      std::optional<int64_t> size = TakeNumber(line_);
      if (!size.has_value() || !line_.empty()) return false;
      block.size = *size;
      const char* start = rest_.data();
      for (Next(); !end_ && !line_.empty(); Next()) {
        if (line_.find(' ') != std::string_view::npos) return false;
      }
      if (end_) return false;
      block.lines = std::string_view(start, static_cast<size_t>(line_.data() - start));
      if (number == 0) section_.binary = block;
      Next();
    }
    return true;
  }

  std::string_view patch_;
  std::string_view rest_;
  std::string_view line_;
  int64_t number_ = 0;
  bool end_ = false;
  bool created_ = false;
  bool deleted_ = false;
  PatchSection section_;
};

// Steps over one line of `text` from `at`, newline included.
size_t LineEnd(std::string_view text, size_t at) {
  size_t newline = text.find('\n', at);
  return newline == std::string_view::npos ? text.size() : newline + 1;
}

Result<std::string> ApplyHunks(const std::vector<PatchHunk>& hunks, std::string_view old_bytes) {
  const Error differs{Code::kInvalid, "its lines differ from those the patch was made from"};
  std::string bytes;
  size_t at = 0;
  int64_t line = 1;
  for (const PatchHunk& hunk : hunks) {
    int64_t first = hunk.old_count == 0 ? hunk.old_start + 1 : hunk.old_start;
    if (first < line) return differs;
    for (; line < first; ++line) {
      if (at == old_bytes.size()) return differs;
      size_t end = LineEnd(old_bytes, at);
      bytes += old_bytes.substr(at, end - at);
      at = end;
    }
    for (const PatchLine& change : hunk.lines) {
      std::string text(change.text);
      if (change.newline) text += '\n';
      if (change.kind != '-') bytes += text;
      if (change.kind == '+') continue;
      if (!old_bytes.substr(at).starts_with(text)) return differs;
      at += text.size();
      ++line;
      if (!change.newline && at != old_bytes.size()) return differs;
    }
  }
  bytes += old_bytes.substr(at);
  return bytes;
}

}  // namespace

Result<std::vector<PatchSection>> ReadSections(std::string_view patch) {
  return SectionReader(patch).ReadAll();
}

Result<std::string> ApplySection(const PatchSection& section, std::string_view old_bytes) {
  if (section.binary.has_value()) return DecodeBinary(*section.binary, old_bytes);
  return ApplyHunks(section.hunks, old_bytes);
}

}  // namespace change
