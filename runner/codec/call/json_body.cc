// SPDX-License-Identifier: Apache-2.0
#include "codec/call/json_body.h"

#include <algorithm>
#include <string>

#include "codec/text/fold.h"

namespace codec {
namespace {

std::string_view TrimBlanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

Status CheckContentType(std::string_view value) {
  size_t end = std::min(value.find(';'), value.size());
  if (FoldToAscii(TrimBlanks(value.substr(0, end))).starts_with("multipart/")) {
    return Error{Code::kInvalid, "a multipart body cannot be judged"};
  }
  while (end < value.size()) {
    value.remove_prefix(end + 1);
    end = std::min(value.find(';'), value.size());
    std::string parameter = FoldToAscii(TrimBlanks(value.substr(0, end)));
    if (!parameter.starts_with("charset")) continue;
    std::erase(parameter, '"');
    if (parameter != "charset=utf-8" && parameter != "charset=utf8" &&
        parameter != "charset=us-ascii") {
      return Error{Code::kInvalid, "a charset other than utf-8 cannot be judged"};
    }
  }
  return Ok();
}

}  // namespace

Status CheckJsonBodyFields(const HttpFields& fields) {
  if (!CodingsOf(fields).empty()) return Error{Code::kInvalid, "an encoded body cannot be judged"};
  int content_types = 0;
  for (const HttpField& field : fields) {
    if (!MayBeReadAs(field.name, "content-type")) continue;
    if (++content_types > 1) return Error{Code::kInvalid, "Content-Type twice"};
    TRY(CheckContentType(field.value));
  }
  return Ok();
}

Status CheckMemberNames(const Json& json, std::span<const std::string_view> names) {
  ENSURE(json.object() != nullptr);
  for (const Json::Member& member : *json.object()) {
    const std::string folded = FoldToAscii(member.first);
    for (std::string_view name : names) {
      if (member.first != name && folded == FoldToAscii(name)) {
        return Error{Code::kInvalid,
                     "a member name equals \"" + std::string(name) + "\" except for case"};
      }
    }
  }
  return Ok();
}

}  // namespace codec
