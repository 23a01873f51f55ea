// SPDX-License-Identifier: Apache-2.0
#include "codec/text/ref_name.h"

#include <algorithm>

#include "codec/text/utf8.h"

namespace codec {
namespace {

constexpr size_t kRefBytesMax = 250;

// Characters that show text as something else than it is: bidirectional controls, joiners of no
// width, and the separators some readers take for line ends.
bool HasInvisible(std::string_view text) {
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    auto first = static_cast<unsigned char>(text[i]);
    auto second = static_cast<unsigned char>(text[i + 1]);
    if (first == 0xc2 && second < 0xa0) return true;  // U+0080 to U+009F.
    if (i + 2 >= text.size() || first != 0xe2) continue;
    auto third = static_cast<unsigned char>(text[i + 2]);
    if (second == 0x80 && ((third >= 0x8b && third <= 0x8f) || (third >= 0xa8 && third <= 0xae))) {
      return true;  // U+200B to U+200F, U+2028 to U+202E.
    }
    if (second == 0x81 && third >= 0xa0 && third <= 0xaf) return true;  // U+2060 to U+206F.
  }
  return text.find("\xef\xbb\xbf") != std::string_view::npos;  // U+FEFF.
}

bool ValidCharacter(char c) {
  auto byte = static_cast<unsigned char>(c);
  return byte > 0x20 && byte != 0x7f &&
         std::string_view("~^:?*[\\").find(c) == std::string_view::npos;
}

bool ValidComponent(std::string_view component) {
  return !component.empty() && component.front() != '.' && !component.ends_with(".lock");
}

}  // namespace

bool ValidRefName(std::string_view ref) {
  if (ref.empty() || ref.size() > kRefBytesMax || ref == "@") return false;
  if (ref.front() == '-' || ref.back() == '.') return false;
  if (!std::all_of(ref.begin(), ref.end(), ValidCharacter)) return false;
  if (FindInvalidUtf8(ref) != std::string_view::npos || HasInvisible(ref)) return false;
  for (std::string_view part : {"..", "@{"}) {
    if (ref.find(part) != std::string_view::npos) return false;
  }
  for (std::string_view rest = ref;;) {
    size_t slash = rest.find('/');
    if (!ValidComponent(rest.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    rest.remove_prefix(slash + 1);
  }
}

}  // namespace codec
