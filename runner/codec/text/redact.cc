// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <string>
#include <string_view>

#include "codec/text/neutral.h"
#include "codec/text/token_form.h"

namespace codec {

std::string RedactTokens(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t kept_from = 0;       // The text from here to `at` has no token; it is copied at the next.
  size_t web_token_from = 0;  // Before here, what was looked at already can hold no web token.
  for (size_t at = 0; at < text.size();) {
    FoundToken token = FindTokenAt(text, at);
    std::string_view tag = token.form != nullptr ? token.form->tag : "jwt";
    if (text[at] == 'e' && at >= web_token_from) {
      WebToken web_token = FindWebTokenAt(text, at);
      token.length = web_token.length;
      web_token_from = at + web_token.first_part;
    }
    if (token.length == 0) {
      ++at;
      continue;
    }
    out.append(text.substr(kept_from, at - kept_from));
    out.append(kRedactedMark).append(tag).append("]");
    at += token.length;
    kept_from = at;
  }
  return out.append(text.substr(kept_from));
}

}  // namespace codec
