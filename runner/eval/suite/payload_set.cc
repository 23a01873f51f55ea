// SPDX-License-Identifier: Apache-2.0
#include "eval/suite/payload_set.h"

#include <fcntl.h>

#include "base/sys.h"
#include "codec/data/json.h"

namespace eval {

Result<PayloadSet> LoadPayloadSet(const std::string& directory, const std::string& path) {
  constexpr size_t kBytesMax = size_t{1} << 20;
  Fd folder = TRY(sys::Open(directory, O_RDONLY | O_DIRECTORY));
  Fd file = TRY(sys::OpenBeneath(folder.get(), path, O_RDONLY).Context("opening " + path));
  std::string text = TRY(sys::ReadAll(file.get(), kBytesMax).Context("reading " + path));
  codec::Json json = TRY(codec::ParseJson(text).Context(path));
  PayloadSet set;
  set.id = json.StringAt("garak_payload_name");
  if (set.id.empty()) set.id = json.StringAt("id");
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

}  // namespace eval
