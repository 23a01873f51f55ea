// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/request_id.h"

#include <algorithm>

#include "base/ascii.h"

namespace gateway {
namespace {

constexpr std::string_view kField = "X-Request-ID";
constexpr size_t kIdBytesMax = 128;

}  // namespace

bool IsRequestId(std::string_view id) {
  auto fits = [](char c) {
    return ascii::IsAlphanumeric(c) ||
           std::string_view("-_.:+/=@").find(c) != std::string_view::npos;
  };
  return !id.empty() && id.size() <= kIdBytesMax && std::all_of(id.begin(), id.end(), fits);
}

void KeepRequestId(codec::HttpFields* fields, const std::string& fresh) {
  auto is_id = [](const codec::HttpField& field) {
    return codec::EqualIgnoringCase(field.name, kField);
  };
  size_t ids = static_cast<size_t>(std::count_if(fields->begin(), fields->end(), is_id));
  const codec::HttpField* id = codec::FindField(*fields, kField);
  if (ids == 0 || (ids == 1 && IsRequestId(id->value))) return;
  std::erase_if(*fields, is_id);
  fields->push_back({std::string(kField), fresh});
}

}  // namespace gateway
