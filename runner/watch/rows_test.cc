// SPDX-License-Identifier: Apache-2.0
#include "watch/rows.h"

#include <catch2/catch.hpp>

namespace watch {
namespace {

std::string Seen(Rows& rows, int height) {
  std::string text;
  for (const Rows::Row& row : rows.Visible(height))
    text += (row.selected ? ">" : "") + row.text + " ";
  return text;
}

std::vector<Rows::Entry> Entries(int count) {
  std::vector<Rows::Entry> entries;
  for (int i = 0; i < count; ++i) entries.push_back({std::to_string(i), std::to_string(i) + "\n"});
  return entries;
}

TEST_CASE("rows: the selected one is always seen") {
  Rows rows;
  CHECK(Seen(rows, 3).empty());
  rows.Move(1);
  rows.MoveToLast();
  CHECK(rows.Selected().empty());
  rows.Set(Entries(6));
  CHECK(Seen(rows, 3) == ">0 1 2 ");
  rows.Move(3);
  CHECK(Seen(rows, 3) == "1 2 >3 ");
  rows.Move(-1);
  CHECK(Seen(rows, 3) == "1 >2 3 ");
  rows.Move(100);
  CHECK(Seen(rows, 3) == "3 4 >5 ");
  CHECK(Seen(rows, 100) == "0 1 2 3 4 >5 ");
  CHECK(Seen(rows, 1) == ">5 ");
  CHECK(Seen(rows, 0).empty());
  CHECK(Seen(rows, -2).empty());
  rows.Move(-100);
  CHECK(Seen(rows, 2) == ">0 1 ");
  rows.MoveToLast();
  rows.Set(Entries(2));
  CHECK(Seen(rows, 3) == "0 >1 ");
  rows.Set({});
  CHECK(Seen(rows, 3).empty());
}

TEST_CASE("rows: the selected entry stays so when others come in front, or it is made again") {
  Rows rows;
  rows.Set({{"a", "a: why\n"}, {"c", "c: why\n  more\n"}});
  rows.Move(1);
  rows.Set({{"x", "x\n"}, {"a", "a: why\n"}, {"c", "c, 2 times: why\n  more\n"}});
  CHECK(rows.Selected() == std::vector<std::string>{"c, 2 times: why", "  more"});
}

session::FileChange Change(const char* kind, const char* path, const char* old_path = "") {
  return {kind, path, old_path, false};
}

std::vector<std::string> Texts(const std::vector<Rows::Entry>& entries) {
  std::vector<std::string> texts;
  for (const Rows::Entry& entry : entries) texts.push_back(entry.text);
  return texts;
}

TEST_CASE("files: the last that became of each, and what was created stays so") {
  FileList files;
  files.Note(Change("created", "a"));
  files.Note(Change("modified", "a"));
  files.Note(Change("modified", "b"));
  files.Note(Change("deleted", "b"));
  files.Note(Change("renamed", "d", "c"));
  files.Note(Change("created", "e\x1b[31m"));
  CHECK(Texts(files.Render(true)) ==
        std::vector<std::string>{"created a", "deleted b", "renamed c to d", "created e"});
  files.Note(Change("deleted", "a"));
  CHECK(files.Render(false).front().text == "deleted a");
  CHECK(files.Render(true).back().text == "and more than could be looked at");
}

TEST_CASE("files: their number is bounded") {
  FileList files;
  for (size_t i = 0; i <= FileList::kFilesMax; ++i) {
    files.Note(Change("created", std::to_string(i).c_str()));
  }
  CHECK(files.size() == FileList::kFilesMax);
  CHECK(files.Render(true).size() == FileList::kFilesMax + 1);
}

}  // namespace
}  // namespace watch
