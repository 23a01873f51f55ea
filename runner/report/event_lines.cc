// SPDX-License-Identifier: Apache-2.0
#include "report/event_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/sys.h"
#include "codec/data/json.h"
#include "codec/text/base64.h"
#include "codec/text/neutral.h"
#include "codec/text/utf8.h"
#include "record/limits.h"

namespace report {
namespace {

// An argument of 64 KiB has six times as many bytes in JSON at most, and each some overhead.
constexpr size_t kProgramLineBytesMax = size_t{1} << 20;
constexpr size_t kProgramsBytesMax = size_t{128} << 20;

// A file's bytes and a path, with more than the writer's own bounds (change/raw_changes.h).
constexpr size_t kFileLineBytesMax = size_t{32} << 20;
constexpr size_t kFilesBytesMax = size_t{512} << 20;

// Returns false if it is not understood.
bool ParseLeftFile(const codec::Json& json, LeftFile* file) {
  file->path = json.StringAt("path");
  file->change = json.StringAt("change");
  if (const codec::Json* content = json.Find("base64")) {
    if (content->string() == nullptr) return false;
    file->content = codec::DecodeBase64(*content->string());
    if (!file->content) return false;
  }
  const bool known =
      file->change == "created" || file->change == "modified" || file->change == "deleted";
  return known && !file->path.empty();
}

// Returns false if it is not understood.
bool ParseProgram(const codec::Json& json, StartedProgram* program) {
  program->time_ms = json.IntegerAt("time");
  program->pid = json.IntegerAt("pid");
  program->parent = json.IntegerAt("parent");
  program->path = json.StringAt("path");
  program->cut = json.Find("cut") != nullptr;
  const codec::Json* arguments = json.Find("arguments");
  if (arguments == nullptr || arguments->array() == nullptr) return false;
  for (const codec::Json& one : *arguments->array()) {
    if (one.string() == nullptr) return false;
    program->arguments.push_back(*one.string());
  }
  return true;
}

}  // namespace

Status ForEachEventLine(const std::string& directory,
                        const std::function<void(std::string_view line, bool whole)>& take) {
  return ForEachLine(directory + "/events.ocsf.jsonl", record::kRecordLineBytesMax,
                     record::kRecordBytesMax, take)
      .Context("reading the events");
}

Status ForEachLine(const std::string& path, size_t line_bytes_max, size_t file_bytes_max,
                   const std::function<void(std::string_view line, bool whole)>& take,
                   int64_t from) {
  Result<Fd> opened = sys::Open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (!opened.ok() && opened.error().code == Code::kNotFound) return Ok();
  const Fd file = TRY(std::move(opened));
  struct stat facts = {};
  if (::fstat(file.get(), &facts) != 0) return Errno("fstat");
  if (!S_ISREG(facts.st_mode)) return Error{Code::kInvalid, path + ": not a regular file"};
  if (from > 0 && ::lseek(file.get(), from, SEEK_SET) < 0) return Errno("lseek");
  std::string pending;
  bool whole = true;
  std::string chunk(size_t{64} << 10, '\0');
  for (size_t total = 0; total < file_bytes_max;) {
    const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Errno("read");
    if (got == 0) break;
    total += static_cast<size_t>(got);
    std::string_view bytes(chunk.data(), static_cast<size_t>(got));
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      const std::string_view piece = bytes.substr(0, end);
      bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
      whole = whole && pending.size() + piece.size() <= line_bytes_max;
      if (whole) pending += piece;
      if (end == std::string_view::npos) break;
      take(whole ? std::string_view(pending) : std::string_view(), whole);
      pending.clear();
      whole = true;
    }
  }
  if (!pending.empty() || !whole) take(whole ? std::string_view(pending) : "", whole);
  return Ok();
}

Result<bool> ForEachProgram(const std::string& directory,
                            const std::function<void(const StartedProgram&)>& take) {
  bool begun = false;
  bool all = true;
  auto take_line = [&](std::string_view line, bool whole) {
    Result<codec::Json> json = codec::ParseJson(line);
    StartedProgram program;
    if (!whole || !json.ok()) {
      all = false;
    } else if (!begun) {
      begun = json.value().IntegerAt("version") == 1;
      all = all && begun;
    } else if (ParseProgram(json.value(), &program)) {
      all = all && !program.cut && !program.path.empty();
      take(program);
    } else {
      all = false;
    }
  };
  TRY(ForEachLine(directory + "/" + kProgramsFile, kProgramLineBytesMax, kProgramsBytesMax,
                  take_line)
          .Context("reading the record of programs"));
  return all && begun;
}

std::string RenderLeftFile(const LeftFile& file) {
  codec::Json json;
  json.Set("path", codec::ValidUtf8(file.path)).Set("change", file.change);
  if (file.content) json.Set("base64", codec::EncodeBase64(*file.content));
  return codec::RenderJsonLine(json);
}

Result<bool> ForEachLeftFile(const std::string& directory,
                             const std::function<void(LeftFile)>& take) {
  if (!sys::Exists(directory + "/" + kFilesFile)) return Error{Code::kNotFound, "no such record"};
  bool all = true;
  bool ended = false;
  auto take_line = [&](std::string_view line, bool whole) {
    LeftFile file;
    all = all && whole && !ended;
    if (line == kFilesEnd) {
      ended = true;
      return;
    }
    Result<codec::Json> json = codec::ParseJson(line, {.bytes_max = kFileLineBytesMax});
    if (json.ok() && ParseLeftFile(json.value(), &file)) {
      take(std::move(file));
    } else {
      all = false;
    }
  };
  TRY(ForEachLine(directory + "/" + kFilesFile, kFileLineBytesMax, kFilesBytesMax, take_line)
          .Context("reading the record of files"));
  return all && ended;
}

}  // namespace report
