// SPDX-License-Identifier: Apache-2.0
#include "eval/suite/payload_set.h"

#include <fcntl.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/join.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "base/tree.h"
#include "codec/data/embedded_file.h"
#include "codec/data/json.h"

namespace eval {

std::span<const codec::EmbeddedFile> EmbeddedPayloadSets();

namespace {

constexpr size_t kBytesMax = size_t{1} << 20;

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
  Fd folder = TRY(sys::Open(directory, O_RDONLY | O_DIRECTORY));
  Fd file = TRY(sys::OpenBeneath(folder.get(), path, O_RDONLY).Context("opening " + path));
  const std::string text = TRY(sys::ReadAll(file.get(), kBytesMax).Context("reading " + path));
  PayloadSet set = TRY(ParsePayloadSet(path, text));
  set.file = directory + "/" + path;
  return set;
}

Result<std::vector<PayloadSet>> FindPayloadSets(const std::string& directory) {
  std::vector<PayloadSet> sets;
  for (const codec::EmbeddedFile& file : EmbeddedPayloadSets()) {
    Result<PayloadSet> set = ParsePayloadSet(std::string(file.path), file.text);
    ENSURE(set.ok());  // A test reads each.
    sets.push_back(std::move(set).value());
  }
  if (directory.empty()) return sets;
  Fd folder = TRY(sys::Open(directory, O_RDONLY | O_DIRECTORY).Context("reading the payload sets"));
  std::vector<std::string> names = TRY(sys::DirectoryNames(folder.get()));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (!name.ends_with(".json")) continue;
    const std::string path = directory + "/" + name;
    const std::string text = TRY(ReadNamedFile(path, kBytesMax).Context("reading " + path));
    PayloadSet set = TRY(ParsePayloadSet(path, text));
    set.file = path;
    const bool taken = std::any_of(sets.begin(), sets.end(),
                                   [&](const PayloadSet& other) { return other.id == set.id; });
    if (taken) return Invalid(set.file + ": there is a payload set '" + set.id + "' already");
    sets.push_back(std::move(set));
  }
  return sets;
}

std::string RenderPayloadSets(const std::vector<PayloadSet>& sets) {
  std::string lines;
  for (const PayloadSet& set : sets) {
    lines += set.id + "  " + std::to_string(set.payloads.size()) + " payloads  " +
             Join(set.categories, ",") + "  " + set.license + "  " +
             (set.file.empty() ? set.origin : set.file) + "\n";
  }
  return lines;
}

}  // namespace eval
