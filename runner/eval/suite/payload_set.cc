// SPDX-License-Identifier: Apache-2.0
#include "eval/suite/payload_set.h"

#include <fcntl.h>

#include <span>
#include <string_view>
#include <utility>

#include "base/sys.h"
#include "codec/data/embedded_file.h"
#include "codec/data/json.h"

namespace eval {

std::span<const codec::EmbeddedFile> EmbeddedPayloadSets();

namespace {

Result<PayloadSet> ParsePayloadSet(const std::string& path, std::string_view text) {
  const codec::Json json = TRY(codec::ParseJson(text).Context(path));
  PayloadSet set;
  set.id = json.StringAt("garak_payload_name");
  if (set.id.empty()) set.id = json.StringAt("id");
  set.license = json.StringAt("license");
  if (const codec::Json* origin = json.Find("origin")) {
    set.origin = origin->StringAt("kind") + " " + origin->StringAt("commit") + " " +
                 origin->StringAt("path");
  }
  const codec::Json* categories = json.Find("asi_categories");
  if (categories != nullptr && categories->array() != nullptr) {
    for (const codec::Json& one : *categories->array()) {
      if (one.string() != nullptr) set.categories.push_back(*one.string());
    }
  }
  const codec::Json* payloads = json.Find("payloads");
  if (set.id.empty() || payloads == nullptr || payloads->array() == nullptr) {
    return Invalid(path + ": not a payload set: it needs 'id' and a list 'payloads'");
  }
  for (const codec::Json& one : *payloads->array()) {
    if (one.string() == nullptr || one.string()->empty()) {
      return Invalid(path + ": payload " + std::to_string(set.payloads.size()) + " is not text");
    }
    if (one.string()->find('\0') != std::string::npos) {
      return Invalid(path + ": payload " + std::to_string(set.payloads.size()) +
                     " has a NUL in it");
    }
    set.payloads.push_back(*one.string());
  }
  return set;
}

}  // namespace

Result<PayloadSet> LoadPayloadSet(const std::string& directory, const std::string& path) {
  constexpr size_t kBytesMax = size_t{1} << 20;
  Fd folder = TRY(sys::Open(directory, O_RDONLY | O_DIRECTORY));
  Fd file = TRY(sys::OpenBeneath(folder.get(), path, O_RDONLY).Context("opening " + path));
  const std::string text = TRY(sys::ReadAll(file.get(), kBytesMax).Context("reading " + path));
  return ParsePayloadSet(path, text);
}

std::vector<PayloadSet> BuiltInPayloadSets() {
  std::vector<PayloadSet> sets;
  for (const codec::EmbeddedFile& file : EmbeddedPayloadSets()) {
    Result<PayloadSet> set = ParsePayloadSet(std::string(file.path), file.text);
    ENSURE(set.ok());  // A test reads each.
    sets.push_back(std::move(set).value());
  }
  return sets;
}

}  // namespace eval
