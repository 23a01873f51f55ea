// SPDX-License-Identifier: Apache-2.0
#include "report/record_json.h"

#include <cmath>
#include <utility>

#include "codec/data/json.h"
#include "codec/text/neutral.h"
#include "report/record_fields.h"

namespace report {
namespace {

using codec::Json;

constexpr size_t kTextBytesMax = size_t{64} << 10;
constexpr size_t kEntriesMax = 20000;
constexpr size_t kFileBytesMax = size_t{16} << 20;  // What is read; twice what lists may fill.
constexpr size_t kListBytesMax = kFileBytesMax / 2;
constexpr double kNumberMax = 9e15;  // Whole numbers up to here are exact in every JSON reader.

// Writes members of one object. Writer and Reader have the same face, so that a record's members
// are listed once (the Fields functions) and cannot differ between writing and reading.
class Writer {
 public:
  // Lists end where `left`, which all of a file's lists share, is used up: what an agent makes long
  // must not make the file too long to be read.
  explicit Writer(size_t* left) : left_(left) {}

  Json Take() { return std::move(json_); }

  void Field(const char* name, std::string& text) { json_.Set(name, Bounded(text)); }
  void Field(const char* name, int64_t& number) { json_.Set(name, number); }
  void Field(const char* name, int& number) { json_.Set(name, number); }
  void Field(const char* name, bool& flag) { json_.Set(name, flag); }
  void Field(const char* name, double& number) { json_.Set(name, number); }
  template <typename T>
  void Field(const char* name, std::optional<T>& value) {
    if (value) return Field(name, *value);
    json_.Set(name, Json());
  }
  void Field(const char* name, std::vector<std::string>& texts) {
    Json list = Json::EmptyArray();
    for (const std::string& text : texts) {
      if (!Push(Bounded(text), &list)) break;
    }
    json_.Set(name, std::move(list));
  }
  template <typename Enum, size_t N>
  void Field(const char* name, const Names<Enum, N>& names, Enum& value) {
    json_.Set(name, NameOf(names, value));
  }
  template <typename T>
  void Object(const char* name, T& value) {
    Writer inner(left_);
    Fields(inner, value);
    json_.Set(name, inner.Take());
  }
  template <typename T>
  void List(const char* name, std::vector<T>& values) {
    Json list = Json::EmptyArray();
    for (T& value : values) {
      Writer inner(left_);
      Fields(inner, value);
      if (list.array()->size() == kEntriesMax || !Push(inner.Take(), &list)) break;
    }
    json_.Set(name, std::move(list));
  }

 private:
  // Bounds a text, so that it can be read back, and no credential leaves in a text that quotes one.
  static std::string Bounded(const std::string& text) {
    return codec::CutUtf8(codec::RedactTokens(codec::ValidUtf8(text)), kTextBytesMax);
  }

  // Returns false if there is no room.
  bool Push(Json entry, Json* list) {
    const size_t bytes = codec::RenderJson(entry).size();
    if (bytes > *left_) return false;
    *left_ -= bytes;
    list->Push(std::move(entry));
    return true;
  }

  size_t* left_;
  Json json_ = Json::EmptyObject();
};

// Changes the texts of one object: the third with that face.
class Editor {
 public:
  explicit Editor(const std::function<std::string(std::string_view)>& edit) : edit_(edit) {}

  void Field(const char*, std::string& text) { text = edit_(text); }
  void Field(const char*, std::optional<std::string>& text) {
    if (text) text = edit_(*text);
  }
  void Field(const char*, std::vector<std::string>& texts) {
    for (std::string& text : texts) text = edit_(text);
  }
  template <typename Other>
  void Field(const char*, Other&) {}
  template <typename Enum, size_t N>
  void Field(const char*, const Names<Enum, N>&, Enum&) {}
  template <typename T>
  void Object(const char*, T& value) {
    Fields(*this, value);
  }
  template <typename T>
  void List(const char*, std::vector<T>& values) {
    for (T& value : values) Fields(*this, value);
  }

 private:
  const std::function<std::string(std::string_view)>& edit_;
};

// Reads members of one object; the first fault is kept, what follows is left as it was.
class Reader {
 public:
  Reader(const Json& json, std::string place, std::string* fault)
      : json_(json), place_(std::move(place)), fault_(fault) {
    if (json.object() == nullptr) Fail("", "not an object");
  }

  void Field(const char* name, std::string& text) {
    const Json* found = Find(name);
    if (found == nullptr) return;
    if (found->string() == nullptr) return Fail(name, "not a string");
    if (found->string()->size() > kTextBytesMax) return Fail(name, "too long");
    text = *found->string();
  }
  void Field(const char* name, int64_t& number) {
    const Json* found = Find(name);
    if (found == nullptr) return;
    const std::optional<int64_t> value = found->integer();
    if (!value) return Fail(name, "not a whole number");
    if (std::abs(static_cast<double>(*value)) > kNumberMax) return Fail(name, "out of range");
    number = *value;
  }
  void Field(const char* name, int& number) {
    int64_t wide = 0;
    Field(name, wide);
    if (wide < -1000000000 || wide > 1000000000) return Fail(name, "out of range");
    number = static_cast<int>(wide);
  }
  void Field(const char* name, bool& flag) {
    const Json* found = Find(name);
    if (found == nullptr) return;
    if (!found->boolean()) return Fail(name, "not a boolean");
    flag = *found->boolean();
  }
  void Field(const char* name, double& number) {
    std::optional<double> value = number;
    Field(name, value);
    if (fault_->empty() && !value) return Fail(name, "not a number");
    number = value.value_or(0);
  }
  void Field(const char* name, std::optional<double>& number) {
    const Json* found = Find(name);
    if (found == nullptr || found->is_null()) return;
    if (!found->number()) return Fail(name, "neither a number nor null");
    if (std::abs(*found->number()) > kNumberMax) return Fail(name, "out of range");
    number = found->number();
  }
  template <typename T>
  void Field(const char* name, std::optional<T>& value) {
    const Json* found = Find(name);
    if (found == nullptr || found->is_null()) return;
    Field(name, value.emplace());
  }
  void Field(const char* name, std::vector<std::string>& texts) {
    const Json* list = FindList(name);
    if (list == nullptr) return;
    for (const Json& entry : *list->array()) {
      if (entry.string() == nullptr) return Fail(name, "not a list of strings");
      if (entry.string()->size() > kTextBytesMax) return Fail(name, "too long");
      texts.push_back(*entry.string());
    }
  }
  template <typename Enum, size_t N>
  void Field(const char* name, const Names<Enum, N>& names, Enum& value) {
    std::string text;
    Field(name, text);
    if (fault_->empty() && !ParseName(names, text, &value)) Fail(name, "unknown value");
  }
  template <typename T>
  void Object(const char* name, T& value) {
    const Json* found = Find(name);
    if (found == nullptr) return;
    Reader inner(*found, place_ + name + ".", fault_);
    if (fault_->empty()) Fields(inner, value);
  }
  template <typename T>
  void List(const char* name, std::vector<T>& values) {
    const Json* list = FindList(name);
    if (list == nullptr) return;
    for (const Json& entry : *list->array()) {
      Reader inner(entry, place_ + name + "[].", fault_);
      if (!fault_->empty()) return;
      T value;
      Fields(inner, value);
      values.push_back(std::move(value));
    }
  }

 private:
  void Fail(std::string_view name, std::string_view why) {
    if (!fault_->empty()) return;
    const std::string where = place_ + std::string(name);
    *fault_ = where + (where.empty() ? "" : ": ") + std::string(why);
  }
  const Json* Find(const char* name) {
    if (!fault_->empty()) return nullptr;
    const Json* found = json_.Find(name);
    if (found == nullptr) Fail(name, "missing");
    return found;
  }
  const Json* FindList(const char* name) {
    const Json* found = Find(name);
    if (found == nullptr) return nullptr;
    if (found->array() == nullptr) {
      Fail(name, "not a list");
      return nullptr;
    }
    if (found->array()->size() > kEntriesMax) {
      Fail(name, "too many entries");
      return nullptr;
    }
    return found;
  }

  const Json& json_;
  std::string place_;
  std::string* fault_;
};

template <typename T>
std::string RenderVersioned(T value) {
  size_t left = kListBytesMax;
  Writer writer(&left);
  int version = kRecordVersion;
  writer.Field("version", version);
  Fields(writer, value);
  return codec::RenderJson(writer.Take());
}

template <typename T>
Result<T> ParseVersioned(std::string_view text) {
  const Json json = TRY(codec::ParseJson(text, {.bytes_max = kFileBytesMax, .depth_max = 16}));
  std::string fault;
  Reader reader(json, "", &fault);
  int version = 0;
  reader.Field("version", version);
  if (fault.empty() && version != kRecordVersion) {
    fault = "version: " + std::to_string(version) + " is not supported; expected " +
            std::to_string(kRecordVersion);
  }
  T value;
  if (fault.empty()) Fields(reader, value);
  if (!fault.empty()) return Error{Code::kInvalid, fault};
  return value;
}

}  // namespace

std::string RenderRun(const RunFile& run) { return RenderVersioned(run); }

std::string RenderChanges(const ChangesRecord& totals, const std::vector<ChangedFile>& files) {
  return RenderVersioned(ChangesFile{totals, files});
}

void EditTexts(const std::function<std::string(std::string_view)>& edit, ReportInput* input) {
  Editor editor(edit);
  RunFile run{std::move(input->record), std::move(input->agent_text), std::move(input->agent_tail)};
  Fields(editor, run);
  input->record = std::move(run.record);
  input->agent_text = std::move(run.agent_text);
  input->agent_tail = std::move(run.agent_tail);
  for (ChangedFile& file : input->files) Fields(editor, file);
  for (AllowedRequest& one : input->allowed) {
    for (std::string* text : {&one.host, &one.method, &one.path, &one.hosted, &one.binary})
      *text = edit(*text);
  }
  for (TranscriptStep& step : input->transcript) {
    for (std::string* text : {&step.title, &step.text, &step.result}) *text = edit(*text);
  }
  input->log = edit(input->log);
}

Result<RunFile> ParseRun(std::string_view json) { return ParseVersioned<RunFile>(json); }

Result<std::vector<ChangedFile>> ParseChanges(std::string_view json) {
  ChangesFile changes = TRY(ParseVersioned<ChangesFile>(json));
  return std::move(changes.files);
}

}  // namespace report
