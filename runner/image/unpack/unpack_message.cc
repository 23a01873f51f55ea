// SPDX-License-Identifier: Apache-2.0
#include "image/unpack/unpack_message.h"

#include <charconv>
#include <initializer_list>

#include "image/unpack/layer_record.h"

namespace image {
namespace {

constexpr char kLayer[] = "layer";
constexpr char kLook[] = "look";
constexpr char kError[] = "error";

// Fields end with a NUL, which no name can hold.
std::string Fields(std::initializer_list<std::string> fields) {
  std::string message;
  for (const std::string& field : fields) {
    message += field.substr(0, field.find('\0'));
    message += '\0';
  }
  return message;
}

std::vector<std::string> Split(std::string_view message) {
  std::vector<std::string> fields;
  while (!message.empty()) {
    size_t end = message.find('\0');
    if (end == std::string_view::npos) return {};
    fields.emplace_back(message.substr(0, end));
    message.remove_prefix(end + 1);
  }
  return fields;
}

Result<int64_t> Number(const std::string& text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  return Error{Code::kInvalid, "malformed message from the unpacking process"};
}

Error Nonsense() { return {Code::kInvalid, "malformed message from the unpacking process"}; }

}  // namespace

std::string RenderReport(const UnpackReport& report) {
  if (const LookBelow* look = std::get_if<LookBelow>(&report)) return Fields({kLook, look->path});
  if (const Error* error = std::get_if<Error>(&report)) {
    return Fields({kError, std::to_string(static_cast<int>(error->code)),
                   error->what.substr(0, 8192), error->hint});
  }
  const UnpackedLayer& layer = std::get<UnpackedLayer>(report);
  std::string message =
      Fields({kLayer, layer.diff_id, layer.listing_digest, std::to_string(layer.entries),
              std::to_string(layer.bytes), std::to_string(layer.reached_below),
              std::to_string(layer.hides_below)});
  for (const std::string& warning : layer.warnings) message += Fields({warning});
  return message;
}

Result<UnpackReport> ParseReport(std::string_view message) {
  std::vector<std::string> fields = Split(message);
  if (fields.size() == 2 && fields[0] == kLook) return UnpackReport(LookBelow{fields[1]});
  if (fields.size() == 4 && fields[0] == kError) {
    int64_t code = TRY(Number(fields[1]));
    if (code < 0 || code > static_cast<int>(Code::kBug)) return Nonsense();
    return UnpackReport(Error{static_cast<Code>(code), Printable(fields[2]), Printable(fields[3])});
  }
  if (fields.size() < 7 || fields[0] != kLayer) return Nonsense();
  UnpackedLayer layer{fields[1], fields[2], 0, 0, fields[5] == "1", fields[6] == "1", {}};
  layer.entries = TRY(Number(fields[3]));
  layer.bytes = TRY(Number(fields[4]));
  for (size_t i = 7; i < fields.size(); ++i) layer.warnings.push_back(Printable(fields[i]));
  return UnpackReport(std::move(layer));
}

std::string RenderAnswer(const LowerEntry& entry) {
  return Fields({std::to_string(static_cast<int>(entry.kind)), std::to_string(entry.mode),
                 std::to_string(entry.mtime.tv_sec), std::to_string(entry.mtime.tv_nsec),
                 entry.link});
}

Result<LowerEntry> ParseAnswer(std::string_view message) {
  std::vector<std::string> fields = Split(message);
  if (fields.size() != 5) return Nonsense();
  int64_t kind = TRY(Number(fields[0]));
  int64_t mode = TRY(Number(fields[1]));
  int64_t seconds = TRY(Number(fields[2]));
  int64_t nanoseconds = TRY(Number(fields[3]));
  if (kind < 0 || kind > static_cast<int>(LowerEntry::Kind::kOther)) return Nonsense();
  LowerEntry entry;
  entry.kind = static_cast<LowerEntry::Kind>(kind);
  entry.mode = static_cast<mode_t>(mode);
  entry.mtime = {seconds, nanoseconds};
  entry.link = fields[4];
  return entry;
}

}  // namespace image
