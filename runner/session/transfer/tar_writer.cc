// SPDX-License-Identifier: Apache-2.0
#include "session/transfer/tar_writer.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace session {
namespace {

constexpr int64_t kBlock = 512;
constexpr size_t kNameBytes = 100;
constexpr int64_t kOctalSizeMax = int64_t{1} << 33;
constexpr int64_t kOctalTimeMax = int64_t{1} << 33;
constexpr size_t kBufferBytes = size_t{256} << 10;

// "LENGTH KEY=VALUE\n", whose length counts itself.
std::string PaxRecord(const std::string& key, std::string_view value) {
  size_t rest = key.size() + value.size() + 3;
  size_t digits = std::to_string(rest).size();
  while (std::to_string(rest + digits).size() > digits) ++digits;
  return std::to_string(rest + digits) + " " + key + "=" + std::string(value) + "\n";
}

std::string TimeText(const image::TarEntry& entry) {
  std::array<char, 40> text{};
  int64_t seconds = entry.mtime_s;
  int64_t nanoseconds = entry.mtime_ns;
  const char* sign = "";
  if (seconds < 0 && nanoseconds > 0) {  // -1.75 is two seconds before 0 and a quarter after.
    seconds += 1;
    nanoseconds = 1'000'000'000 - nanoseconds;
    if (seconds == 0) sign = "-";
  }
  (void)::snprintf(text.data(), text.size(), "%s%lld.%09lld", sign, static_cast<long long>(seconds),
                   static_cast<long long>(nanoseconds));
  return text.data();
}

void PutField(char* block, size_t at, size_t size, std::string_view text) {
  std::copy_n(text.begin(), std::min(size, text.size()), block + at);
}

void PutOctal(char* block, size_t at, size_t size, int64_t value) {
  std::string text(size - 1, '0');
  for (size_t i = text.size(); i-- > 0 && value > 0; value /= 8) {
    text[i] = static_cast<char>('0' + value % 8);
  }
  PutField(block, at, size, text);
}

char TypeOf(image::TarType type) {
  switch (type) {
    case image::TarType::kHardlink:
      return '1';
    case image::TarType::kSymlink:
      return '2';
    case image::TarType::kDirectory:
      return '5';
    case image::TarType::kFifo:
      return '6';
    case image::TarType::kDevice:
    case image::TarType::kFile:
      break;
  }
  return '0';
}

}  // namespace

Status TarWriter::Put(std::string_view bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) {
    TRY(output_(buffer_));
    buffer_.clear();
  }
  if (bytes.size() >= kBufferBytes) return output_(bytes);
  buffer_ += bytes;
  return Ok();
}

// Writes the header; what it has no room for stands in the extended one before it.
Status TarWriter::PutHeader(const image::TarEntry& entry, char type, const std::string& path,
                            const std::string& link) {
  std::array<char, kBlock> block{};
  char* at = block.data();
  PutField(at, 0, kNameBytes, path);
  PutOctal(at, 100, 8, entry.mode & 07777);
  PutOctal(at, 108, 8, owner_);
  PutOctal(at, 116, 8, owner_);
  PutOctal(at, 124, 12, entry.size < kOctalSizeMax ? entry.size : 0);
  bool time_fits = entry.mtime_s >= 0 && entry.mtime_s < kOctalTimeMax;
  PutOctal(at, 136, 12, time_fits ? entry.mtime_s : 0);
  PutField(at, 148, 8, "        ");
  at[156] = type;
  PutField(at, 157, kNameBytes, link);
  PutField(at, 257, 8, std::string_view("ustar\00000", 8));
  int64_t sum = 0;
  for (char c : block) sum += static_cast<unsigned char>(c);
  PutOctal(at, 148, 7, sum);
  return Put({block.data(), block.size()});
}

Status TarWriter::Begin(const image::TarEntry& entry) {
  bool directory = entry.type == image::TarType::kDirectory;
  std::string path = directory ? entry.path + "/" : entry.path;
  std::string records;
  if (path.size() > kNameBytes) records += PaxRecord("path", path);
  if (entry.link.size() > kNameBytes) records += PaxRecord("linkpath", entry.link);
  if (entry.size >= kOctalSizeMax) records += PaxRecord("size", std::to_string(entry.size));
  if (entry.mtime_ns != 0 || entry.mtime_s < 0 || entry.mtime_s >= kOctalTimeMax) {
    records += PaxRecord("mtime", TimeText(entry));
  }
  for (const auto& [name, value] : entry.xattrs) {
    records += PaxRecord("SCHILY.xattr." + name, value);
  }
  if (!records.empty()) {
    image::TarEntry extended;
    extended.mode = 0644;
    extended.size = static_cast<int64_t>(records.size());
    TRY(PutHeader(extended, 'x', "pax", ""));
    size_ = left_ = extended.size;
    TRY(Content(records));
  }
  size_ = left_ = entry.size;
  return PutHeader(entry, TypeOf(entry.type), path.substr(0, kNameBytes),
                   entry.link.substr(0, kNameBytes));
}

// Contents end at a whole block.
Status TarWriter::Content(std::string_view bytes) {
  ENSURE(static_cast<int64_t>(bytes.size()) <= left_);
  left_ -= static_cast<int64_t>(bytes.size());
  TRY(Put(bytes));
  if (left_ > 0) return Ok();
  return Put(std::string(static_cast<size_t>((kBlock - size_ % kBlock) % kBlock), '\0'));
}

Status TarWriter::Finish() {
  TRY(Put(std::string(size_t{2} * kBlock, '\0')));
  TRY(output_(buffer_));
  buffer_.clear();
  return Ok();
}

}  // namespace session
