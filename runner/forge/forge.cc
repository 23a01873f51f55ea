// SPDX-License-Identifier: Apache-2.0
#include "forge/forge.h"

#include <algorithm>

#include "codec/text/utf8.h"

namespace forge {
namespace {

constexpr size_t kLabelCharactersMax = 50;  // GitHub's bound.
constexpr char kStore[] = "store of signed statements";

Error Lacks(const Forge& forge, const char* what) {
  return Error{Code::kUnsupported, std::string(forge.capabilities().names) + " has no " + what};
}

}  // namespace

Status Forge::PostCheckRun(const CheckRun&, Deadline) { return Lacks(*this, "check runs"); }

Status Forge::UploadSarif(const SarifUpload&, Deadline) { return Lacks(*this, "code scanning"); }

Status Forge::StoreStatement(const StatementUpload&, Deadline) { return Lacks(*this, kStore); }

Result<std::vector<std::string>> Forge::FindStatements(const std::string&, const std::string&,
                                                       Deadline) {
  return Lacks(*this, kStore);
}

bool ValidLabel(const std::string& name) {
  auto characters =
      std::count_if(name.begin(), name.end(), [](unsigned char c) { return (c & 0xc0) != 0x80; });
  bool plain = std::none_of(name.begin(), name.end(),
                            [](unsigned char c) { return c < 0x20 || c == 0x7f || c == ','; });
  return !name.empty() && characters <= static_cast<int64_t>(kLabelCharactersMax) && plain &&
         codec::FindInvalidUtf8(name) == std::string_view::npos;
}

}  // namespace forge
