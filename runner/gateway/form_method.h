// SPDX-License-Identifier: Apache-2.0
// A form may name another method than the one it is sent by: Rails, Laravel, Symfony and others
// read a POST with `_method=delete` in it as DELETE. Pure.
#pragma once

#include <memory>
#include <string_view>

#include "codec/http_head.h"
#include "gateway/body_filter.h"

namespace gateway {

// Whether some server would take the value of this key, decoded, of a query or a form for the
// method. Rack leaves brackets around a key out; PHP leaves out what follows a NUL and blanks in
// front, and makes an underscore of a dot or a bracket.
bool NamesMethod(std::string_view key);

// Whether the fields of a POST say that its body is a form; one that says nothing is, to Rails.
bool IsForm(const codec::HttpFields& fields);

// Answers a form that has such a key, or that nobody can tell of, with `refusal`, as it streams
// past and before its last byte has gone.
std::unique_ptr<StreamFilter> NewFormMethodFilter(const codec::HttpFields& fields,
                                                  OutgoingRefusal refusal);

}  // namespace gateway
