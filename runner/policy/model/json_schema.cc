// SPDX-License-Identifier: Apache-2.0
#include "policy/model/json_schema.h"

#include <charconv>

#include "codec/data/json.h"
#include "policy/model/hosted_tools.h"
#include "policy/model/schema.h"

namespace policy {
namespace {

using codec::Json;

Json Types(const std::vector<std::string>& types) {
  Json schema;
  schema.Set("type", types.size() == 1 ? Json(types[0]) : Json::FromStrings(types));
  return schema;
}

Json Reference(Section section) {
  Json schema;
  schema.Set("$ref", "#/$defs/" + std::string(SectionId(section)));
  return schema;
}

Json AnyOf(Json first, Json second) {
  Json choices;
  choices.Push(std::move(first)).Push(std::move(second));
  Json schema;
  schema.Set("anyOf", std::move(choices));
  return schema;
}

Json ListOf(Json items, bool may_be_empty) {
  Json schema = Types({"array"});
  schema.Set("items", std::move(items));
  if (!may_be_empty) schema.Set("minItems", 1);
  return schema;
}

Json MapTo(Json values, bool may_be_empty) {
  Json schema = may_be_empty ? Types({"object", "null"}) : Types({"object"});
  schema.Set("additionalProperties", std::move(values));
  if (!may_be_empty) schema.Set("minProperties", 1);
  return schema;
}

constexpr std::string_view kNotBlank = "\\S";

// A plain number or boolean is text where text is wanted.
Json Text(std::string_view pattern) {
  Json schema = Types({"string", "number", "boolean"});
  if (!pattern.empty()) schema.Set("pattern", pattern);
  return schema;
}

// A matcher's pattern is not.
Json Pattern() { return Types({"string"}).Set("pattern", kNotBlank); }

Json Number(const KeySpec& key, bool or_null) {
  Json schema;
  if (key.least == key.most) return schema.Set("const", key.least);
  schema = or_null ? Types({"integer", "null"}) : Types({"integer"});
  return schema.Set("minimum", key.least).Set("maximum", key.most);
}

// `values` in any case of letters.
std::string AnyCasePattern(std::span<const std::string_view> values) {
  std::string pattern = "^(";
  for (std::string_view value : values) {
    for (char c : value) {
      bool letter = c >= 'a' && c <= 'z';
      char other = static_cast<char>(letter ? c - 'a' + 'A' : c);
      if (letter) {
        pattern += std::string("[") + c + other + "]";
      } else {
        pattern += (c == '*' ? "\\" : "") + std::string(1, c);
      }
    }
    pattern += "|";
  }
  pattern.back() = ')';
  return pattern + "$";
}

Json Choice(const KeySpec& key) {
  std::vector<std::string> values(key.values.begin(), key.values.end());
  if (MayBeEmpty(key)) values.emplace_back();
  Json listed;
  listed.Set("enum", Json::FromStrings(values));
  if (!key.any_case) return listed;
  return AnyOf(std::move(listed), Types({"string"}).Set("pattern", AnyCasePattern(key.values)));
}

Json ShapeSchema(const KeySpec& key) {
  bool may_be_empty = MayBeEmpty(key);
  switch (key.shape) {
    case Shape::kText:
      if (key.section == Section::kMatcher) return Pattern();
      return Text(key.pattern.empty() && !may_be_empty ? kNotBlank : key.pattern);
    case Shape::kBoolean:
      return Types({"boolean"});
    case Shape::kNumber:
      return Number(key, may_be_empty);
    case Shape::kNumbers:
      return ListOf(Number(key, false), may_be_empty);
    case Shape::kChoice:
      return Choice(key);
    case Shape::kTexts:
      if (key.section == Section::kMatcher) return ListOf(Pattern(), may_be_empty);
      return ListOf(Text(key.pattern), may_be_empty);
    case Shape::kMapping:
      if (!may_be_empty) return Reference(key.inner).Set("minProperties", 1);
      return AnyOf(Reference(key.inner), Types({"null"}));
    case Shape::kMappings:
      return ListOf(Reference(key.inner), may_be_empty);
    case Shape::kMap:
      return MapTo(Reference(key.inner), may_be_empty);
    case Shape::kPattern:
      return AnyOf(Pattern(), Reference(key.inner).Set("minProperties", 1));
    case Shape::kPatterns:
      return MapTo(AnyOf(Pattern(), Reference(key.inner)), may_be_empty);
    case Shape::kHosted:
      return HostedToolsSchema();
    case Shape::kUntrusted:
      return AfterUntrustedSchema();
  }
  return Json();
}

// The default as a value, when it is one: "`false`", "65536", "`enforce`".
Json DefaultValue(const KeySpec& key) {
  std::string text(key.fallback);
  if (text.size() > 2 && text.front() == '`') text = text.substr(1, text.size() - 2);
  if (key.shape == Shape::kBoolean) return text == "true";
  int64_t number = 0;
  std::from_chars_result parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (key.shape == Shape::kNumber && parsed.ec == std::errc()) return number;
  for (std::string_view value : key.values) {
    if (value == text) return value;
  }
  return Json();
}

Json SectionSchema(Section section) {
  Json schema = Types({"object"});
  schema.Set("additionalProperties", false);
  Json properties = Json::EmptyObject();
  std::vector<std::string> required;
  for (const KeySpec& key : PolicyKeys()) {
    if (key.section != section) continue;
    Json property = ShapeSchema(key);
    property.Set("description", key.doc);
    Json fallback = DefaultValue(key);
    if (!fallback.is_null()) property.Set("default", std::move(fallback));
    properties.Set(std::string(key.name), std::move(property));
    if (key.fallback == "required") required.emplace_back(key.name);
  }
  schema.Set("properties", std::move(properties));
  if (!required.empty()) schema.Set("required", Json::FromStrings(required));
  if (section == Section::kShortForm) schema.Set("minProperties", 1);
  return schema;
}

}  // namespace

Json HostedToolsSchema() {
  Json domains = Json().Set("domains", ListOf(Types({"string"}).Set("pattern", kNotBlank), false));
  Json bounded = Types({"object"});
  bounded.Set("additionalProperties", false)
      .Set("properties", std::move(domains))
      .Set("required", Json::FromStrings({"domains"}));
  Json names = Json::EmptyArray();
  Json entries = Json::EmptyObject();
  for (const HostedKind& kind : kHostedKinds) {
    names.Push(kind.name);
    if (kind.takes_domains) entries.Set(std::string(kind.name), bounded);
  }
  Json entry = Types({"object"});
  entry.Set("additionalProperties", false)
      .Set("properties", std::move(entries))
      .Set("minProperties", 1)
      .Set("maxProperties", 1);
  Json type = Types({"string"}).Set("pattern", "^" + std::string(kTypeEntry) + ".");
  Json name = AnyOf(Json().Set("enum", std::move(names)), std::move(type));
  return AnyOf(Json().Set("const", "none"),
               ListOf(AnyOf(std::move(name), std::move(entry)), false));
}

Json AfterUntrustedSchema() {
  const Json list = ListOf(Types({"string"}).Set("pattern", kNotBlank), false);
  Json mapping = Types({"object"});
  mapping.Set("additionalProperties", false)
      .Set("properties", Json().Set("closes", list).Set("stays", list).Set("trusts", list))
      .Set("required", Json::FromStrings({"closes"}));
  return AnyOf(Json().Set("const", "none"), std::move(mapping));
}

std::string RenderPolicySchema() {
  Json has_version = Types({"object"});
  has_version.Set("required", Json::FromStrings({"version"}));
  Json definitions;
  for (Section section : PolicySections()) {
    definitions.Set(std::string(SectionId(section)), SectionSchema(section));
  }
  Json schema;
  schema.Set("$schema", "https://json-schema.org/draft/2020-12/schema")
      .Set("$id", "policy.schema.json")
      .Set("title", "What a run may do: .agentic-ci/openshell-policy.yml")
      .Set("if", std::move(has_version))
      .Set("then", Reference(Section::kDocument))
      .Set("else", Reference(Section::kShortForm))
      .Set("$defs", std::move(definitions));
  return codec::RenderJson(schema);
}

}  // namespace policy
