// SPDX-License-Identifier: Apache-2.0
#include "record/line_facts.h"

#include <algorithm>

#include "codec/data/json.h"
#include "record/integrity.h"
#include "record/limits.h"

namespace record {
namespace {

std::optional<codec::Json> ParseLine(std::string_view line) {
  if (!line.starts_with('{') || !line.ends_with('}')) return std::nullopt;
  Result<codec::Json> json = codec::ParseJson(
      line, {.bytes_max = kRecordLineBytesMax, .depth_max = 16, .values_max = 5000});
  if (!json.ok() || json.value().object() == nullptr) return std::nullopt;
  return std::move(json).value();
}

}  // namespace

std::optional<LineFacts> ReadLineFacts(std::string_view line) {
  const std::optional<codec::Json> json = ParseLine(line);
  if (!json) return std::nullopt;
  LineFacts facts;
  facts.time_ms = json->IntegerAt("time");
  facts.duration_ms = json->IntegerAt("duration");
  facts.severity = static_cast<int>(std::clamp<int64_t>(json->IntegerAt("severity_id", 1), 0, 6));
  facts.class_name = json->StringAt("class_name");
  if (const codec::Json* own = json->Find("unmapped")) facts.decision = own->StringAt("decision");
  const codec::Json* request = json->Find("http_request");
  const codec::Json* url = request != nullptr ? request->Find("url") : nullptr;
  if (url != nullptr) facts.scheme = url->StringAt("scheme");
  return facts;
}

std::optional<std::string> WithoutOwnMembers(std::string_view line) {
  const std::optional<codec::Json> json = ParseLine(line);
  if (!json) return std::nullopt;
  codec::Json shorter = codec::Json::EmptyObject();
  for (const auto& [name, value] : *json->object()) {
    // What was hashed had all members.
    if (name != "unmapped" && name != kAttestationList) shorter.Set(name, value);
  }
  return codec::RenderJsonLine(shorter);
}

}  // namespace record
