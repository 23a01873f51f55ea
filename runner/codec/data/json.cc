// SPDX-License-Identifier: Apache-2.0
#include "codec/data/json.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <nlohmann/json.hpp>

#include "base/ascii.h"

namespace codec {
namespace {

// Builds a Json from nlohmann's events, so that every bound is kept while reading and not after.
class Builder {
 public:
  explicit Builder(const JsonBounds& bounds) : bounds_(bounds) {}

  Json Take() { return std::move(root_); }
  const Error& fault() const { return fault_; }

  bool null() { return Add(Json()); }
  bool boolean(bool value) { return Add(Json(value)); }
  bool number_integer(int64_t value) { return Add(Json(value)); }
  bool number_unsigned(uint64_t value) {
    if (value <= static_cast<uint64_t>(INT64_MAX)) return Add(Json(static_cast<int64_t>(value)));
    return Add(Json(static_cast<double>(value)));
  }
  bool number_float(double value, const std::string&) { return Add(Json(value)); }
  bool string(std::string& value) { return Add(Json(std::move(value))); }
  bool binary(std::vector<uint8_t>&) { return Fail("binary value"); }
  bool start_object(size_t) { return Open(Json::EmptyObject()); }
  bool start_array(size_t) { return Open(Json::EmptyArray()); }
  bool key(std::string& name) {
    open_.back().name = std::move(name);
    return true;
  }
  bool end_object() {
    std::vector<std::string_view> names;
    for (const Json::Member& member : *open_.back().value.object()) names.push_back(member.first);
    std::sort(names.begin(), names.end());
    if (std::adjacent_find(names.begin(), names.end()) != names.end()) {
      return Fail("a duplicate name in an object", ErrorKind::kNameTwice);
    }
    return Shut();
  }
  bool end_array() { return Shut(); }
  bool parse_error(size_t at, const std::string&, const nlohmann::json::exception&) {
    return Fail("not JSON at byte " + std::to_string(at));
  }

 private:
  struct Level {
    Json value;
    std::string name;  // The name of the member that is being read, in an object.
  };

  bool Fail(std::string_view why, ErrorKind kind = ErrorKind::kOther) {
    if (!std::exchange(failed_, true)) fault_ = Status(Invalid(why)).Kind(kind).error();
    return false;
  }
  bool Open(Json empty) {
    if (static_cast<int>(open_.size()) >= bounds_.depth_max) return Fail("nested too deeply");
    open_.push_back({std::move(empty), {}});
    return true;
  }
  bool Shut() {
    Json done = std::move(open_.back().value);
    open_.pop_back();
    return Add(std::move(done));
  }
  bool Add(Json value) {
    if (++values_ > bounds_.values_max) return Fail("too many values");
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Level& level = open_.back(); level.value.array() != nullptr) {
      level.value.Push(std::move(value));
    } else {
      level.value.Set(std::move(level.name), std::move(value));
    }
    return true;
  }

  JsonBounds bounds_;
  std::vector<Level> open_;
  Json root_;
  size_t values_ = 0;
  bool failed_ = false;
  Error fault_ = Invalid("not JSON");
};

nlohmann::ordered_json ToLibrary(const Json& json) {
  if (std::optional<bool> flag = json.boolean()) return *flag;
  if (std::optional<int64_t> integer = json.integer()) return *integer;
  if (std::optional<double> number = json.number()) return *number;
  if (const std::string* text = json.string()) return *text;
  if (const Json::Array* array = json.array()) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const Json& element : *array) out.push_back(ToLibrary(element));
    return out;
  }
  if (const Json::Object* object = json.object()) {
    // Straight into the underlying vector: operator[] would search it for every name.
    nlohmann::ordered_json::object_t out;
    out.reserve(object->size());
    for (const Json::Member& member : *object) {
      static_cast<std::vector<nlohmann::ordered_json::object_t::value_type>&>(out).emplace_back(
          member.first, ToLibrary(member.second));
    }
    return out;
  }
  return nullptr;
}

std::string Dump(const Json& json, int indent) {
  return ToLibrary(json).dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

Json::Json() = default;
Json::Json(bool value) : value_(value) {}
Json::Json(int value) : value_(int64_t{value}) {}
Json::Json(int64_t value) : value_(value) {}
Json::Json(double value) {
  if (std::isfinite(value)) value_ = value;
}
Json::Json(std::string value) : value_(std::move(value)) {}
Json::Json(std::string_view value) : value_(std::string(value)) {}
Json::Json(const char* value) : value_(std::string(value)) {}
Json::Json(const Json&) = default;
Json& Json::operator=(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

Json Json::EmptyArray() {
  Json json;
  json.value_ = Array();
  return json;
}

Json Json::EmptyObject() {
  Json json;
  json.value_ = Object();
  return json;
}

Json Json::FromStrings(const std::vector<std::string>& values) {
  Json json = EmptyArray();
  for (const std::string& value : values) json.Push(value);
  return json;
}

bool Json::is_null() const { return std::holds_alternative<std::monostate>(value_); }

std::optional<bool> Json::boolean() const {
  const bool* value = std::get_if<bool>(&value_);
  return value ? std::optional<bool>(*value) : std::nullopt;
}

std::optional<int64_t> Json::integer() const {
  const int64_t* value = std::get_if<int64_t>(&value_);
  return value ? std::optional<int64_t>(*value) : std::nullopt;
}

std::optional<double> Json::number() const {
  if (const double* value = std::get_if<double>(&value_)) return *value;
  if (const int64_t* value = std::get_if<int64_t>(&value_)) return static_cast<double>(*value);
  return std::nullopt;
}

const std::string* Json::string() const { return std::get_if<std::string>(&value_); }
const Json::Array* Json::array() const { return std::get_if<Array>(&value_); }
const Json::Object* Json::object() const { return std::get_if<Object>(&value_); }

const Json* Json::Find(std::string_view name) const {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  for (const Member& member : *members) {
    if (member.first == name) return &member.second;
  }
  return nullptr;
}

std::string Json::StringAt(std::string_view name) const {
  const Json* found = Find(name);
  const std::string* text = found ? found->string() : nullptr;
  return text ? *text : std::string();
}

int64_t Json::IntegerAt(std::string_view name, int64_t fallback) const {
  const Json* found = Find(name);
  return found ? found->integer().value_or(fallback) : fallback;
}

bool Json::BooleanAt(std::string_view name, bool fallback) const {
  const Json* found = Find(name);
  return found ? found->boolean().value_or(fallback) : fallback;
}

Json& Json::Set(std::string name, Json value) {
  if (is_null()) value_ = Object();
  Object* members = std::get_if<Object>(&value_);
  ENSURE(members != nullptr);
  members->emplace_back(std::move(name), std::move(value));
  return *this;
}

Json& Json::Push(Json value) {
  if (is_null()) value_ = Array();
  Array* elements = std::get_if<Array>(&value_);
  ENSURE(elements != nullptr);
  elements->push_back(std::move(value));
  return *this;
}

Result<Json> ParseJson(std::string_view text, const JsonBounds& bounds) {
  if (text.size() > bounds.bytes_max) {
    return Error{Code::kInvalid,
                 "more than " + std::to_string(bounds.bytes_max) + " bytes of JSON"};
  }
  // The library takes a zero byte for the end, whatever follows it.
  if (text.find('\0') != std::string_view::npos)
    return Error{Code::kInvalid, "a zero byte in JSON"};
  // RFC 8259, 8.1. The library would skip it, and other readers of the same text refuse it.
  if (text.starts_with("\xef\xbb\xbf")) {
    return Error{Code::kInvalid, "a byte-order mark before the JSON"};
  }
  try {
    Builder builder(bounds);
    if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
      return builder.fault();
    }
    return builder.Take();
  } catch (
      const std::exception&) {  // The seam: out of memory and whatever else the library throws.
    return Error{Code::kInvalid, "malformed JSON"};
  }
}

// Only in texts are there such characters, and there an escape means the same.
std::string RenderJson(const Json& json) {
  const std::string plain = Dump(json, 2) + "\n";
  std::string out;
  out.reserve(plain.size());
  for (size_t at = 0; at < plain.size(); ++at) {
    const auto byte = static_cast<unsigned char>(plain[at]);
    if (byte == '#' && at > 0 && plain[at - 1] == '#') {
      size_t word = at + 1;
      while (ascii::IsAlpha(plain[word])) ++word;
      out += plain[word] == '[' ? "\\u0023" : "#";
    } else if (byte == 0x7f) {
      out += "\\u007f";
    } else if (byte == 0xc2 && static_cast<unsigned char>(plain[at + 1]) < 0xa0) {
      out += "\\u00";
      out += plain[++at] & 0x10 ? '9' : '8';
      out += "0123456789abcdef"[plain[at] & 15];
    } else {
      out += plain[at];
    }
  }
  return out;
}

std::string RenderJsonLine(const Json& json) { return Dump(json, -1); }

std::string TextOf(const Json* content) {
  if (content == nullptr) return {};
  if (const std::string* text = content->string()) return *text;
  std::string out;
  if (const Json::Array* parts = content->array()) {
    for (const Json& part : *parts) out += part.StringAt("text");
  }
  return out;
}

}  // namespace codec
