// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/sys.h"
#include "codec/data/yaml_fields.h"
#include "codec/text/quantity.h"
#include "eval/suite/check.h"
#include "eval/suite/yaml_value.h"

namespace eval {
namespace {

using codec::YamlFields;

constexpr int64_t kSecondsMax = 600;
constexpr size_t kFileBytesMax = size_t{1} << 20;

// Its files are the suite's, and no link leads out of there. What is hidden would make the
// verifier's directory a repository, or configure its run.
Status ReadFiles(const YamlFields& fields, const std::string& directory, Verifier* verifier) {
  for (const std::string& word : verifier->command) {
    if (!word.starts_with("./")) continue;
    if (word.find("/.") != word.npos) {
      return fields.Invalid("command", word + ": a verifier's file may not be hidden");
    }
    Result<std::string> text = sys::ReadBeneath(directory, word, kFileBytesMax);
    if (!text.ok()) return fields.Invalid("command", word + ": " + text.error().what);
    verifier->files.emplace_back(word, std::move(text).value());
  }
  return Ok();
}

Result<Verifier> ParseVerifier(const std::string& file, const codec::YamlEntry& entry,
                               const std::string& directory) {
  const std::string what = "the verifier '" + entry.key + "'";
  YamlFields fields =
      TRY(YamlFields::Open(file, entry.value, what, {"command", "channels", "timeout"}));
  TRY(RefuseNul(file, entry.value));
  Verifier verifier{entry.key, TRY(fields.FilledTexts("command")), {}, {}, 0};
  if (verifier.command.empty()) {
    return fields.Invalid("command", what + " needs a 'command'", "command: [python3, ./check.py]");
  }
  TRY(ReadFiles(fields, directory, &verifier));
  for (const std::string& name : TRY(fields.FilledTexts("channels"))) {
    const auto* known = std::find(kChannelNames.begin(), kChannelNames.end(), name);
    if (known == kChannelNames.end()) {
      return fields.Invalid("channels", "no channel is called '" + name + "'",
                            codec::OneOf({kChannelNames.begin(), kChannelNames.end()}));
    }
    verifier.channels.push_back(static_cast<Channel>(known - kChannelNames.begin()));
  }
  if (verifier.channels.empty()) {
    return fields.Invalid("channels", what + " needs the 'channels' of evidence that it looks at",
                          "channels: [answer, files]");
  }
  std::string timeout = TRY(fields.Text("timeout"));
  Result<int64_t> seconds = codec::ParseDuration(timeout.empty() ? "60s" : timeout);
  if (!seconds.ok()) return fields.Invalid("timeout", seconds.error().what);
  verifier.seconds = seconds.value();
  if (verifier.seconds < 1 || verifier.seconds > kSecondsMax) {
    return fields.Invalid("timeout", "a verifier takes from 1s to 10m");
  }
  return verifier;
}

}  // namespace

Result<Verifiers> ParseVerifiers(const std::string& file, const codec::YamlNode& node,
                                 const std::string& directory) {
  TRY(codec::CheckMapping(file, node, "'verifiers'"));
  Verifiers verifiers;
  const std::vector<std::string_view> keys = CheckKeys();
  for (const codec::YamlEntry& entry : node.entries) {
    if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) {
      return codec::InvalidAt(file, entry.at, "'" + entry.key + "' is a check already");
    }
    verifiers.push_back(TRY(ParseVerifier(file, entry, directory)));
  }
  return verifiers;
}

}  // namespace eval
