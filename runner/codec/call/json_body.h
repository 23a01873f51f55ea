// SPDX-License-Identifier: Apache-2.0
// Finds JSON bodies that two parsers could read differently. The server must act on what was
// judged, so such bodies are refused.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "codec/data/json.h"
#include "codec/wire/http_head.h"

namespace codec {

// That a request's body is read as UTF-8 JSON: one Content-Type at most, not multipart, of no
// charset but UTF-8 or ASCII (a body may say something else in UTF-7), and not encoded. Fails with
// kInvalid and what is wrong.
Status CheckJsonBodyFields(const HttpFields& fields);

// Fails with kInvalid when `json`, an object, has a member whose name differs from one of `names`
// only in case: Go and .NET take it for that one, and the last of the two counts. (Exact duplicates
// are ParseJson's to refuse.)
Status CheckMemberNames(const Json& json, std::span<const std::string_view> names);

}  // namespace codec
