// SPDX-License-Identifier: Apache-2.0
// Forms that may name a method: the verdict does not depend on how the body came in pieces, what
// passes is what was sent, and what names a method in the plainest way is refused. The first byte
// says in pieces of how many bytes, and which kind of form.
#include <cstddef>
#include <cstdint>

#include "codec/percent.h"
#include "gateway/form_method.h"

namespace {

using gateway::OutgoingRefusal;

bool Passes(const std::string& type, std::string_view body, size_t piece_bytes) {
  auto filter = gateway::NewFormMethodFilter({{"Content-Type", type}}, OutgoingRefusal{});
  std::string out;
  for (std::string_view rest = body; !rest.empty();) {
    std::string_view piece = rest.substr(0, piece_bytes);
    rest.remove_prefix(piece.size());
    if (filter->Filter(piece, rest.empty(), out).has_value()) {
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool parts = (data[0] & 1) != 0;
  const std::string type =
      parts ? "multipart/form-data; boundary=b0" : "application/x-www-form-urlencoded";
  const bool passes = Passes(type, body, body.size());
  ENSURE(passes == Passes(type, body, 1 + data[0] / 2));
  if (!parts) {
    ENSURE(!passes || !PairNamesMethod(body));
  } else if (body.find("--b0") == std::string::npos) {
    ENSURE(passes);
  }
  return 0;
}
