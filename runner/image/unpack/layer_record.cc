// SPDX-License-Identifier: Apache-2.0
#include "image/unpack/layer_record.h"

#include <map>

#include "base/sys.h"
#include "image/unpack/tar_number.h"

namespace image {
namespace {

constexpr std::string_view kFirstLine = "agentic-ci layer 1\n";

}  // namespace

std::string Printable(std::string text) {
  for (char& c : text) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return text;
}

std::string RenderRecord(const LayerRecord& record) {
  std::string text(kFirstLine);
  text += "boot " + record.boot + "\nlisting " + record.listing_digest + "\nentries " +
          std::to_string(record.entries) + "\nbytes " + std::to_string(record.bytes) +
          "\nhides-below " + (record.hides_below ? "1" : "0") + "\n";
  for (const std::string& warning : record.warnings) text += "warning " + Printable(warning) + "\n";
  return text;
}

Result<LayerRecord> ParseRecord(std::string_view text) {
  Error broken{Code::kInvalid, "a damaged record"};
  if (!text.starts_with(kFirstLine) || !text.ends_with('\n')) return broken;
  text.remove_prefix(kFirstLine.size());
  LayerRecord record;
  std::map<std::string, std::string, std::less<>> lines;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    size_t space = line.find(' ');
    if (space == std::string_view::npos) return broken;
    std::string value(line.substr(space + 1));
    if (line.starts_with("warning ")) {
      record.warnings.push_back(std::move(value));
    } else if (!lines.emplace(line.substr(0, space), std::move(value)).second) {
      return broken;
    }
  }
  std::optional<int64_t> entries = ParseTarDecimal(lines["entries"]);
  std::optional<int64_t> bytes = ParseTarDecimal(lines["bytes"]);
  if (!entries || !bytes || lines["listing"].size() != 64 || lines.size() != 5) return broken;
  record.boot = lines["boot"];
  record.listing_digest = lines["listing"];
  record.entries = *entries;
  record.bytes = *bytes;
  record.hides_below = lines["hides-below"] == "1";
  return record;
}

std::string BootId() {
  Result<std::string> id = sys::ReadFile("/proc/sys/kernel/random/boot_id", 64);
  return id.ok() ? id.value().substr(0, 36) : "";
}

}  // namespace image
