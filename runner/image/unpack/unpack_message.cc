// SPDX-License-Identifier: Apache-2.0
#include "image/unpack/unpack_message.h"

#include "base/wire.h"
#include "image/unpack/layer_record.h"

namespace image {
namespace {

Error Malformed() { return {Code::kInvalid, "malformed message from the unpacking process"}; }

}  // namespace

template <typename Archive>
void Visit(Archive& archive, UnpackedLayer& value) {
  archive(value.diff_id, value.listing_digest, value.entries, value.bytes, value.reached_below,
          value.hides_below, value.warnings);
}
template <typename Archive>
void Visit(Archive& archive, LookBelow& value) {
  archive(value.path);
}
template <typename Archive>
void Visit(Archive& archive, LowerEntry& value) {
  archive(value.kind, value.mode, value.mtime.tv_sec, value.mtime.tv_nsec, value.link);
}

std::string RenderReport(const UnpackReport& report) { return wire::Write(report); }

Result<UnpackReport> ParseReport(std::string_view message) {
  UnpackReport report;
  if (!wire::Read(message, report)) return Malformed();
  // A path ends at a NUL for the kernel alone: "..\0" would be checked as another name than "..".
  const LookBelow* look = std::get_if<LookBelow>(&report);
  if (look != nullptr && look->path.find('\0') != std::string::npos) return Malformed();
  if (Error* error = std::get_if<Error>(&report)) {
    error->what = Printable(std::move(error->what));
    error->hint = Printable(std::move(error->hint));
  }
  if (UnpackedLayer* layer = std::get_if<UnpackedLayer>(&report)) {
    for (std::string& warning : layer->warnings) warning = Printable(std::move(warning));
  }
  return report;
}

std::string RenderAnswer(const LowerEntry& entry) { return wire::Write(entry); }

Result<LowerEntry> ParseAnswer(std::string_view message) {
  LowerEntry entry;
  bool read = wire::Read(message, entry);
  if (!read || entry.kind < LowerEntry::Kind::kAbsent || entry.kind > LowerEntry::Kind::kOther) {
    return Malformed();
  }
  return entry;
}

}  // namespace image
