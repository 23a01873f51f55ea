// SPDX-License-Identifier: Apache-2.0
// The lists of the screen, without a terminal: what is selected, what of it is seen.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "record/event.h"
#include "session/protocol.h"

namespace watch {

// Entries of which one is selected.
class Rows {
 public:
  using Outcome = record::Event::Outcome;
  struct Entry {
    std::string key;                   // The key of what it is about; the text may change.
    std::string text;                  // Lines, of which the first is the row.
    Outcome outcome = Outcome::kNone;  // Of a request.
  };
  struct Row {
    std::string text;
    bool selected = false;
    Outcome outcome = Outcome::kNone;
  };

  // Sets the entries; the one that was selected stays so, wherever it is now.
  void Set(std::vector<Entry> entries);
  // Moves by `rows`; stops at the ends.
  void Move(int rows);
  void MoveToFirst();
  void MoveToLast();
  // Returns at most `height` rows, the selected one among them.
  std::vector<Row> Visible(int height);
  // Returns the lines of the selected entry.
  std::vector<std::string> Selected() const;

 private:
  std::vector<Entry> entries_;
  size_t selected_ = 0;
  size_t top_ = 0;
};

// The files, with what has become of each.
class FileList {
 public:
  static constexpr size_t kFilesMax = 10'000;

  void Note(const session::FileChange& change);
  // Renders an entry for each file, by path. `complete` is true if nothing was missed; once it is
  // false it stays so.
  std::vector<Rows::Entry> Render(bool complete);
  size_t size() const { return files_.size(); }

 private:
  std::map<std::string, session::FileChange> files_;
  bool complete_ = true;
};

}  // namespace watch
