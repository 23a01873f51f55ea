// SPDX-License-Identifier: Apache-2.0
#include "sigstore/statement.h"

#include <algorithm>

#include "codec/data/json.h"
#include "sigstore/bundle.h"
#include "sigstore/trust/proto_json.h"

namespace sigstore {
namespace {

constexpr std::string_view kInToto = "application/vnd.in-toto+json";
constexpr size_t kSubjectsMax = 1024;  // sigstore-go's bound.

bool IsStatement(const std::string& type) {
  return type == "https://in-toto.io/Statement/v1" || type == "https://in-toto.io/Statement/v0.1";
}

bool Counts(const std::string& type, const VerifyOptions& options) {
  const std::vector<std::string>& named = options.predicate_types;
  return options.any_predicate || type == kCosignSign ||
         std::find(named.begin(), named.end(), type) != named.end();
}

}  // namespace

Checked<std::string> CheckStatement(std::string_view payload_type, std::string_view payload,
                                    std::string_view digest_hex, const VerifyOptions& options) {
  if (payload_type != kInToto) {
    return Rejection{Reason::kPayloadType,
                     "the envelope's payload is of type '" + std::string(payload_type) + "'"};
  }
  codec::Json statement = TRY(ReadJson(payload, "statement", kBundleBytesMax));
  if (!IsStatement(statement.StringAt("_type"))) {
    return Rejection{Reason::kStatement, "the payload is not an in-toto statement"};
  }
  const codec::Json* list = statement.Find("subject");
  const codec::Json::Array* subjects = list == nullptr ? nullptr : list->array();
  if (subjects == nullptr || subjects->empty()) {
    return Rejection{Reason::kStatement, "the statement has no subject"};
  }
  if (subjects->size() > kSubjectsMax) {
    return Rejection{Reason::kTooMany, "the statement has more than 1024 subjects"};
  }
  bool about = std::any_of(subjects->begin(), subjects->end(), [&](const codec::Json& subject) {
    const codec::Json* digest = subject.Find("digest");
    return digest != nullptr && digest->StringAt("sha256") == digest_hex;
  });
  if (!about) {
    return Rejection{Reason::kSubject,
                     "the statement is not about sha256:" + std::string(digest_hex)};
  }
  std::string type = statement.StringAt("predicateType");
  if (type.empty()) return Rejection{Reason::kStatement, "the statement has no predicateType"};
  if (!Counts(type, options)) {
    return Rejection{Reason::kPredicateType,
                     "a statement of type '" + type + "' is not a signature"};
  }
  return type;
}

}  // namespace sigstore
