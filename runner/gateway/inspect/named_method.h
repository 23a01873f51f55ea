// SPDX-License-Identifier: Apache-2.0
// A body may name another method than the one it is sent by: Rails, Laravel, Symfony, Express and
// others read a POST with `_method=delete` in its form as DELETE, some of them in JSON as well.
// Pure.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/wire/http_head.h"
#include "gateway/http/body_filter.h"

namespace gateway {

// Whether some server would take the value of this key, decoded, of a query or a body for the
// method. Rack leaves brackets around a key out; PHP leaves out what follows a NUL and blanks in
// front, and makes an underscore of a dot or a bracket.
bool NamesMethod(std::string_view key);

// The method that such a value, decoded, is to every server: capitals. Empty where one might take
// it for another than the next does.
std::string MethodOf(std::string_view value);

// What to answer to a body that names this method, in capitals; nothing: it may. Empty: it names
// one that cannot be told, or cannot be read.
using MethodJudge = std::function<std::optional<OutgoingRefusal>(std::string_view method)>;

// What the body of a POST has to pass so that it names no method that `judge` refuses, each as it
// streams past and before its last byte has gone. None for media types in which nobody looks for
// one; a POST without a type is a form to Rails.
std::vector<std::unique_ptr<StreamFilter>> NewMethodFilters(const codec::HttpFields& fields,
                                                            const MethodJudge& judge);

}  // namespace gateway
