// SPDX-License-Identifier: Apache-2.0
// The reader that every part of one configuration needs.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "codec/data/yaml_fields.h"
#include "image/trust.h"

namespace run {

// Says whether an option of `run` takes this text. Fails with kUsage and what is wrong with it.
using OptionCheck = std::function<Status(std::string_view option, std::string_view text)>;

// The checks of a configuration's values that other code makes. Values whose check is empty are not
// checked.
struct ConfigChecks {
  OptionCheck option = {};
  // The names that there are. Asked by a configuration that names any, since it reads a catalogue.
  std::function<std::vector<std::string>()> ecosystems = {};
};

// The origin of a configuration and of the files that it names.
struct ConfigSource {
  std::string file;       // The file's name, as messages show it.
  image::TrustFile read;  // Gives the files it names: keys, a trusted root, prompts.
  ConfigChecks checks = {};
};

// The errors that did not stop it. A file with any is not valid: reading goes on behind one only to
// find the others.
struct ConfigReader {
  const ConfigSource& source;
  std::vector<Error> errors = {};

  const std::string& file() const { return source.file; }

  // The value, or nothing after keeping the error. For parts of a file that stand beside others.
  template <typename T>
  std::optional<T> Keep(Result<T> part) {
    if (part.ok()) return std::move(part).value();
    if (errors.size() < kErrorsMax) errors.push_back(std::move(part).error());
    return std::nullopt;
  }

  // Opens the mapping `node`, called `what`. Keeps an error for each key that is not in `keys`, and
  // for each of `filled` that is empty; fails only when it is not a mapping.
  Result<codec::YamlFields> Open(const codec::YamlNode& node, std::string_view what,
                                 const std::vector<std::string_view>& keys,
                                 const std::vector<std::string_view>& filled) {
    TRY(codec::CheckMapping(file(), node, what));
    std::vector<std::string_view> there = keys;
    auto has = [](const std::vector<std::string_view>& list, std::string_view key) {
      return std::find(list.begin(), list.end(), key) != list.end();
    };
    for (const codec::YamlEntry& entry : node.entries) {
      if (!has(keys, entry.key)) {
        Keep(Status(codec::UnknownKey(file(), entry, what, keys)));
        there.push_back(entry.key);
      } else if (has(filled, entry.key) && codec::IsEmpty(entry.value)) {
        Keep(Status(codec::EmptyValue(file(), entry)));
      }
    }
    return codec::YamlFields::Open(file(), node, what, there);
  }

  static constexpr size_t kErrorsMax = 100;
};

}  // namespace run
