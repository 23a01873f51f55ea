// SPDX-License-Identifier: Apache-2.0
// What goes to the client: lines that wait until it reads, and bytes as text or Base64.
#pragma once

#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/result.h"
#include "codec/data/json.h"

namespace serve {

// How much of a command's output, or a file, an answer has.
inline constexpr size_t kCollectedBytesMax = size_t{4} << 20;

// The room for what an answer collects: kCollectedBytesMax, and no more than 12 MiB once JSON has
// escaped it, so that the answer's line is within kLineBytesMax.
class CollectRoom {
 public:
  // Returns the beginning of `bytes` for which there is room. Once something was cut, none is left.
  std::string_view Take(std::string_view bytes);

 private:
  size_t bytes_ = kCollectedBytesMax;
  size_t rendered_bytes_ = 3 * kCollectedBytesMax;
};

// Lines for a borrowed descriptor, which is made non-blocking if it is a pipe. What is not taken is
// kept; while full() nothing more may be made but answers. SIGPIPE is ignored.
class Output {
 public:
  explicit Output(int fd);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  int fd() const { return fd_; }
  bool waits() const { return from_ < lines_.size(); }
  bool full() const { return lines_.size() - from_ > kWaitingBytesMax; }
  // True once nothing can be written any more.
  bool closed() const { return closed_; }

  void Write(std::string_view line);
  // Writes what is taken at once.
  void Flush();
  // Writes what is left, until `deadline`.
  void Finish(Deadline deadline);

 private:
  static constexpr size_t kWaitingBytesMax = size_t{1} << 20;

  // Returns how many bytes were taken at once.
  size_t WriteNow(std::string_view bytes);

  int fd_;
  bool is_socket_ = false;
  std::string lines_;
  size_t from_ = 0;
  bool closed_ = false;
};

// Renders bytes as a member of an object: `"text":"..."`, or where they are not UTF-8
// `"base64":"..."`. A character at the end of a piece that is not whole waits for the next piece.
class TextPieces {
 public:
  // Appends the member to `line`. Returns false, and appends nothing, where all of it waits.
  bool Take(std::string_view bytes, std::string* line);
  // Renders what waits, if anything does.
  bool Finish(std::string* line);

 private:
  std::string tail_;
};

// Sets `text`, or where the bytes are not UTF-8 `base64`.
void SetBytes(codec::Json* json, std::string bytes);

// Returns `text` without a character at its end that is not whole.
std::string_view WholeText(std::string_view text);

}  // namespace serve
