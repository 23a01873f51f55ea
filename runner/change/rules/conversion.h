// SPDX-License-Identifier: Apache-2.0
// Converts a file of the working tree into a blob and back as git does (gitattributes(5),
// "Checking-out and checking-in"): line endings, `$Id$`, encodings, and the pointers of git-lfs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace change {

// The values of core.autocrlf: false, input, true.
enum class AutoCrlf { kNo, kInput, kYes };

// The attributes of one path. A string is empty if its attribute is not specified; it is "true" and
// "false" for `text` and `-text`, otherwise the value.
struct AttributeValues {
  std::string text;
  std::string crlf;  // The older name of `text`.
  std::string eol;
  std::string ident;
  std::string encoding;  // working-tree-encoding
  std::string filter;
};

struct Conversion {
  enum class Text { kNo, kGuessed, kYes };
  Text text = Text::kNo;  // kGuessed: unless the bytes look binary, or are CRLF in the index.
  bool crlf = false;      // In the working tree.
  bool ident = false;
  std::string encoding;  // The encoding as in the attribute, upper case; empty for UTF-8.
  std::string driver;    // The NAME in `filter=NAME`.

  bool none() const { return text == Text::kNo && !ident && encoding.empty() && driver.empty(); }
};

// Decides the conversion. `native_crlf` is true if core.eol is crlf.
Conversion DecideConversion(const AttributeValues& values, AutoCrlf auto_crlf, bool native_crlf);

// Returns whether a blob is text with CRLF, which git would convert: then kGuessed leaves it so.
bool IsCrlfText(std::string_view blob);

inline constexpr std::string_view kLfs = "lfs";
// Returns whether these are the bytes of a pointer as git-lfs writes it.
bool IsLfsPointer(std::string_view bytes);

// Returns the blob of a file with `bytes`. `crlf_in_index` is IsCrlfText() of the path's blob in
// the index. A driver other than git-lfs is not run: its bytes pass. Fails with kInvalid if `bytes`
// are not in the encoding, with kUnsupported for an encoding other than UTF-8 and UTF-16 in its
// forms.
Result<std::string> ToBlob(const Conversion& conversion, std::string bytes, bool crlf_in_index);

// Returns the file of a blob; a pointer of git-lfs stays one. Fails as ToBlob() does. `blob_id` is
// its name, for `$Id$`.
Result<std::string> ToFile(const Conversion& conversion, std::string blob,
                           const std::string& blob_id);

}  // namespace change
