// SPDX-License-Identifier: Apache-2.0
#include "eval/evidence/remote_record.h"

#include <array>
#include <string_view>
#include <utility>

#include "codec/data/json.h"

namespace eval {
namespace {

constexpr size_t kRemoteBytesMax = size_t{64} << 20;

constexpr auto kEndings =
    std::to_array<std::pair<Ending, std::string_view>>({{Ending::kEnded, "ended"},
                                                        {Ending::kFailed, "failed"},
                                                        {Ending::kLost, "lost"},
                                                        {Ending::kNeverRan, "never-ran"}});

}  // namespace

std::string RenderRemoteRecord(const RemoteRecord& record) {
  std::string_view ending;
  for (const auto& [known, name] : kEndings) {
    if (known == record.ending) ending = name;
  }
  codec::Json json;
  json.Set("version", 1)
      .Set("protocol", record.protocol)
      .Set("url", record.url)
      .Set("ending", ending)
      .Set("reason", record.reason)
      .Set("answer", record.answer)
      .Set("whole", record.whole)
      .Set("tools_reached", record.tools_reached)
      .Set("ms", record.ms);
  return codec::RenderJson(json);
}

Result<RemoteRecord> ParseRemoteRecord(const std::string& text) {
  const codec::Json json = TRY(codec::ParseJson(text, {.bytes_max = kRemoteBytesMax}));
  RemoteRecord record;
  const codec::Json* answer = json.Find("answer");
  if (json.IntegerAt("version") != 1 || answer == nullptr || answer->string() == nullptr) {
    return Invalid("not the record of an agent that ran elsewhere");
  }
  record.protocol = json.StringAt("protocol");
  record.url = json.StringAt("url");
  record.reason = json.StringAt("reason");
  record.answer = *answer->string();
  record.whole = json.BooleanAt("whole");
  record.tools_reached = json.BooleanAt("tools_reached");
  record.ms = json.IntegerAt("ms");
  const std::string ending = json.StringAt("ending");
  for (const auto& [known, name] : kEndings) {
    if (name != ending) continue;
    record.ending = known;
    return record;
  }
  return Invalid("unknown ending '" + ending + "'");
}

}  // namespace eval
