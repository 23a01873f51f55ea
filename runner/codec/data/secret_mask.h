// SPDX-License-Identifier: Apache-2.0
// Known secrets, found in what programs and servers wrote, in every form that they usually take on
// the way: as they are, line by line, in base64 (also behind "user:" or "Bearer "), hexadecimal (in
// upper, lower or mixed case, as the value itself), and each of these percent-encoded, or escaped
// for JSON once or twice, in whole or in part. A secret can be hidden deliberately in another form:
// this is for accidents and echoes, not a boundary.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret.h"

namespace codec {

class SecretMask {
 public:
  // Shorter values are in ordinary text by chance, and to mask them would destroy it.
  static constexpr size_t kValueBytesMin = 8;
  // The mark that stands in place of a secret.
  static constexpr std::string_view kMark = "[CREDENTIAL]";

  // Returns false if the value is too short to be masked.
  bool Add(std::string_view value);

  bool empty() const { return needles_.empty(); }
  // Returns whether a secret is in `text`, in any of its forms.
  bool Finds(std::string_view text) const;
  // Returns `text` with kMark in place of every secret.
  std::string Mask(std::string_view text) const;

 private:
  friend class MaskedStream;
  struct Needle {
    Needle(std::string_view bytes, bool any) : form(bytes), any_case(any) {}
    // A copy of a mask has copies of the secrets, which are wiped like these.
    Needle(const Needle& other) : Needle(other.form.reveal(), other.any_case) {}
    Needle(Needle&&) noexcept = default;
    Needle& operator=(Needle&&) noexcept = default;

    Secret form;
    bool any_case = false;  // Upper and lower case are the same.
  };
  // The needle that begins at a place in a text.
  struct Walk {
    size_t size = 0;   // The longest needle, with its escapes; 0 if none.
    bool cut = false;  // The text ended before a needle did.
  };
  Walk WalkAt(std::string_view text, size_t at) const;
  void AddForms(std::string_view value);
  void Index();
  // Returns where the first form begins that the end of `text` may have cut off; the size of `text`
  // when none does.
  size_t CutAt(std::string_view text) const;
  // Returns the first place from `at` on where a form may begin, or the end of `text`.
  size_t NextBegin(std::string_view text, size_t at) const;
  // Appends what begins before `until`, masked; gives where that ends.
  size_t MaskUntil(std::string_view text, size_t until, std::string* out) const;

  // The beginnings of the needles.
  struct Begins {
    std::array<std::vector<uint32_t>, 256> by_first;  // Their numbers.
    // True for the first two bytes of a needle: this alone rules out most places. An array of bits
    // would take twice the time.
    std::array<bool, 65536> pairs{};
  };

  std::vector<Needle> needles_;  // The longest first.
  std::vector<Begins> begins_;   // One, on the heap; none without needles.
  size_t longest_ = 0;           // With every byte escaped twice.
};

// Returns whether `text`, of a record, has the mark of a SecretMask or of RedactTokens: what stood
// there cannot be searched any more.
bool HasMark(std::string_view text);

// Masks what comes in pieces of any size: what may be the beginning of a secret waits for the rest.
// The mask may grow meanwhile; it must outlive this.
class MaskedStream {
 public:
  explicit MaskedStream(const SecretMask& mask) : mask_(mask) {}

  // Returns what can be shown of all that came.
  std::string Feed(std::string_view piece);
  // Returns the rest, when no more comes.
  std::string Finish();

 private:
  const SecretMask& mask_;
  SecretString pending_;
};

}  // namespace codec
