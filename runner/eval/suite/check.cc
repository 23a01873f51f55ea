// SPDX-License-Identifier: Apache-2.0
#include "eval/suite/check.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "codec/data/yaml_fields.h"
#include "codec/text/nearest.h"
#include "eval/suite/yaml_value.h"

namespace eval {
namespace {

using codec::YamlFields;
using codec::YamlKind;
using codec::YamlNode;

// The form of what follows a key.
enum class Form {
  kChecks,        // A list of checks.
  kOneCheck,      //
  kText,          // Text.
  kTexts,         // A list of text.
  kRegex,         // A regular expression.
  kFieldValue,    // {field, value}
  kFieldText,     // {field, value}, the value text.
  kFieldMatch,    // {field, match: {key: text}}
  kFieldCount,    // {field, count}
  kField,         // A field, or {field}.
  kPathContains,  // {path, contains}
  kFile,          // {path, change, contains, matches, sha256}
  kHost,          // A host, or {host, port}.
  kHttp,          // {method, host, path, decision}
  kSent,          // Text, or {text, host}.
  kTool,          // A tool, or {tool, arguments}.
};

struct Row {
  std::string_view key;
  CheckKind kind;
  Form form;
};

constexpr auto kRows = std::to_array<Row>({
    {"output_contains", CheckKind::kOutputContains, Form::kText},
    {"output_contains_all", CheckKind::kOutputContainsAll, Form::kTexts},
    {"output_contains_any", CheckKind::kOutputContainsAny, Form::kTexts},
    {"env_field_equals", CheckKind::kFieldEquals, Form::kFieldValue},
    {"env_field_contains", CheckKind::kFieldContains, Form::kFieldText},
    {"env_list_any_match", CheckKind::kListAnyMatch, Form::kFieldMatch},
    {"env_list_count", CheckKind::kListCount, Form::kFieldCount},
    {"env_field_unchanged", CheckKind::kFieldUnchanged, Form::kField},
    {"commands_match_pattern", CheckKind::kCommandMatches, Form::kRegex},
    {"workdir_file_exists", CheckKind::kFileExists, Form::kText},
    {"workdir_file_deleted", CheckKind::kFileDeleted, Form::kText},
    {"workdir_file_contains", CheckKind::kFileContains, Form::kPathContains},
    {"process_ran", CheckKind::kProcessRan, Form::kText},
    {"network_call_to", CheckKind::kNetworkCallTo, Form::kText},
    {"network_call_blocked_to", CheckKind::kNetworkCallBlockedTo, Form::kText},
    {"security_finding_raised", CheckKind::kFindingRaised, Form::kText},
    {"all_of", CheckKind::kAllOf, Form::kChecks},
    {"any_of", CheckKind::kAnyOf, Form::kChecks},
    {"not", CheckKind::kNot, Form::kOneCheck},
    {"file_changed", CheckKind::kFileChanged, Form::kFile},
    {"host_reached", CheckKind::kHostReached, Form::kHost},
    {"host_blocked", CheckKind::kHostBlocked, Form::kHost},
    {"http_request", CheckKind::kHttpRequest, Form::kHttp},
    {"program_ran", CheckKind::kProgramRan, Form::kText},
    {"egress_contains", CheckKind::kEgressContains, Form::kSent},
    {"tool_called", CheckKind::kToolCalled, Form::kTool},
    {"hosted_tool", CheckKind::kHostedTool, Form::kText},
});

constexpr size_t kNeedleBytesBroad = 2;  // Shorter text is found nearly anywhere.
constexpr uint32_t kCountMax = 1000000;
constexpr size_t kSha256Digits = 64;
constexpr int kDepthMax = 20;

class CheckParser {
 public:
  CheckParser(const std::string& file, const codec::Json* state, std::vector<Warning>* warnings,
              const Verifiers& verifiers)
      : file_(file), state_(state), warnings_(warnings), verifiers_(verifiers) {}

  Result<Check> Parse(const YamlNode& node, int depth) {
    if (node.kind != YamlKind::kMapping || node.entries.size() != 1) {
      return codec::InvalidAt(file_, node.at, "a check is a mapping with one key",
                              "output_contains: TEXT");
    }
    const codec::YamlEntry& entry = node.entries[0];
    const Row* row = std::find_if(kRows.begin(), kRows.end(),
                                  [&](const Row& one) { return one.key == entry.key; });
    Check check;
    if (row == kRows.end()) {
      check.verifier = TRY(FindVerifier(entry));
      check.kind = CheckKind::kVerifier;
      check.key = "verifier";
      check.at = entry.at;
      check.texts.push_back(entry.key);
      check.value = TRY(JsonOf(file_, entry.value));
      return check;
    }
    check.kind = row->kind;
    check.key = row->key;
    check.at = entry.at;
    if (depth > kDepthMax) return Wrong(entry.value, "checks nested too deeply");
    TRY(Fill(row->form, entry.value, depth, &check));
    return check;
  }

 private:
  Result<Verifier> FindVerifier(const codec::YamlEntry& entry) const {
    std::vector<std::string_view> keys = CheckKeys();
    for (const Verifier& verifier : verifiers_) {
      if (verifier.name == entry.key) return verifier;
      keys.push_back(verifier.name);
    }
    return codec::UnknownKey(file_, entry, "a check", keys);
  }

  Error Wrong(const YamlNode& value, std::string_view what, std::string_view hint = {}) const {
    return codec::InvalidAt(file_, value.at, what, hint);
  }
  void Warn(const Check& check, std::string what) {
    warnings_->push_back({check.at, std::string(check.key) + ": " + what});
  }

  // A scalar that is text, or is meant as such: a plain number too.
  Result<std::string> TextOf(const YamlNode& node, std::string_view key) const {
    std::optional<std::string> text = codec::ScalarText(node, codec::Blanks::kKept);
    if (!text) {
      return Wrong(node, "'" + std::string(key) + "' must be text, not " +
                             std::string(codec::DescribeKind(node)));
    }
    if (text->empty()) return Wrong(node, "'" + std::string(key) + "' is empty");
    return *text;
  }

  Status Fill(Form form, const YamlNode& value, int depth, Check* check) {
    switch (form) {
      case Form::kChecks:
        return FillChecks(value, depth, check);
      case Form::kOneCheck: {
        Check part = TRY(Parse(value, depth + 1));
        check->parts.push_back(std::move(part));
        return Ok();
      }
      case Form::kText:
        check->texts.push_back(TRY(TextOf(value, check->key)));
        TRY(RefuseIdle(value, *check));
        WarnIfBroad(*check);
        return Ok();
      case Form::kTexts:
        return FillTexts(value, check);
      case Form::kRegex:
        check->texts.push_back(TRY(TextOf(value, check->key)));
        return FillRegex(value, check->texts[0], check);
      case Form::kFieldValue:
      case Form::kFieldText:
      case Form::kFieldMatch:
      case Form::kFieldCount:
      case Form::kField:
        return FillField(form, value, check);
      case Form::kPathContains: {
        YamlFields fields = TRY(YamlFields::Open(file_, value, check->key, {"path", "contains"}));
        check->texts.push_back(TRY(fields.RequiredText("path")));
        check->texts.push_back(TRY(fields.RequiredText("contains")));
        return RefuseIdle(*fields.Find("path"), *check);
      }
      case Form::kFile:
        return FillFile(value, check);
      case Form::kHost:
        return FillHost(value, check);
      case Form::kHttp:
        return FillHttp(value, check);
      case Form::kSent:
        return FillSent(value, check);
      case Form::kTool:
        return FillTool(value, check);
    }
    return Ok();
  }

  Status FillChecks(const YamlNode& value, int depth, Check* check) {
    if (value.kind != YamlKind::kSequence) {
      return Wrong(value, "'" + std::string(check->key) + "' must be a list of checks");
    }
    if (value.items.empty()) {
      return Wrong(value, "'" + std::string(check->key) + "' is empty, and would decide nothing");
    }
    for (const YamlNode& item : value.items) {
      Check part = TRY(Parse(item, depth + 1));
      check->parts.push_back(std::move(part));
    }
    return Ok();
  }

  Status FillTexts(const YamlNode& value, Check* check) {
    if (value.kind != YamlKind::kSequence || value.items.empty()) {
      return Wrong(value, "'" + std::string(check->key) + "' must be a list of text",
                   std::string(check->key) + ": [TEXT]");
    }
    for (const YamlNode& item : value.items) {
      check->texts.push_back(TRY(TextOf(item, check->key)));
    }
    return Ok();
  }

  Status FillRegex(const YamlNode& value, const std::string& pattern, Check* check) {
    Result<codec::Regex> regex = codec::Regex::Parse(pattern);
    if (!regex.ok()) return Wrong(value, regex.error().what);
    if (regex.value().Search("")) {
      return Wrong(value, "the regular expression matches the empty text, and so everything");
    }
    check->regex = std::move(regex).value();
    check->has_regex = true;
    return Ok();
  }

  Status FillField(Form form, const YamlNode& value, Check* check) {
    if (form == Form::kField && value.kind == YamlKind::kScalar) {
      check->field = TRY(TextOf(value, check->key));
      return CheckField(value, *check);
    }
    std::vector<std::string_view> keys = {"field"};
    if (form == Form::kFieldValue || form == Form::kFieldText) keys.push_back("value");
    if (form == Form::kFieldMatch) keys.push_back("match");
    if (form == Form::kFieldCount) keys.push_back("count");
    YamlFields fields = TRY(YamlFields::Open(file_, value, check->key, keys));
    check->field = TRY(fields.RequiredText("field"));
    TRY(CheckField(*fields.Find("field"), *check));
    for (std::string_view key : keys) {
      if (fields.Find(key) == nullptr) {
        return Wrong(value, "'" + std::string(key) + "' is missing in " + std::string(check->key));
      }
    }
    if (form == Form::kFieldValue) check->value = TRY(JsonOf(file_, *fields.Find("value")));
    if (form == Form::kFieldText) {
      check->texts.push_back(TRY(TextOf(*fields.Find("value"), "value")));
    }
    if (form == Form::kFieldCount) check->count = TRY(fields.Number("count", 0, 0, kCountMax));
    if (form != Form::kFieldMatch) return Ok();
    const YamlNode& match = *fields.Find("match");
    if (match.kind != YamlKind::kMapping || match.entries.empty()) {
      return Wrong(match, "'match' must be a mapping of keys to text");
    }
    for (const codec::YamlEntry& entry : match.entries) {
      check->match.emplace_back(entry.key, TRY(TextOf(entry.value, entry.key)));
    }
    return Ok();
  }

  // The field must be one of the state at the beginning.
  Status CheckField(const YamlNode& at, const Check& check) const {
    if (state_ == nullptr) {
      return Wrong(
          at, "this environment has no state that '" + std::string(check.key) + "' could look at");
    }
    std::string_view rest = check.field;
    const codec::Json* here = state_;
    while (here != nullptr && !here->is_null()) {
      size_t dot = rest.find('.');
      std::string name(rest.substr(0, dot));
      const codec::Json* next = here->Find(name);
      if (next == nullptr) {
        std::vector<std::string_view> names;
        if (const codec::Json::Object* object = here->object()) {
          for (const codec::Json::Member& member : *object) names.push_back(member.first);
        }
        std::string nearest(codec::NearestName(name, names));
        return Wrong(at, "the state has no field '" + check.field + "'", nearest);
      }
      if (dot == std::string_view::npos) break;
      rest.remove_prefix(dot + 1);
      here = next;
    }
    return Ok();
  }

  Status FillFile(const YamlNode& value, Check* check) {
    YamlFields fields = TRY(YamlFields::Open(file_, value, check->key,
                                             {"path", "change", "contains", "matches", "sha256"}));
    std::string path = TRY(fields.RequiredText("path"));
    if (path.front() == '/' || path.starts_with("./") || path.starts_with("../")) {
      return fields.Invalid("path", "files of the checkout have paths relative to it");
    }
    Result<codec::Glob> glob = codec::Glob::Parse(path, '/');
    if (!glob.ok()) return fields.Invalid("path", glob.error().what);
    check->glob = std::move(glob).value();
    check->texts.push_back(path);
    const std::vector<std::string_view> changes = {"any", "created", "modified", "deleted"};
    std::optional<size_t> change = TRY(fields.Choice("change", changes));
    check->match.emplace_back("change", changes[change.value_or(0)]);
    for (std::string_view key : {"contains", "sha256"}) {
      std::string text = TRY(fields.Text(key));
      if (key == "sha256" && !text.empty()) {
        text = ascii::LowerCase(text);
        if (text.size() != kSha256Digits ||
            text.find_first_not_of("0123456789abcdef") != std::string::npos) {
          return fields.Invalid(key, "not 64 hexadecimal digits");
        }
      }
      if (!text.empty()) check->match.emplace_back(key, text);
    }
    std::string pattern = TRY(fields.Text("matches"));
    if (pattern.empty()) return Ok();
    return FillRegex(*fields.Find("matches"), pattern, check);
  }

  Status FillHost(const YamlNode& value, Check* check) {
    if (value.kind == YamlKind::kScalar) {
      check->texts.push_back(TRY(TextOf(value, check->key)));
    } else {
      YamlFields fields = TRY(YamlFields::Open(file_, value, check->key, {"host", "port"}));
      check->texts.push_back(TRY(fields.RequiredText("host")));
      check->count = TRY(fields.Number("port", 0, 1, 65535));
    }
    return FillHostPattern(value, check->texts[0], check);
  }

  // A name's pattern, or a range of addresses.
  Status FillHostPattern(const YamlNode& value, const std::string& host, Check* check) {
    if (host.find('/') != std::string::npos) {
      check->range = AddressRange::Parse(host);
      if (check->range) return Ok();
      return Wrong(value, "'" + host + "' is not a range of addresses", "10.0.0.0/8");
    }
    if (std::count(host.begin(), host.end(), ':') == 1) {  // An IPv6 address has more.
      const size_t colon = host.find(':');
      return Wrong(value, "'" + host + "' is not a host: the port is a key of its own",
                   "{host: " + host.substr(0, colon) + ", port: " + host.substr(colon + 1) + "}");
    }
    // As the gateway records it.
    std::string recorded = ascii::LowerCase(host);
    if (recorded.size() > 1 && recorded.back() == '.') recorded.pop_back();
    Result<codec::Glob> glob = codec::Glob::Parse(recorded, '.');
    if (!glob.ok()) return Wrong(value, glob.error().what);
    check->glob = std::move(glob).value();
    return Ok();
  }

  Status FillHttp(const YamlNode& value, Check* check) {
    YamlFields fields =
        TRY(YamlFields::Open(file_, value, check->key, {"method", "host", "path", "decision"}));
    std::string host = TRY(fields.RequiredText("host"));
    TRY(FillHostPattern(*fields.Find("host"), host, check));
    check->texts.push_back(host);
    check->match.emplace_back("method", ascii::UpperCase(TRY(fields.Text("method"))));
    std::string path = TRY(fields.Text("path"));
    if (!path.empty() && path.front() != '/' && path.front() != '*') {
      return fields.Invalid("path", "a path begins with '/'");
    }
    Result<codec::Glob> parsed = codec::Glob::Parse(path, '/');
    if (!parsed.ok()) return fields.Invalid("path", parsed.error().what);
    check->match.emplace_back("path", path);
    const std::vector<std::string_view> decisions = {"any", "allowed", "denied"};
    std::optional<size_t> decision = TRY(fields.Choice("decision", decisions));
    check->match.emplace_back("decision", decisions[decision.value_or(0)]);
    return Ok();
  }

  Status FillSent(const YamlNode& value, Check* check) {
    constexpr size_t kCharactersMin = 8;  // `run --watch-sent` takes no shorter one.
    const YamlNode* text = &value;
    if (value.kind == YamlKind::kMapping) {
      YamlFields fields = TRY(YamlFields::Open(file_, value, check->key, {"text", "host"}));
      check->texts.push_back(TRY(fields.RequiredText("text")));
      text = fields.Find("text");
      std::string host = TRY(fields.RequiredText("host"));
      TRY(FillHostPattern(*fields.Find("host"), host, check));
      check->match.emplace_back("host", host);
    } else {
      check->texts.push_back(TRY(TextOf(value, check->key)));
    }
    const std::string& wanted = check->texts[0];
    if (wanted.size() < kCharactersMin) return Wrong(*text, "shorter than 8 characters");
    if (wanted.find('\n') != std::string::npos) return Wrong(*text, "more than one line");
    return Ok();
  }

  Status FillTool(const YamlNode& value, Check* check) {
    if (value.kind == YamlKind::kScalar) {
      check->texts.push_back(TRY(TextOf(value, check->key)));
      return Ok();
    }
    YamlFields fields = TRY(YamlFields::Open(file_, value, check->key, {"tool", "arguments"}));
    check->texts.push_back(TRY(fields.RequiredText("tool")));
    const YamlNode* arguments = fields.Find("arguments");
    if (arguments == nullptr) return Ok();
    TRY(codec::CheckMapping(file_, *arguments, "arguments"));
    for (const codec::YamlEntry& entry : arguments->entries) {
      check->match.emplace_back(entry.key, TRY(TextOf(entry.value, entry.key)));
    }
    return Ok();
  }

  // Refuses what nothing that is recorded could match: the attack would count as resisted.
  Status RefuseIdle(const YamlNode& value, const Check& check) const {
    const std::string& text = check.texts[0];
    const bool about_file = check.kind == CheckKind::kFileExists ||
                            check.kind == CheckKind::kFileDeleted ||
                            check.kind == CheckKind::kFileContains;
    if (about_file && (text.starts_with("./") || text.starts_with("../"))) {
      return Wrong(value, "'" + text + "' is a part of no file's path",
                   text.substr(text.find('/') + 1));
    }
    const bool about_call =
        check.kind == CheckKind::kNetworkCallTo || check.kind == CheckKind::kNetworkCallBlockedTo;
    if (about_call && text.find('/') != std::string::npos) {
      return Wrong(value, "'" + text + "' is a part of no 'host:port'");
    }
    if (check.kind != CheckKind::kProgramRan || text.front() == '/') return Ok();
    if (text.find(' ') != std::string::npos) {
      return Wrong(value, "a program without its arguments", "commands_match_pattern: " + text);
    }
    if (text.find('/') != std::string::npos) {
      return Wrong(value, "a program's name, or its absolute path",
                   "program_ran: " + text.substr(text.rfind('/') + 1));
    }
    return Ok();
  }

  void WarnIfBroad(const Check& check) {
    const std::string& text = check.texts[0];
    bool network =
        check.kind == CheckKind::kNetworkCallTo || check.kind == CheckKind::kNetworkCallBlockedTo;
    if (network && text.find_first_not_of("0123456789") == std::string::npos) {
      Warn(check, "'" + text + "' is found in every 'host:port' with these digits; use " +
                      (check.kind == CheckKind::kNetworkCallTo ? "host_reached" : "host_blocked"));
    } else if (network && text.find(':') == std::string::npos) {
      Warn(check, "'" + text + "' is also found in other hosts, such as 'not" + text +
                      ".example'; use " +
                      (check.kind == CheckKind::kNetworkCallTo ? "host_reached" : "host_blocked"));
    } else if (check.kind == CheckKind::kProcessRan && text.find('/') == std::string::npos) {
      Warn(check, "'" + text +
                      "' is also found in longer names, and programs run without harm; "
                      "use program_ran, or commands_match_pattern");
    } else if (text.size() < kNeedleBytesBroad) {
      Warn(check, "'" + text + "' is found nearly anywhere");
    }
  }

  const std::string& file_;
  const codec::Json* state_;
  std::vector<Warning>* warnings_;
  const Verifiers& verifiers_;
};

}  // namespace

Result<Check> ParseCheck(const std::string& file, const YamlNode& node, const codec::Json* state,
                         std::vector<Warning>* warnings, const Verifiers& verifiers) {
  return CheckParser(file, state, warnings, verifiers).Parse(node, 0);
}

const codec::Json* FieldAt(const codec::Json& state, std::string_view path) {
  const codec::Json* here = &state;
  while (here != nullptr) {
    size_t dot = path.find('.');
    here = here->Find(path.substr(0, dot));
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  return here;
}

std::vector<std::string_view> CheckKeys() {
  std::vector<std::string_view> keys;
  for (const Row& row : kRows) keys.push_back(row.key);
  return keys;
}

void CollectSentTexts(const Check& check, std::vector<std::string>* texts) {
  if (check.kind == CheckKind::kEgressContains) texts->push_back(check.texts[0]);
  for (const Check& part : check.parts) CollectSentTexts(part, texts);
}

}  // namespace eval
