// SPDX-License-Identifier: Apache-2.0
// One mapping of a policy file, read against the schema: unknown keys are refused, values are
// typed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/data/yaml_fields.h"
#include "policy/load/parse.h"
#include "policy/model/schema.h"

namespace policy {

// The state that parsing one file needs everywhere: its name for messages, its warnings, and the
// errors that did not stop it. A file with any is not valid (ParsePolicyTree): parsing goes on
// behind one only to find the others.
struct Reader {
  std::string file;
  std::vector<Warning> warnings;
  std::vector<Error> errors;

  // The value, or nothing after keeping the error. For parts of a file that stand beside others.
  template <typename T>
  std::optional<T> Keep(Result<T> part) {
    if (part.ok()) return std::move(part).value();
    KeepError(std::move(part).error());
    return std::nullopt;
  }
  // Keys missing from a mapping that has an unknown key are not reported: it probably is one of
  // them.
  void KeepError(Error error);
  // Keeps the error of an unknown key in the mapping at this place.
  void KeepUnknownKey(codec::Position mapping, Error error);

  Error Invalid(codec::Position at, std::string_view what, std::string_view hint = {}) const {
    return codec::InvalidAt(file, at, what, hint);
  }
  void Warn(codec::Position at, std::string what) { warnings.push_back({at, std::move(what)}); }

 private:
  std::vector<codec::Position> misread_;  // The places of such mappings.
};

// A mapping whose keys are a section of the schema.
class Fields : public codec::YamlFields {
 public:
  // Fails when `node` is not a mapping. Keeps an error for each key that the section does not know
  // (the nearest one is the hint), or that is empty where the schema refuses that.
  static Result<Fields> Open(Reader* reader, const codec::YamlNode& node, Section section);

  // False if `key` is absent, or asks for nothing: null, false, empty text, an empty list or
  // mapping. OpenShell does not tell these apart either.
  bool Has(std::string_view key) const;

 private:
  using YamlFields::YamlFields;
};

}  // namespace policy
