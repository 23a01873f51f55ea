// SPDX-License-Identifier: Apache-2.0
#include "policy/load/operation_parse.h"

#include "policy/load/rule_parse.h"

namespace policy {
namespace {

using codec::YamlEntry;
using codec::YamlKind;
using codec::YamlNode;

// "*" is any: OpenShell's parts disagree on it, its documents allow it.
Result<std::string> ParseOperationType(Reader* reader, const Fields& fields) {
  const std::vector<std::string_view> types = {"query", "mutation", "subscription", "*"};
  std::optional<size_t> type = TRY(fields.Choice("operation_type", types));
  if (type) return std::string(types[*type]);
  return reader->Invalid(fields.at(), "a GraphQL operation needs an 'operation_type'",
                         "write 'operation_type: query'");
}

Result<std::string> ParseOperationName(Reader* reader, const Fields& fields) {
  std::string name = TRY(fields.Text("operation_name"));
  if (!name.empty()) {
    TRY(CheckGlob(*reader, fields.At("operation_name"), "operation_name", name, '.'));
  }
  return name;
}

Result<std::vector<std::string>> ParseRootFields(Reader* reader, const Fields& fields) {
  std::vector<std::string> names = TRY(fields.Texts("fields"));
  const YamlNode* list = fields.Find("fields");
  for (size_t i = 0; i < names.size(); ++i) {
    codec::Position at = list->items[i].at;
    if (names[i].empty()) {
      return reader->Invalid(at, "an entry of 'fields' is empty", "write '\"*\"' for every field");
    }
    TRY(CheckGlob(*reader, at, "field", names[i], '.'));
  }
  return names;
}

}  // namespace

bool NamesOperation(const Fields& fields) {
  return fields.Has("operation_type") || fields.Has("operation_name") || fields.Has("fields");
}

Result<HttpRule> ParseOperationMatch(Reader* reader, const Fields& fields) {
  HttpRule rule;
  rule.at = fields.at();
  rule.operation_type = TRY(ParseOperationType(reader, fields));
  rule.operation_name = TRY(ParseOperationName(reader, fields));
  rule.fields = TRY(ParseRootFields(reader, fields));
  return rule;
}

Result<std::vector<PersistedQuery>> ParsePersistedQueries(Reader* reader, const Fields& endpoint) {
  constexpr std::string_view kKey = "graphql_persisted_queries";
  std::vector<PersistedQuery> queries;
  const YamlNode* node = endpoint.Find(kKey);
  if (node == nullptr || node->kind == YamlKind::kNull) return queries;
  if (node->kind != YamlKind::kMapping) return endpoint.WrongType(kKey, "a mapping of ids");
  for (const YamlEntry& entry : node->entries) {
    if (entry.key.empty()) {
      return reader->Invalid(entry.at, "a persisted query has an empty id",
                             "write the query's hash or id as the key");
    }
    Fields fields = TRY(Fields::Open(reader, entry.value, Section::kPersistedQuery));
    PersistedQuery query;
    query.id = entry.key;
    query.operation_type = TRY(ParseOperationType(reader, fields));
    query.operation_name = TRY(ParseOperationName(reader, fields));
    query.fields = TRY(ParseRootFields(reader, fields));
    queries.push_back(std::move(query));
  }
  return queries;
}

}  // namespace policy
