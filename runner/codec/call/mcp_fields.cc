// SPDX-License-Identifier: Apache-2.0
#include "codec/call/mcp_fields.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "base/ascii.h"
#include "codec/call/json_body.h"
#include "codec/call/json_rpc.h"
#include "codec/text/base64.h"
#include "codec/text/neutral.h"
#include "codec/text/utf8.h"

namespace codec {
namespace {

constexpr std::string_view kVersionField = "MCP-Protocol-Version";
constexpr std::string_view kMethodField = "Mcp-Method";
constexpr std::string_view kNameField = "Mcp-Name";
constexpr std::string_view kParamPrefix = "Mcp-Param-";
constexpr std::string_view kSessionField = "Mcp-Session-Id";
constexpr std::string_view kVersionMember = "io.modelcontextprotocol/protocolVersion";
constexpr std::string_view kEncodedBegin = "=?base64?";
constexpr std::string_view kEncodedEnd = "?=";

constexpr auto kOldVersions =
    std::to_array<std::string_view>({"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"});

// The methods whose field Mcp-Name is a member of their params.
struct Named {
  std::string_view method;
  std::string_view member;
  bool required;
};
constexpr auto kNamed = std::to_array<Named>({
    {kToolsCall, "name", true},
    {"prompts/get", "name", true},
    {"resources/read", "uri", true},
    {"tasks/get", "taskId", false},  // The extension for tasks.
    {"tasks/update", "taskId", false},
    {"tasks/cancel", "taskId", false},
});

std::string Quoted(std::string_view text) {
  constexpr size_t kShownMax = 100;
  return "'" + CutUtf8(NeutralLine(std::string(text)), kShownMax) + "'";
}

Error Disagreement(std::string_view field, std::string_view why) {
  return Invalid(std::string(field) + " " + std::string(why));
}

// Servers behind CGI take "_" for "-", and some the last of two fields, some the first.
struct Mirror {
  const HttpField* version = nullptr;
  const HttpField* method = nullptr;
  const HttpField* name = nullptr;
  std::vector<const HttpField*> params;
  bool session = false;
  bool empty() const { return method == nullptr && name == nullptr && params.empty(); }
};

bool IsParam(std::string_view name) {
  return name.size() >= kParamPrefix.size() &&
         MayBeReadAs(name.substr(0, kParamPrefix.size()), kParamPrefix);
}

Status TakeOnce(std::string_view name, const HttpField& field, const HttpField** place) {
  if (!EqualIgnoringCase(field.name, name)) {
    return Disagreement(name, "is spelled " + Quoted(field.name));
  }
  if (*place != nullptr) return Disagreement(name, "is there twice");
  *place = &field;
  return Ok();
}

Result<Mirror> FindMirror(const HttpFields& fields) {
  Mirror mirror;
  for (const HttpField& field : fields) {
    if (MayBeReadAs(field.name, kVersionField)) {
      TRY(TakeOnce(kVersionField, field, &mirror.version));
    } else if (MayBeReadAs(field.name, kMethodField)) {
      TRY(TakeOnce(kMethodField, field, &mirror.method));
    } else if (MayBeReadAs(field.name, kNameField)) {
      TRY(TakeOnce(kNameField, field, &mirror.name));
    } else if (IsParam(field.name)) {
      for (const HttpField* other : mirror.params) {
        if (MayBeReadAs(field.name, other->name)) {
          return Disagreement(Quoted(field.name), "is there twice");
        }
      }
      if (!EqualIgnoringCase(field.name.substr(0, kParamPrefix.size()), kParamPrefix)) {
        return Disagreement(kParamPrefix, "is spelled " + Quoted(field.name));
      }
      mirror.params.push_back(&field);
    } else if (MayBeReadAs(field.name, kSessionField)) {
      mirror.session = true;
    }
  }
  return mirror;
}

// Versions are dates. Any other text is not one of the versions without mirrored fields.
bool IsOld(std::string_view version) {
  const bool date = version.size() == kMcpMirrored.size() &&
                    std::all_of(version.begin(), version.end(),
                                [](char c) { return c == '-' || ascii::IsDigit(c); });
  return date && version < kMcpMirrored;
}

// Returns whether the header says nothing of a message, and names no version that would have to.
bool DescribesNothing(const Mirror& mirror) {
  return mirror.empty() && (mirror.version == nullptr || IsOld(mirror.version->value));
}

// Returns the text that a value of Mcp-Name or Mcp-Param-NAME stands for; nullopt if it could be
// read in two ways.
std::optional<std::string> DecodeValue(std::string_view value) {
  const bool plain = std::all_of(value.begin(), value.end(),
                                 [](char c) { return c == '\t' || (c >= ' ' && c <= '~'); });
  if (!plain) return std::nullopt;
  const bool marked = EqualIgnoringCase(value.substr(0, kEncodedBegin.size()), kEncodedBegin);
  if (!marked) return std::string(value);
  if (!value.starts_with(kEncodedBegin) || !value.ends_with(kEncodedEnd) ||
      value.size() < kEncodedBegin.size() + kEncodedEnd.size()) {
    return std::nullopt;
  }
  value.remove_prefix(kEncodedBegin.size());
  value.remove_suffix(kEncodedEnd.size());
  std::optional<std::string> text = DecodeBase64(value);
  // The last letter may have bits that belong to no byte.
  if (!text || EncodeBase64(*text) != value || FindInvalidUtf8(*text) != std::string::npos) {
    return std::nullopt;
  }
  return text;
}

// Returns whether a value stands for a whole number: "42", "-1", "42.0".
bool IsNumber(std::string_view value, double wanted) {
  constexpr double kExactMax = 9007199254740991.0;  // 2^53 - 1, MCP's bound.
  constexpr size_t kDigitsMax = 16;
  if (!(std::fabs(wanted) <= kExactMax) || std::trunc(wanted) != wanted) return false;
  const bool negative = value.starts_with('-');
  if (negative) value.remove_prefix(1);
  const std::string_view digits = value.substr(0, std::min(value.find('.'), value.size()));
  const std::string_view rest = value.substr(digits.size());
  const bool whole =
      rest.empty() || (rest.size() > 1 && rest.find_first_not_of('0', 1) == std::string_view::npos);
  if (!ascii::IsNumber(digits) || digits.size() > kDigitsMax || !whole ||
      (digits.size() > 1 && digits.front() == '0')) {
    return false;
  }
  double number = 0;
  for (char c : digits) number = number * 10 + (c - '0');
  return (negative ? -number : number) == wanted;
}

// Returns whether a field of this decoded value agrees with an argument.
bool Agrees(const std::string& value, const Json& argument) {
  if (argument.string() != nullptr) return *argument.string() == value;
  if (argument.boolean()) return value == (*argument.boolean() ? "true" : "false");
  return argument.number() && IsNumber(value, *argument.number());
}

// "TenantId", "tenant_id" and "tenant-id" are the same name.
std::string PlainName(std::string_view name) {
  std::string plain;
  for (char c : ascii::LowerCase(std::string(name))) {
    if (c != '-' && c != '_' && c != '.') plain += c;
  }
  return plain;
}

// What the arguments of a call say that a field may mirror: one member of them, at any depth of
// objects.
struct Arguments {
  bool agrees = false;       // One has the value.
  bool named = false;        // One has the name,
  bool named_agrees = true;  // and all of that name the value: a server takes whichever it knows.
};

void LookThrough(const Json& arguments, const std::string& name, const std::string& value,
                 Arguments* found) {
  if (arguments.object() == nullptr) return;
  for (const auto& [key, argument] : *arguments.object()) {
    if (argument.object() != nullptr) {
      LookThrough(argument, name, value, found);
      continue;
    }
    const bool agrees = Agrees(value, argument);
    found->agrees = found->agrees || agrees;
    if (PlainName(key) != name) continue;
    found->named = true;
    found->named_agrees = found->named_agrees && agrees;
  }
}

Status CompareParams(const Mirror& mirror, const std::string& method, const Json* params) {
  for (const HttpField* field : mirror.params) {
    const std::string shown = NeutralLine(field->name);
    if (method != kToolsCall) return Disagreement(shown, "belongs to tools/call alone");
    std::optional<std::string> value = DecodeValue(field->value);
    if (!value) return Disagreement(shown, "is not a valid value: " + Quoted(field->value));
    const Json* arguments = params == nullptr ? nullptr : params->Find("arguments");
    Arguments found;
    if (arguments != nullptr) {
      LookThrough(*arguments, PlainName(field->name.substr(kParamPrefix.size())), *value, &found);
    }
    if (found.named ? !found.named_agrees : !found.agrees) {
      return Disagreement(
          shown, "is " + Quoted(*value) + ", and the argument in the body differs or is missing");
    }
  }
  return Ok();
}

Status CompareName(const Mirror& mirror, const std::string& method, const Json* params,
                   bool mirrored) {
  const auto* named = std::ranges::find(kNamed, method, &Named::method);
  if (named == kNamed.end()) {
    if (mirror.name == nullptr) return Ok();
    return Disagreement(kNameField, "does not belong to " + Quoted(method));
  }
  if (mirror.name == nullptr) {
    if (!mirrored || !named->required) return Ok();
    return Disagreement(kNameField, "is missing");
  }
  std::optional<std::string> value = DecodeValue(mirror.name->value);
  if (!value) return Disagreement(kNameField, "is not a valid value");
  const Json* member = params == nullptr ? nullptr : params->Find(named->member);
  if (member == nullptr || member->string() == nullptr || *member->string() != *value) {
    return Disagreement(kNameField, "is " + Quoted(*value) + ", and the body's " +
                                        std::string(named->member) + " is not");
  }
  return Ok();
}

Status CompareVersion(const Mirror& mirror, const std::string& method, const std::string& version) {
  const std::string_view said =
      mirror.version == nullptr ? std::string_view() : mirror.version->value;
  if (version.empty()) {
    const bool notifies = method.starts_with("notifications/");
    if (mirror.version == nullptr || IsOld(said) || (notifies && said == kMcpMirrored)) return Ok();
    return Disagreement(kVersionField, "is " + Quoted(said) + ", and the body names no version");
  }
  if (mirror.version == nullptr) return Disagreement(kVersionField, "is missing");
  if (said != version) {
    return Disagreement(kVersionField,
                        "is " + Quoted(said) + ", and the body's version " + Quoted(version));
  }
  if (mirror.session) return Disagreement(kSessionField, "belongs to older versions than the body");
  return Ok();
}

const Json* ParamsOf(const Json& message) {
  const Json* params = message.Find("params");
  return params == nullptr || params->object() == nullptr ? nullptr : params;
}

// Fails if a server could find another version, or with `mirrored` another member of the params,
// than is found here.
Status CheckSpelling(const Json& message, bool mirrored) {
  constexpr std::array<std::string_view, 5> kRead = {"_meta", "name", "uri", "taskId", "arguments"};
  const Json* params = ParamsOf(message);
  if (params == nullptr) return Ok();
  TRY(CheckMemberNames(*params, std::span(kRead).first(mirrored ? kRead.size() : 1)));
  const Json* meta = params->Find("_meta");
  if (meta == nullptr) return Ok();
  if (meta->object() == nullptr) return Invalid("params._meta is not an object");
  TRY(CheckMemberNames(*meta, {&kVersionMember, 1}));
  const Json* version = meta->Find(kVersionMember);
  if (version != nullptr && (version->string() == nullptr || version->string()->empty())) {
    return Invalid(std::string(kVersionMember) + " is not a text");
  }
  return Ok();
}

}  // namespace

std::string McpVersionOf(const Json& message) {
  const Json* params = ParamsOf(message);
  const Json* meta = params == nullptr ? nullptr : params->Find("_meta");
  return meta == nullptr ? std::string() : meta->StringAt(kVersionMember);
}

Status CompareMcpFields(const HttpFields& fields, const Json& body) {
  const Mirror mirror = TRY(FindMirror(fields));
  if (body.array() != nullptr) {
    for (const Json& message : *body.array()) {
      TRY(CheckSpelling(message, false));
      if (!McpVersionOf(message).empty()) {
        return Invalid("a batch, and the MCP version of its messages has no batches");
      }
    }
    if (DescribesNothing(mirror)) return Ok();
    return Invalid("a batch, and the header describes a single message");
  }
  TRY(CheckSpelling(body, !mirror.empty()));
  const Json* method = body.Find("method");
  if (method == nullptr || method->string() == nullptr) {
    if (DescribesNothing(mirror)) return Ok();
    return Invalid("a response, and the header describes a request");
  }
  const std::string version = McpVersionOf(body);
  TRY(CompareVersion(mirror, *method->string(), version));
  if (mirror.method == nullptr && !version.empty()) {
    return Disagreement(kMethodField, "is missing");
  }
  if (mirror.method != nullptr && mirror.method->value != *method->string()) {
    return Disagreement(kMethodField, "is " + Quoted(mirror.method->value) +
                                          ", and the body's method " + Quoted(*method->string()));
  }
  TRY(CompareName(mirror, *method->string(), ParamsOf(body), !version.empty()));
  return CompareParams(mirror, *method->string(), ParamsOf(body));
}

Status CompareMcpFields(const HttpFields& fields) {
  const Mirror mirror = TRY(FindMirror(fields));
  if (DescribesNothing(mirror)) return Ok();
  return Invalid("the header describes a message, and there is no body");
}

bool MirrorsMcp(const HttpFields& fields) {
  return std::any_of(fields.begin(), fields.end(), [](const HttpField& field) {
    return MayBeReadAs(field.name, kMethodField) || MayBeReadAs(field.name, kNameField) ||
           IsParam(field.name);
  });
}

std::string RenderMcpError(const Json& body, int code, std::string_view message, Json data) {
  Json error;
  error.Set("code", code).Set("message", message);
  if (!data.is_null()) error.Set("data", std::move(data));
  const Json* id = body.Find("id");
  const bool known = id != nullptr && (id->string() != nullptr || id->integer());
  Json answer;
  answer.Set("jsonrpc", "2.0").Set("id", known ? *id : Json()).Set("error", std::move(error));
  return RenderJsonLine(answer);
}

Json McpVersions(bool mirrored, std::string_view requested) {
  Json supported = Json::EmptyArray();
  if (mirrored) supported.Push(kMcpMirrored);
  for (std::string_view version : kOldVersions) supported.Push(version);
  Json data;
  data.Set("supported", std::move(supported)).Set("requested", requested);
  return data;
}

}  // namespace codec
