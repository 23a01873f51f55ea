// SPDX-License-Identifier: Apache-2.0
// JSON as a value. nlohmann/json parses and renders the text (json.cc); neither its types nor its
// exceptions are visible outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace codec {

class Json {
 public:
  using Member = std::pair<std::string, Json>;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;  // In the order written; ParseJson refuses equal names.

  Json();  // null
  Json(bool value);
  Json(int value);
  Json(int64_t value);
  Json(double value);  // Not finite: null.
  Json(std::string value);
  Json(std::string_view value);
  Json(const char* value);
  static Json EmptyArray();
  static Json EmptyObject();
  static Json FromStrings(const std::vector<std::string>& values);

  Json(const Json&);
  Json& operator=(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(Json&&) noexcept;
  ~Json();

  // Each gives nothing (or nullptr) when the value is of another type. A whole number is also a
  // number; 1.0 is not an integer.
  bool is_null() const;
  std::optional<bool> boolean() const;
  std::optional<int64_t> integer() const;
  std::optional<double> number() const;
  const std::string* string() const;
  const Array* array() const;
  const Object* object() const;

  // Returns the member of that name; nullptr if there is none or this is not an object.
  const Json* Find(std::string_view name) const;
  // Returns, for input that may be anything, the member's value, or the fallback when it is absent
  // or of another type.
  std::string StringAt(std::string_view name) const;
  int64_t IntegerAt(std::string_view name, int64_t fallback = 0) const;
  bool BooleanAt(std::string_view name, bool fallback = false) const;

  // Adds a member to an object (or to null, which becomes one). The name must be new: not checked.
  Json& Set(std::string name, Json value);
  // Adds an element to an array (or to null, which becomes one).
  Json& Push(Json value);

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

// The bounds beyond which input is refused: JSON from outside is hostile.
struct JsonBounds {
  size_t bytes_max = size_t{4} << 20;
  int depth_max = 64;
  size_t values_max = 500000;  // About 100 bytes of memory each.
};

// Fails with kInvalid: not JSON (RFC 8259), beyond a bound, a name twice in one object, or bytes
// that are not UTF-8. A number beyond int64 is read as a double.
Result<Json> ParseJson(std::string_view text, const JsonBounds& bounds = {});

// Renders with two spaces of indentation and a final newline. Invalid UTF-8 becomes U+FFFD. A
// terminal or the log of a job carries out nothing that a text says: control characters and "##["
// are escaped.
std::string RenderJson(const Json& json);
// Renders on one line, without a newline.
std::string RenderJsonLine(const Json& json);

// Returns the text of a message to or from a model: a string, or a list of parts, some of which
// have a "text". Empty for nullptr and anything else.
std::string TextOf(const Json* content);

}  // namespace codec
