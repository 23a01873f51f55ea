// SPDX-License-Identifier: Apache-2.0
#include "codec/data/secret_mask.h"

#include <string.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "base/ascii.h"
#include "codec/text/base64.h"
#include "codec/text/hex.h"
#include "codec/text/neutral.h"

namespace codec {
namespace {

// The least size of one line of a value that has several: "}" and "type: x" are not secrets.
constexpr size_t kLineBytesMin = 16;

constexpr size_t kEscapeBytesMax = 36;  // Six times "\\uXXXX", for a character of JSON in JSON.

// In the place of a character.
constexpr int kCut = -1;       // The text ended before it did.
constexpr int kNoEscape = -2;  // No escape of this kind, or one of a character beyond ASCII.

// Reads the character at `at`, and moves that behind it.
using Next = int (*)(std::string_view text, size_t* at);

int NextPlain(std::string_view text, size_t* at) {
  return *at < text.size() ? static_cast<uint8_t>(text[(*at)++]) : kCut;
}

// `count` hexadecimal digits, each as `next` reads it.
int NextHex(Next next, int count, std::string_view text, size_t* at) {
  int code = 0;
  for (int i = 0; i < count; ++i) {
    const int c = next(text, at);
    if (c == kCut) return kCut;
    const int digit = c < 0 ? -1 : ascii::HexValue(static_cast<char>(c));
    if (digit < 0) return kNoEscape;
    code = code * 16 + digit;
  }
  return code;
}

int NextPercent(std::string_view text, size_t* at) {
  const int c = NextPlain(text, at);
  return c == '%' ? NextHex(NextPlain, 2, text, at) : c;
}

int NextJson(Next next, std::string_view text, size_t* at) {
  int c = next(text, at);
  if (c != '\\') return c;
  c = next(text, at);
  if (c == kCut || c == '"' || c == '\\' || c == '/') return c;
  if (c == 'u') {
    const int code = NextHex(next, 4, text, at);
    return code < 0x80 ? code : kNoEscape;
  }
  constexpr std::string_view kLetters = "bfnrt";
  const size_t letter = c < 0 ? std::string_view::npos : kLetters.find(static_cast<char>(c));
  return letter == std::string_view::npos ? kNoEscape : "\b\f\n\r\t"[letter];
}

int NextJsonOnce(std::string_view text, size_t* at) { return NextJson(NextPlain, text, at); }
int NextJsonTwice(std::string_view text, size_t* at) { return NextJson(NextJsonOnce, text, at); }

// The forms in which a text may have a needle.
constexpr Next kReaders[] = {NextPlain, NextPercent, NextJsonOnce, NextJsonTwice};

// Every form of one value in base64.
class Base64Forms {
 public:
  // Three bytes make four letters, so what stands before the value decides which of three forms it
  // has; the letters that it shares with its neighbours are left out.
  explicit Base64Forms(std::string_view value) {
    for (size_t before = 0; before < 3; ++before) {
      SecretString padded = std::string(before, '\0');
      padded.append(value);
      SecretString standard = EncodeBase64(padded);
      const size_t first = before == 0 ? 0 : before + 1;
      const size_t last = padded.size() * 8 / 6;
      std::string_view letters = standard;
      Add(letters.substr(first));  // The form where nothing follows.
      SecretString own = standard.substr(first, last - first);
      Add(own);
      std::replace(own.begin(), own.end(), '+', '-');
      std::replace(own.begin(), own.end(), '/', '_');
      Add(own);
    }
  }

  const std::deque<SecretString>& all() const { return forms_; }

 private:
  void Add(std::string_view form) {
    if (form.size() < SecretMask::kValueBytesMin) return;
    if (std::find(forms_.begin(), forms_.end(), form) == forms_.end())
      forms_.emplace_back(std::string(form));
  }

  std::deque<SecretString> forms_;
};

// Returns the characters that count as `c`.
std::string Spellings(char c, bool any_case) {
  const char lower = ascii::ToLower(c);
  const char upper = ascii::ToUpper(c);
  return any_case && lower != upper ? std::string{lower, upper} : std::string{c};
}

// Returns two bytes in this machine's order: they are only compared with others made here.
uint16_t Pair(std::string_view text, size_t at) {
  uint16_t pair;
  ::memcpy(&pair, text.data() + at, sizeof pair);
  return pair;
}

}  // namespace

bool SecretMask::Add(std::string_view value) {
  value = ascii::Trimmed(value);
  if (value.size() < kValueBytesMin) return false;
  const bool known = std::any_of(needles_.begin(), needles_.end(), [&](const Needle& needle) {
    return needle.form.reveal() == value;
  });
  if (known) return true;
  AddForms(value);
  // A key of several lines is shown line by line in a log. Not "-----BEGIN PRIVATE KEY-----".
  for (std::string_view rest = value; value.find('\n') != std::string_view::npos;) {
    const size_t end = rest.find('\n');
    const std::string_view line = ascii::Trimmed(rest.substr(0, end));
    if (line.size() >= kLineBytesMin && !line.starts_with("-----")) AddForms(line);
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  Index();
  return true;
}

void SecretMask::AddForms(std::string_view value) {
  needles_.emplace_back(value, true);  // Names of hosts have no upper case.
  const SecretString hex = EncodeHex(value);
  needles_.emplace_back(hex, true);
  const Base64Forms base64(value);
  for (const SecretString& form : base64.all()) needles_.emplace_back(form, false);
}

void SecretMask::Index() {
  std::stable_sort(needles_.begin(), needles_.end(), [](const Needle& a, const Needle& b) {
    return a.form.reveal().size() > b.form.reveal().size();
  });
  begins_.clear();
  Begins& begins = begins_.emplace_back();
  auto set = [&begins](char first, std::string_view seconds) {
    for (char second : seconds) {
      const char begin[] = {first, second};
      begins.pairs[Pair(std::string_view(begin, 2), 0)] = true;
    }
  };
  for (uint32_t number = 0; number < needles_.size(); ++number) {
    const std::string_view form = needles_[number].form.reveal();
    const bool any_case = needles_[number].any_case;
    for (char first : Spellings(form[0], any_case)) {
      begins.by_first[static_cast<uint8_t>(first)].push_back(number);
      set(first, Spellings(form[1], any_case));
      set(first, form[1] == ' ' ? "%\\+" : "%\\");
    }
  }
  set('%', "0123456789abcdefABCDEF");
  set('\\', "\\u");
  // Most escapes are of quotes and ends of lines, with which hardly a needle begins.
  for (const char* escape : {"\\\"", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t"}) {
    size_t at = 0;
    if (!begins.by_first[static_cast<size_t>(NextJsonOnce(escape, &at))].empty()) {
      set(escape[0], std::string_view(escape + 1));
    }
  }
  longest_ = kEscapeBytesMax * needles_.front().form.reveal().size();
}

SecretMask::Walk SecretMask::WalkAt(std::string_view text, size_t at) const {
  Walk walk;
  for (Next next : kReaders) {
    size_t second = at;
    const int first = next(text, &second);
    walk.cut |= first == kCut;
    if (first < 0) continue;
    for (uint32_t number : begins_.front().by_first[static_cast<size_t>(first)]) {
      const Needle& needle = needles_[number];
      size_t end = second;
      bool same = true;
      for (char wanted : needle.form.reveal().substr(1)) {
        const int c = next(text, &end);
        const bool blank = next == NextPercent && c == '+' && wanted == ' ';
        same = c == static_cast<uint8_t>(wanted) || blank ||
               (needle.any_case && c >= 0 &&
                ascii::ToLower(static_cast<char>(c)) == ascii::ToLower(wanted));
        walk.cut |= c == kCut;
        if (!same) break;
      }
      if (same) walk.size = std::max(walk.size, end - at);
    }
  }
  return walk;
}

// Every byte of every record comes through this loop: it is to be a few instructions.
size_t SecretMask::NextBegin(std::string_view text, size_t at) const {
  if (at >= text.size() || begins_.empty()) return text.size();
  const std::array<bool, 65536>& pairs = begins_.front().pairs;
  for (const size_t last = text.size() - 1; at < last; ++at) {
    if (pairs[Pair(text, at)]) return at;
  }
  const char last = text[at];
  const bool begins =
      last == '%' || last == '\\' || !begins_.front().by_first[static_cast<uint8_t>(last)].empty();
  return begins ? at : text.size();
}

size_t SecretMask::CutAt(std::string_view text) const {
  size_t at = longest_ <= text.size() ? text.size() - longest_ + 1 : 0;
  for (at = NextBegin(text, at); at < text.size(); at = NextBegin(text, at + 1)) {
    if (WalkAt(text, at).cut) return at;
  }
  return text.size();
}

bool HasMark(std::string_view text) {
  return text.find(SecretMask::kMark) != std::string_view::npos ||
         text.find(kRedactedMark) != std::string_view::npos;
}

bool SecretMask::Finds(std::string_view text) const {
  if (empty()) return false;
  for (size_t at = NextBegin(text, 0); at < text.size(); at = NextBegin(text, at + 1)) {
    if (WalkAt(text, at).size > 0) return true;
  }
  return false;
}

size_t SecretMask::MaskUntil(std::string_view text, size_t until, std::string* out) const {
  size_t done = 0;
  size_t at = 0;
  while ((at = NextBegin(text, at)) < until) {
    const size_t found = WalkAt(text, at).size;
    if (found == 0) {
      ++at;
      continue;
    }
    out->append(text.substr(done, at - done)).append(kMark);
    at += found;
    done = at;
  }
  const size_t end = std::max(done, until);
  out->append(text.substr(done, end - done));
  return end;
}

std::string SecretMask::Mask(std::string_view text) const {
  std::string out;
  if (empty()) return out.assign(text);
  MaskUntil(text, text.size(), &out);
  return out;
}

std::string MaskedStream::Feed(std::string_view piece) {
  if (mask_.empty() && pending_.empty()) return std::string(piece);
  pending_.append(piece);
  std::string out;
  const size_t end = mask_.MaskUntil(pending_, mask_.CutAt(pending_), &out);
  pending_ = pending_.substr(end);
  return out;
}

std::string MaskedStream::Finish() {
  std::string out = mask_.Mask(pending_);
  Wipe(pending_);
  return out;
}

}  // namespace codec
