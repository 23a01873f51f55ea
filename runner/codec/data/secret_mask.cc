// SPDX-License-Identifier: Apache-2.0
#include "codec/data/secret_mask.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/ascii.h"
#include "codec/data/json.h"
#include "codec/text/base64.h"
#include "codec/text/hex.h"

namespace codec {
namespace {

// Of one line of a value that has several: "}" and "type: x" are no secret.
constexpr size_t kLineBytesMin = 16;

// Every form of one value; wiped at the end.
class Forms {
 public:
  Forms() = default;
  Forms(const Forms&) = delete;
  Forms& operator=(const Forms&) = delete;
  ~Forms() {
    for (std::string& form : forms_) Wipe(form);
  }

  void AddAll(std::string_view value) {
    AddEscaped(value);
    AddBase64(value);
    std::string hex = EncodeHex(value);
    Add(hex);
    AddChanged(hex, [](char c) { return ascii::ToUpper(c); });
    Wipe(hex);
  }

  const std::deque<std::string>& all() const { return forms_; }

 private:
  void Add(std::string_view form) {
    if (form.size() < SecretMask::kValueBytesMin) return;
    if (std::find(forms_.begin(), forms_.end(), form) == forms_.end()) forms_.emplace_back(form);
  }
  void AddOwned(std::string form) {
    Add(form);
    Wipe(form);
  }
  void AddChanged(std::string form, char (*change)(char)) {
    std::transform(form.begin(), form.end(), form.begin(), change);
    AddOwned(std::move(form));
  }

  static std::string Escape(std::string_view text) {
    std::string quoted = RenderJsonLine(Json(text));
    std::string inner = quoted.substr(1, quoted.size() - 2);
    Wipe(quoted);
    return inner;
  }
  static std::string Replaced(std::string_view text, char what, std::string_view with) {
    std::string out;
    for (char c : text) c == what ? out.append(with) : out.append(1, c);
    return out;
  }

  // A tool's output inside an event, and JSON of a tool inside that.
  void AddEscaped(std::string_view value) {
    std::string once = Escape(value);
    AddOwned(Escape(once));
    AddOwned(Replaced(once, '/', "\\/"));  // PHP.
    std::string go = Replaced(once, '&', "\\u0026");
    std::string less = Replaced(go, '<', "\\u003c");
    AddOwned(Replaced(less, '>', "\\u003e"));
    AddOwned(std::move(less));
    AddOwned(std::move(go));
    AddOwned(std::move(once));
  }

  // Three bytes make four letters, so what stands before the value decides which of three forms it
  // has; the letters that it shares with its neighbours are left out.
  void AddBase64(std::string_view value) {
    for (size_t before = 0; before < 3; ++before) {
      std::string padded(before, '\0');
      padded.append(value);
      std::string standard = EncodeBase64(padded);
      const size_t first = before == 0 ? 0 : before + 1;
      const size_t last = padded.size() * 8 / 6;
      AddOwned(standard.substr(first));  // Where nothing follows.
      std::string own = standard.substr(first, last - first);
      AddChanged(own, [](char c) { return c == '+' ? '-' : c == '/' ? '_' : c; });
      AddOwned(std::move(own));
      Wipe(standard);
      Wipe(padded);
    }
  }

  std::deque<std::string> forms_;  // Never moved: a moved string leaves its bytes behind.
};

uint16_t Pair(std::string_view text, size_t at) {
  return static_cast<uint16_t>(static_cast<uint8_t>(text[at]) << 8 |
                               static_cast<uint8_t>(text[at + 1]));
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
  // Names of hosts have no upper case.
  std::string lower(value);
  std::transform(lower.begin(), lower.end(), lower.begin(), ascii::ToLower);
  needles_.push_back({Secret(value), true});
  if (lower != value) needles_.push_back({Secret(lower), true});
  Wipe(lower);
  Forms forms;
  forms.AddAll(value);
  for (const std::string& form : forms.all()) needles_.push_back({Secret(form), false});
}

void SecretMask::Index() {
  std::stable_sort(needles_.begin(), needles_.end(), [](const Needle& a, const Needle& b) {
    return a.form.reveal().size() > b.form.reveal().size();
  });
  for (std::vector<uint32_t>& bucket : by_first_) bucket.clear();
  for (uint32_t number = 0; number < needles_.size(); ++number) {
    const std::string_view form = needles_[number].form.reveal();
    by_first_[static_cast<uint8_t>(form[0])].push_back(number);
    pairs_.set(Pair(form, 0));
    if (!needles_[number].escapable) continue;
    by_first_['%'].push_back(number);
    const char escaped[] = {form[0], '%'};
    pairs_.set(Pair(std::string_view(escaped, 2), 0));
    for (char digit : std::string_view("0123456789abcdefABCDEF")) {
      const char begin[] = {'%', digit};
      pairs_.set(Pair(std::string_view(begin, 2), 0));
    }
  }
  longest_ = 3 * needles_.front().form.reveal().size();
}

SecretMask::Walk SecretMask::Along(const Needle& needle, std::string_view text) {
  const std::string_view form = needle.form.reveal();
  if (!needle.escapable) {
    const bool same = text.substr(0, form.size()) == form.substr(0, text.size());
    if (!same) return {};
    return text.size() < form.size() ? Walk{0, true} : Walk{form.size(), false};
  }
  size_t at = 0;
  for (char wanted : form) {
    if (at == text.size()) return {0, true};
    if (text[at] == wanted || (wanted == ' ' && text[at] == '+')) {
      ++at;
      continue;
    }
    if (text[at] != '%') return {};
    // Of an escape that the end of the text cut off, what is there has to fit.
    const char escape[] = {"0123456789ABCDEF"[static_cast<uint8_t>(wanted) >> 4],
                           "0123456789ABCDEF"[static_cast<uint8_t>(wanted) & 15]};
    for (size_t digit = 0; digit < 2; ++digit) {
      if (at + 1 + digit == text.size()) return {0, true};
      if (ascii::ToUpper(text[at + 1 + digit]) != escape[digit]) return {};
    }
    at += 3;
  }
  return {at, false};
}

bool SecretMask::MayBegin(std::string_view text, size_t at) const {
  if (at + 1 == text.size()) return !by_first_[static_cast<uint8_t>(text[at])].empty();
  return pairs_.test(Pair(text, at));
}

size_t SecretMask::MatchAt(std::string_view text, size_t at) const {
  if (!MayBegin(text, at)) return 0;
  for (uint32_t number : by_first_[static_cast<uint8_t>(text[at])]) {
    const Walk walk = Along(needles_[number], text.substr(at));
    if (walk.size > 0) return walk.size;
  }
  return 0;
}

size_t SecretMask::CutAt(std::string_view text) const {
  size_t at = longest_ <= text.size() ? text.size() - longest_ + 1 : 0;
  for (; at < text.size(); ++at) {
    if (!MayBegin(text, at)) continue;
    for (uint32_t number : by_first_[static_cast<uint8_t>(text[at])]) {
      if (Along(needles_[number], text.substr(at)).cut) return at;
    }
  }
  return text.size();
}

bool SecretMask::Finds(std::string_view text) const {
  if (empty()) return false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (MatchAt(text, at) > 0) return true;
  }
  return false;
}

size_t SecretMask::MaskUntil(std::string_view text, size_t until, std::string* out) const {
  size_t done = 0;
  size_t at = 0;
  while (at < until) {
    const size_t found = MatchAt(text, at);
    if (found == 0) {
      ++at;
      continue;
    }
    out->append(text.substr(done, at - done)).append(kMark);
    at += found;
    done = at;
  }
  out->append(text.substr(done, at - done));
  return at;
}

std::string SecretMask::Mask(std::string_view text) const {
  std::string out;
  if (empty()) return out.assign(text);
  MaskUntil(text, text.size(), &out);
  return out;
}

MaskedStream::~MaskedStream() { Wipe(pending_); }

std::string MaskedStream::Feed(std::string_view piece) {
  if (mask_.empty() && pending_.empty()) return std::string(piece);
  pending_.append(piece);
  std::string out;
  const size_t end = mask_.MaskUntil(pending_, mask_.CutAt(pending_), &out);
  std::string rest = pending_.substr(end);
  Wipe(pending_);
  pending_ = std::move(rest);
  return out;
}

std::string MaskedStream::Finish() {
  std::string out = mask_.Mask(pending_);
  Wipe(pending_);
  return out;
}

}  // namespace codec
