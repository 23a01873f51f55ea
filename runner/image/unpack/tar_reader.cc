// SPDX-License-Identifier: Apache-2.0
#include "image/unpack/tar_reader.h"

#include <algorithm>
#include <limits>

#include "image/unpack/tar_number.h"

namespace image {
namespace {

constexpr int64_t kBlock = 512;
// No disk holds more, and sums of two of them do not overflow.
constexpr int64_t kSizeMax = int64_t{1} << 61;

Error Bad(const std::string& what) { return {Code::kInvalid, "tar: " + what}; }

// Returns a field of a header block, laid out as in POSIX.1-2001 (ustar) and GNU tar's src/tar.h.
std::string_view Field(const std::array<char, 512>& block, size_t offset, size_t bytes) {
  return std::string_view(block.data() + offset, bytes);
}

std::string_view Text(std::string_view field) { return field.substr(0, field.find('\0')); }

bool IsZero(const std::array<char, 512>& block) {
  static constexpr std::array<char, 512> kZero{};
  return block == kZero;
}

// Checks the sum of all bytes, with spaces where the sum itself stands. Some writers of the last
// century summed signed bytes. There is one loop for each, and none has a condition: they are part
// of the cost of a small file.
bool ChecksumFits(const std::array<char, 512>& block) {
  std::array<char, 512> summed = block;
  std::fill_n(summed.begin() + 148, 8, ' ');
  int as_unsigned = 0;
  for (char byte : summed) as_unsigned += static_cast<unsigned char>(byte);
  int as_signed = 0;
  for (char byte : summed) as_signed += static_cast<signed char>(byte);
  std::optional<int64_t> sum = ParseTarNumber(Field(block, 148, 8));
  return sum && (*sum == as_unsigned || *sum == as_signed);
}

int64_t Padding(int64_t size) { return (kBlock - size % kBlock) % kBlock; }

}  // namespace

struct TarReader::Extended {
  std::optional<std::string> path;
  std::optional<std::string> link;
  std::optional<std::string> gnu_path;
  std::optional<std::string> gnu_link;
  std::optional<int64_t> size;
  std::optional<TarTime> mtime;
  std::optional<bool> root_uid;
  std::optional<bool> root_gid;
  std::vector<std::pair<std::string, std::string>> xattrs;
  bool pax = false;
  std::optional<int64_t> sparse_size;  // GNU.sparse.realsize: the extents stand in the content.
};

// Puts at least one byte into chunk_, or returns 0 at the end of the input.
Result<size_t> TarReader::Fill() {
  if (chunk_.empty()) chunk_ = TRY(input_());
  return chunk_.size();
}

Result<bool> TarReader::ReadBlock(Block& block) {
  size_t have = 0;
  while (have < block.size()) {
    size_t available = TRY(Fill());
    if (available == 0) {
      if (have == 0) return false;
      return Bad("ends in the middle of a header");
    }
    size_t take = std::min(available, block.size() - have);
    chunk_.copy(block.data() + have, take);
    chunk_.remove_prefix(take);
    have += take;
  }
  return true;
}

Result<std::string> TarReader::ReadText(int64_t bytes, size_t bytes_max) {
  if (bytes < 0 || bytes > static_cast<int64_t>(bytes_max)) {
    return Bad("an extended header of " + std::to_string(bytes) + " bytes");
  }
  left_ = bytes;
  padding_ = Padding(bytes);
  std::string text;
  while (left_ > 0) {
    TarPiece piece = TRY(Read());
    text += piece.bytes;
  }
  TRY(SkipContent());
  return text;
}

Result<TarPiece> TarReader::Read() {
  if (left_ == 0) return TarPiece{};
  size_t available = TRY(Fill());
  if (available == 0) return Bad("ends in the middle of a file");
  int64_t take = std::min(left_, static_cast<int64_t>(available));
  TarPiece piece{offset_, {}};
  if (sparse_) {
    while (extents_[extent_].bytes == 0) ++extent_;
    Extent& extent = extents_[extent_];
    take = std::min(take, extent.bytes);
    piece.offset = extent.offset;
    extent.offset += take;
    extent.bytes -= take;
  }
  piece.bytes = chunk_.substr(0, static_cast<size_t>(take));
  chunk_.remove_prefix(static_cast<size_t>(take));
  left_ -= take;
  offset_ += take;
  return piece;
}

Status TarReader::SkipContent() {
  for (int64_t skip = left_ + padding_; skip > 0;) {
    size_t available = TRY(Fill());
    if (available == 0) return Bad("ends in the middle of a file");
    int64_t take = std::min(skip, static_cast<int64_t>(available));
    chunk_.remove_prefix(static_cast<size_t>(take));
    skip -= take;
  }
  left_ = padding_ = offset_ = 0;
  sparse_ = false;
  extents_.clear();
  extent_ = 0;
  return Ok();
}

// The hash of the input must cover all of it: what follows the end is part of a layer's digest.
Status TarReader::Drain() {
  do {
    chunk_ = TRY(input_());
  } while (!chunk_.empty());
  ended_ = true;
  return Ok();
}

Result<std::optional<TarEntry>> TarReader::Next() {
  if (ended_) return std::optional<TarEntry>();
  TRY(SkipContent());
  Extended extended;
  for (Block block;;) {
    bool more = TRY(ReadBlock(block));
    bool zero = more && IsZero(block);
    if (zero) {
      more = TRY(ReadBlock(block));
      if (more && !IsZero(block)) return Bad("an empty header before the end");
      more = false;
      TRY(Drain());
    }
    if (!more) {
      // An archive may lack its end marks: what it should hold, its digest says.
      if (extended.pax || extended.gnu_path || extended.gnu_link) {
        return Bad("ends after an extended header");
      }
      ended_ = true;
      return std::optional<TarEntry>();
    }
    if (!ChecksumFits(block)) return Bad("a header with a wrong checksum");
    std::optional<int64_t> size = ParseTarNumber(Field(block, 124, 12));
    if (!size || *size < 0 || *size > kSizeMax) return Bad("an invalid size");
    char type = block[156];
    if (type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K') {
      TRY(ReadExtended(type, *size, extended));
      continue;
    }
    TarEntry entry = TRY(ParseEntry(block, extended));
    return std::optional(std::move(entry));
  }
}

Status TarReader::ReadExtended(char type, int64_t size, Extended& extended) {
  std::string text = TRY(ReadText(size, kTarHeaderBytesMax));
  if (type == 'g')
    // A header of the whole archive, in which Git writes its commit; it names nothing.
    return Ok();
  if (type == 'x' || type == 'X') {
    if (extended.pax) return Bad("two extended headers for one entry");
    extended.pax = true;
    return ParsePax(text, extended);
  }
  std::optional<std::string>& name = type == 'L' ? extended.gnu_path : extended.gnu_link;
  if (name) return Bad("two long names for one entry");
  if (text.ends_with('\0')) text.pop_back();
  if (text.find('\0') != std::string::npos) return Bad("a name that contains a NUL byte");
  name = std::move(text);
  return Ok();
}

// "LENGTH KEY=VALUE\n", LENGTH of all of it.
Status TarReader::ParsePax(std::string_view records, Extended& extended) {
  while (!records.empty()) {
    size_t space = records.find(' ');
    if (space == std::string_view::npos || space > 10) return Bad("a pax record without a length");
    std::optional<int64_t> length = ParseTarDecimal(records.substr(0, space));
    if (!length || *length <= static_cast<int64_t>(space) + 1 ||
        *length > static_cast<int64_t>(records.size())) {
      return Bad("a pax record with a wrong length");
    }
    std::string_view record = records.substr(0, static_cast<size_t>(*length));
    records.remove_prefix(record.size());
    if (!record.ends_with('\n')) return Bad("a pax record without a terminator");
    record = record.substr(space + 1, record.size() - space - 2);
    size_t equals = record.find('=');
    if (equals == std::string_view::npos || equals == 0) return Bad("a pax record without a key");
    TRY(ParsePaxRecord(record.substr(0, equals), record.substr(equals + 1), extended));
  }
  return Ok();
}

Status TarReader::ParsePaxRecord(std::string_view key, std::string_view value, Extended& extended) {
  constexpr std::string_view kXattr = "SCHILY.xattr.";
  constexpr std::string_view kSparse = "GNU.sparse.";
  if (key.find('\0') != std::string_view::npos) return Bad("a pax key that contains a NUL byte");
  if (key.starts_with(kXattr)) {
    extended.xattrs.emplace_back(key.substr(kXattr.size()), value);
    return Ok();
  }
  if (key == "path" || key == "linkpath" || key == "GNU.sparse.name") {
    if (value.find('\0') != std::string_view::npos) return Bad("a name that contains a NUL byte");
    // GNU.sparse.name is the real name of a file whose path was made up; it stands after it.
    (key == "linkpath" ? extended.link : extended.path) = std::string(value);
    return Ok();
  }
  if (key == "size") {
    extended.size = ParseTarDecimal(value);
    if (!extended.size || *extended.size > kSizeMax) return Bad("an invalid pax size");
  } else if (key == "mtime") {
    extended.mtime = ParseTarTime(value);
    if (!extended.mtime) return Bad("an invalid pax mtime");
  } else if (key == "uid") {
    extended.root_uid = value == "0";
  } else if (key == "gid") {
    extended.root_gid = value == "0";
  } else if (key == "GNU.sparse.realsize") {
    extended.sparse_size = ParseTarDecimal(value);
    if (!extended.sparse_size || *extended.sparse_size > kSizeMax) {
      return Bad("an invalid size of a sparse file");
    }
  } else if (key == "GNU.sparse.major" || key == "GNU.sparse.minor") {
    if (value != (key.ends_with("major") ? "1" : "0")) return Bad("an unsupported sparse format");
  } else if (key.starts_with(kSparse)) {
    return Bad("an unsupported sparse format");
  }
  return Ok();
}

// Takes the names from an extended header, GNU tar's long name, or the header itself.
Status TarReader::ParseNames(const Block& block, const Extended& extended, TarEntry& entry) {
  if ((extended.gnu_path && extended.path) || (extended.gnu_link && extended.link)) {
    return Bad("an entry with two names");
  }
  bool posix = Field(block, 257, 6) == std::string_view("ustar\0", 6);
  std::string path(Text(Field(block, 0, 100)));
  std::string prefix(posix ? Text(Field(block, 345, 155)) : "");
  if (!prefix.empty()) path = prefix + "/" + path;
  std::string link(Text(Field(block, 157, 100)));
  entry.path = extended.path ? *extended.path : extended.gnu_path.value_or(path);
  entry.link = extended.link ? *extended.link : extended.gnu_link.value_or(link);
  if (entry.path.size() > kTarPathBytesMax || entry.link.size() > kTarPathBytesMax) {
    return Bad("a name of more than " + std::to_string(kTarPathBytesMax) + " bytes");
  }
  return Ok();
}

Result<TarType> TarReader::ParseType(char type, const std::string& path) {
  switch (type) {
    case '\0':
      // Before POSIX a directory was a file whose name ended in a slash.
      return path.ends_with('/') ? TarType::kDirectory : TarType::kFile;
    case '0':
    case '7':
    case 'S':
      return TarType::kFile;
    case '1':
      return TarType::kHardlink;
    case '2':
      return TarType::kSymlink;
    case '3':
    case '4':
      return TarType::kDevice;
    case '5':
      return TarType::kDirectory;
    case '6':
      return TarType::kFifo;
    default:
      return Bad("an entry of unknown type " + std::to_string(static_cast<unsigned char>(type)) +
                 ": " + path);
  }
}

Result<TarEntry> TarReader::ParseEntry(const Block& block, Extended& extended) {
  TarEntry entry;
  TRY(ParseNames(block, extended, entry));
  std::optional<int64_t> size = extended.size;
  if (!size) size = ParseTarNumber(Field(block, 124, 12));
  std::optional<int64_t> mode = ParseTarNumber(Field(block, 100, 8));
  std::optional<int64_t> mtime = ParseTarNumber(Field(block, 136, 12));
  if (!mode || !mtime) return Bad("an invalid number in a header field: " + entry.path);
  entry.mode = static_cast<uint32_t>(*mode) & 07777;
  entry.mtime_s = extended.mtime ? extended.mtime->seconds : *mtime;
  entry.mtime_ns = extended.mtime ? extended.mtime->nanoseconds : 0;
  // Owners are not kept: a malformed number does no harm.
  entry.owned_by_root = extended.root_uid.value_or(ParseTarNumber(Field(block, 108, 8)) == 0) &&
                        extended.root_gid.value_or(ParseTarNumber(Field(block, 116, 8)) == 0);
  entry.xattrs = std::move(extended.xattrs);
  entry.type = TRY(ParseType(block[156], entry.path));
  if (entry.type != TarType::kFile && *size != 0) {
    return Bad("content in an entry that cannot have any: " +
               entry.path);  // Readers skip it, or do not.
  }
  left_ = *size;
  padding_ = Padding(*size);
  entry.size = *size;
  if (block[156] == 'S') {
    if (extended.sparse_size) return Bad("two maps for one sparse file");
    TRY(ReadGnuExtents(block));
    std::optional<int64_t> real = ParseTarNumber(Field(block, 483, 12));
    if (!real || *real < 0 || *real > kSizeMax) return Bad("an invalid size of a sparse file");
    entry.size = *real;
  } else if (extended.sparse_size && entry.type == TarType::kFile) {
    TRY(ReadPaxExtents());
    entry.size = *extended.sparse_size;
  }
  entry.sparse = sparse_;
  if (sparse_) TRY(CheckExtents(entry.size));
  if (sparse_) entry.holes = entry.size - left_;
  return entry;
}

Status TarReader::AddExtent(Extent extent) {
  if (extents_.size() == kTarExtentsMax) return Bad("a sparse file with too many segments");
  extents_.push_back(extent);
  return Ok();
}

// Four in the header, then 21 in each block that follows it.
Status TarReader::ReadGnuExtents(const Block& block) {
  sparse_ = true;
  Block more = block;
  size_t at = 386;
  size_t count = 4;
  for (char flag = block[482];; flag = more[504]) {
    for (size_t i = 0; i < count; ++i, at += 24) {
      std::string_view field = Field(more, at, 24);
      if (field[0] == 0 && field[12] == 0) continue;
      std::optional<int64_t> offset = ParseTarNumber(field.substr(0, 12));
      std::optional<int64_t> bytes = ParseTarNumber(field.substr(12));
      if (!offset || !bytes) return Bad("an invalid sparse map");
      TRY(AddExtent({.offset = *offset, .bytes = *bytes}));
    }
    if (flag == 0) return Ok();
    bool got = TRY(ReadBlock(more));
    if (!got) return Bad("ends in the middle of a file");
    at = 0;
    count = 21;
  }
}

// The content begins with decimal lines, COUNT, then OFFSET and BYTES of each, in whole blocks.
Status TarReader::ReadPaxExtents() {
  Block block;
  size_t at = block.size();
  auto number = [&]() -> Result<int64_t> {
    std::string line;
    for (;;) {
      if (at == block.size()) {
        if (left_ < kBlock) return Bad("an invalid sparse map");
        bool got = TRY(ReadBlock(block));
        if (!got) return Bad("ends in the middle of a file");
        left_ -= kBlock;
        at = 0;
      }
      char byte = block[at++];
      if (byte == '\n') break;
      line += byte;
      if (line.size() > 20) return Bad("an invalid sparse map");
    }
    std::optional<int64_t> value = ParseTarDecimal(line);
    if (!value) return Bad("an invalid sparse map");
    return *value;
  };
  int64_t count = TRY(number());
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = TRY(number());
    int64_t bytes = TRY(number());
    TRY(AddExtent({.offset = offset, .bytes = bytes}));
  }
  sparse_ = true;
  return Ok();
}

// Pieces stand in order, apart, inside the file, and are just as much as is stored.
Status TarReader::CheckExtents(int64_t size) {
  int64_t end = 0;
  int64_t stored = 0;
  for (const Extent& extent : extents_) {
    if (extent.offset < end || extent.bytes < 0 || extent.offset > size ||
        extent.bytes > size - extent.offset) {
      return Bad("a sparse map that does not match the file");
    }
    end = extent.offset + extent.bytes;
    stored += extent.bytes;
  }
  if (stored != left_) return Bad("a sparse map that does not match the file");
  return Ok();
}

}  // namespace image
