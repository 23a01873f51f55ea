// SPDX-License-Identifier: Apache-2.0
// Bodies that may name a method: whether they pass does not depend on how they came in pieces, what
// passes is what was sent, and what names a method in the plainest way does not.
// The first byte says in pieces of how many bytes, and which kind of body.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>

#include "codec/text/percent.h"
#include "gateway/inspect/named_method.h"

namespace {

bool Passes(const codec::HttpFields& fields, std::string_view body, size_t piece_bytes) {
  auto filters = gateway::NewMethodFilters(fields, {});
  ENSURE(filters.size() == 1);
  std::string out;
  for (std::string_view rest = body; !rest.empty();) {
    std::string_view piece = rest.substr(0, piece_bytes);
    rest.remove_prefix(piece.size());
    if (filters[0]->Filter(piece, rest.empty(), out).has_value()) {
      ENSURE(out.size() < body.size() && body.starts_with(out));
      return false;
    }
  }
  ENSURE(out == body);
  return true;
}

bool PairNamesMethod(std::string_view body) {
  constexpr size_t kKeyBytesMax = 64;
  while (!body.empty()) {
    std::string_view pair = body.substr(0, body.find_first_of("&;"));
    body.remove_prefix(std::min(pair.size() + 1, body.size()));
    std::string_view key = pair.substr(0, pair.find('='));
    if (key.size() <= kKeyBytesMax && gateway::NamesMethod(codec::FormDecode(key))) return true;
  }
  return false;
}

bool PartNamesMethod(std::string_view body) {
  constexpr std::string_view kNames[] = {"_method\"", "X-HTTP-Method-Override\"", "=?"};
  return std::any_of(std::begin(kNames), std::end(kNames), [&](std::string_view name) {
    return body.find("; name=\"" + std::string(name)) != std::string_view::npos;
  });
}

bool MemberNamesMethod(const std::string& body) {
  nlohmann::json parsed = nlohmann::json::parse(body, nullptr, false, /*ignore_comments=*/true);
  return parsed.is_object() && parsed.contains("_method");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr int kKinds = 4;
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const int kind = data[0] % kKinds;
  codec::HttpFields fields = {{"Content-Type", "application/x-www-form-urlencoded"}};
  if (kind == 1) fields[0].value = "multipart/form-data; boundary=b0";
  if (kind >= 2) fields[0].value = "application/json";
  if (kind == 3) fields.push_back({"Content-Encoding", "gzip"});
  const bool passes = Passes(fields, body, body.size());
  ENSURE(passes == Passes(fields, body, 1 + data[0] / kKinds));
  if (kind == 0) ENSURE(!passes || !PairNamesMethod(body));
  if (kind == 1) ENSURE(!passes || !PartNamesMethod(body));
  if (kind == 2) ENSURE(!passes || !MemberNamesMethod(body));
  return 0;
}
