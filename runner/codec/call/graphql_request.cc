// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>

#include "codec/call/graphql.h"
#include "codec/call/json_body.h"
#include "codec/text/fold.h"
#include "codec/text/percent.h"
#include "codec/wire/http_target.h"
#include "codec/wire/query.h"

namespace codec {
namespace {

constexpr std::array<std::string_view, 3> kIdNames = {"id", "documentId", "queryId"};
// All that decides what is run, in the envelope as in a query string.
constexpr std::array<std::string_view, 6> kNames = {"query", "operationName", "extensions",
                                                    "id",    "documentId",    "queryId"};

// One request, wherever its parts stood. A part is empty if it is absent.
struct Envelope {
  std::string query;
  std::string operation_name;
  std::string hash;
  std::string id;
};

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n,") == std::string_view::npos;
}

Result<GraphqlOperation> Judge(const Envelope& envelope) {
  if (!envelope.hash.empty() && !envelope.id.empty() && envelope.hash != envelope.id) {
    return Invalid("the hash and the id differ");
  }
  GraphqlOperation operation;
  operation.name = envelope.operation_name;
  if (!IsBlank(envelope.query)) {
    operation = TRY(ParseGraphqlDocument(envelope.query, envelope.operation_name));
  } else if (envelope.hash.empty() && envelope.id.empty()) {
    return Invalid("neither a document nor a document id");
  }
  if (!IsBlank(envelope.query) && !envelope.id.empty()) {
    return Invalid("a document and an id: servers differ in which they run");
  }
  operation.persisted_id = envelope.hash.empty() ? envelope.id : envelope.hash;
  return operation;
}

// A member that is a string; null and absence are the empty string.
Result<std::string> StringMember(const Json& object, std::string_view name) {
  const Json* member = object.Find(name);
  if (member == nullptr || member->is_null()) return std::string();
  if (member->string() == nullptr) return Invalid("\"" + std::string(name) + "\" is not a string");
  return *member->string();
}

// A member that is an object; nullptr for null or absent.
Result<const Json*> ObjectMember(const Json& object, std::string_view name) {
  const Json* member = object.Find(name);
  if (member == nullptr || member->is_null()) return static_cast<const Json*>(nullptr);
  if (member->object() == nullptr) return Invalid("\"" + std::string(name) + "\" is not an object");
  return member;
}

// Returns extensions.persistedQuery.sha256Hash; may be empty.
Result<std::string> HashOf(const Json& extensions) {
  constexpr std::array<std::string_view, 1> kPersistedQuery = {"persistedQuery"};
  constexpr std::array<std::string_view, 1> kHash = {"sha256Hash"};
  TRY(CheckMemberNames(extensions, kPersistedQuery));
  const Json* persisted = TRY(ObjectMember(extensions, kPersistedQuery[0]));
  if (persisted == nullptr) return std::string();
  TRY(CheckMemberNames(*persisted, kHash));
  return StringMember(*persisted, kHash[0]);
}

Result<std::string> HashOfText(std::string_view extensions) {
  const Json json = TRY(ParseJson(extensions));
  if (json.is_null()) return std::string();
  if (json.object() == nullptr) return Invalid("\"extensions\" is not an object");
  return HashOf(json);
}

bool MayMean(std::string_view key, std::string_view name) {
  return FoldToAscii(key) == FoldToAscii(name) || MayMeanKey(key, name);
}

// The parameter of that name; a name in another spelling would be read by some servers.
Result<std::string> Parameter(const QueryParameters& query, std::string_view name) {
  std::optional<std::string> found;
  for (const auto& [key, value] : query) {
    if (!MayMean(key, name)) continue;
    if (key != name || found.has_value()) {
      return Invalid("parameter \"" + std::string(name) +
                     "\" more than once or in another spelling");
    }
    found = value;
  }
  return found.value_or("");
}

Result<GraphqlOperation> ParseGet(const QueryParameters& query) {
  Envelope envelope;
  envelope.query = TRY(Parameter(query, "query"));
  envelope.operation_name = TRY(Parameter(query, "operationName"));
  const std::string extensions = TRY(Parameter(query, "extensions"));
  if (!extensions.empty()) {
    envelope.hash = TRY(HashOfText(extensions));
  }
  for (std::string_view name : kIdNames) {
    const std::string id = TRY(Parameter(query, name));
    if (id.empty()) continue;
    if (!envelope.id.empty()) return Invalid("more than one id");
    envelope.id = id;
  }
  return Judge(envelope);
}

// True if one of `query` has a name that decides what is run.
bool HasOwnName(const QueryParameters& query) {
  for (const auto& parameter : query) {
    const auto same = [&](std::string_view name) { return MayMean(parameter.first, name); };
    if (std::any_of(kNames.begin(), kNames.end(), same)) return true;
  }
  return false;
}

// Returns whether every server reads a body with these fields as JSON. Some servers take a body
// without a type for a form.
bool IsJsonToAll(const HttpFields& fields) {
  const HttpField* field = FindContentType(fields);
  if (field == nullptr) return false;
  std::string type = FoldToAscii(field->value.substr(0, field->value.find(';')));
  type.erase(type.find_last_not_of(" \t") + 1);
  bool one =
      std::all_of(type.begin(), type.end(), [](char c) { return c == '/' || IsTokenChar(c); });
  const size_t slash = std::min(type.find('/'), type.size());
  bool structured = slash > 0 && slash < type.size() && type.ends_with("+json");
  return one && (type == "application/json" || structured);
}

// JSON is often sent as a form by accident (it is curl's default), or without a type. It passes
// when it is not a form that contains a document: `{"a":"&query=..."}` could be both.
Status CheckForm(const HttpFields& fields, std::string_view body) {
  if (IsJsonToAll(fields)) return Ok();
  while (!body.empty()) {
    const size_t end = std::min(body.find_first_of("&;"), body.size());
    const std::string key = FormDecode(body.substr(0, std::min(body.find('='), end)));
    if (HasOwnName({{key, ""}})) return Invalid("the body is both JSON and a form");
    body.remove_prefix(std::min(end + 1, body.size()));
  }
  return Ok();
}

Result<std::vector<GraphqlOperation>> ParsePost(const HttpFields& fields,
                                                const QueryParameters& query,
                                                std::string_view body) {
  if (HasOwnName(query)) return Invalid("a POST with parameters in the query string");
  TRY(CheckForm(fields, body));
  const Json json = TRY(ParseJson(body));
  std::vector<GraphqlOperation> operations;
  if (json.object() != nullptr) {
    GraphqlOperation operation = TRY(ParseGraphqlEnvelope(json));
    operations.push_back(std::move(operation));
    return operations;
  }
  if (json.array() == nullptr) return Invalid("the body is neither an object nor an array");
  if (json.array()->empty()) return Invalid("an empty batch");
  for (const Json& item : *json.array()) {
    GraphqlOperation operation = TRY(ParseGraphqlEnvelope(item));
    operations.push_back(std::move(operation));
  }
  return operations;
}

}  // namespace

Result<GraphqlOperation> ParseGraphqlEnvelope(const Json& envelope) {
  if (envelope.object() == nullptr) return Invalid("a request is not an object");
  TRY(CheckMemberNames(envelope, kNames));
  Envelope parts;
  parts.query = TRY(StringMember(envelope, "query"));
  parts.operation_name = TRY(StringMember(envelope, "operationName"));
  const Json* extensions = TRY(ObjectMember(envelope, "extensions"));
  if (extensions != nullptr) {
    parts.hash = TRY(HashOf(*extensions));
  }
  for (std::string_view name : kIdNames) {
    std::string id = TRY(StringMember(envelope, name));
    if (id.empty()) continue;
    if (!parts.id.empty()) return Invalid("more than one id");
    parts.id = std::move(id);
  }
  return Judge(parts);
}

Result<std::vector<GraphqlOperation>> ParseGraphqlRequest(std::string_view method,
                                                          const HttpFields& fields,
                                                          const QueryParameters& query,
                                                          std::string_view body) {
  TRY(CheckJsonBodyFields(fields));
  if (method == "POST") return ParsePost(fields, query, body);
  if (method != "GET") return Invalid("neither GET nor POST");
  if (!body.empty()) return Invalid("a GET with a body");
  GraphqlOperation operation = TRY(ParseGet(query));
  return std::vector<GraphqlOperation>{std::move(operation)};
}

}  // namespace codec
