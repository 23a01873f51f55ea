// SPDX-License-Identifier: Apache-2.0
#include "watch/rows.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "watch/lines.h"

namespace watch {
namespace {

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

void Rows::Set(std::vector<Entry> entries) {
  if (!entries_.empty()) {
    auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
      return entry.key == entries_[selected_].key;
    });
    if (found != entries.end()) selected_ = static_cast<size_t>(found - entries.begin());
  }
  entries_ = std::move(entries);
  Move(0);
}

void Rows::Move(int rows) {
  auto last = static_cast<ptrdiff_t>(entries_.size()) - 1;
  auto wanted = static_cast<ptrdiff_t>(selected_) + rows;
  selected_ = static_cast<size_t>(std::max<ptrdiff_t>(std::min(wanted, last), 0));
}

void Rows::MoveToFirst() { selected_ = 0; }

void Rows::MoveToLast() { selected_ = entries_.empty() ? 0 : entries_.size() - 1; }

std::vector<Rows::Row> Rows::Visible(int height) {
  std::vector<Row> rows;
  if (height <= 0) return rows;
  auto most = static_cast<size_t>(height);
  top_ = std::min(top_, selected_);
  if (selected_ >= top_ + most) top_ = selected_ - most + 1;
  if (entries_.size() < top_ + most) top_ = entries_.size() > most ? entries_.size() - most : 0;
  for (size_t i = top_; i < std::min(entries_.size(), top_ + most); ++i) {
    rows.push_back({FirstLine(entries_[i].text), i == selected_, entries_[i].outcome});
  }
  return rows;
}

std::vector<std::string> Rows::Selected() const {
  std::vector<std::string> lines;
  if (entries_.empty()) return lines;
  std::string_view rest = entries_[selected_].text;
  while (!rest.empty()) {
    size_t end = rest.find('\n');
    lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return lines;
}

// A file that was created in the sandbox has not been modified, whatever is written to it.
void FileList::Note(const session::FileChange& change) {
  auto known = files_.find(change.path);
  if (known == files_.end() && files_.size() == kFilesMax) {
    complete_ = false;
    return;
  }
  bool stays = known != files_.end() && known->second.kind == "created" &&
               (change.kind == "modified" || change.kind == "mode");
  if (!stays) files_[change.path] = change;
}

std::vector<Rows::Entry> FileList::Render(bool complete) {
  complete_ = complete_ && complete;
  std::vector<Rows::Entry> entries;
  for (const auto& [path, change] : files_) entries.push_back({path, RenderChange(change), {}});
  if (!complete_) entries.push_back({"", "and more than could be looked at", {}});
  return entries;
}

}  // namespace watch
