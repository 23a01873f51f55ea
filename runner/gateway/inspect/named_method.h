// SPDX-License-Identifier: Apache-2.0
// Finds bodies that name another method than the one of their request: Rails, Laravel, Symfony,
// Express and others read a POST with `_method=delete` in its form as DELETE, some of them in JSON
// as well. Which method it names does not matter: unless every method is allowed, a body with such
// a key is refused. Pure.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "codec/wire/http_head.h"
#include "gateway/http/body_filter.h"

namespace gateway {

// Returns whether some server would take the value of this key, decoded, of a query or a form for
// the method; ASP.NET takes those of keys named as its header fields. Rack leaves brackets around a
// key out; PHP leaves out what follows a NUL and blanks in front, and makes an underscore of a dot
// or a bracket.
bool NamesMethod(std::string_view key);

// Returns the filters for the body of a POST where a method that it might name would be refused.
// Each ends with `refusal` before the last byte of a body has gone in which a key names a method,
// or which cannot be read here. There are none for media types in which no server looks for a
// method; a POST without a type is a form to Rails.
std::vector<std::unique_ptr<StreamFilter>> NewMethodFilters(const codec::HttpFields& fields,
                                                            const OutgoingRefusal& refusal);

}  // namespace gateway
