// SPDX-License-Identifier: Apache-2.0
// Parses GraphQL requests before a server sees them. The rules for documents are the specification
// of October 2021, those for requests over HTTP are OpenShell's. A request that a server could read
// differently is refused.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "codec/data/json.h"
#include "codec/wire/http_head.h"

namespace codec {

// The one operation that a request runs.
struct GraphqlOperation {
  // "query", "mutation" or "subscription". Empty if the request names a persisted document and does
  // not carry it; then only `persisted_id` tells what it does.
  std::string type;
  // The document's name for it; without a document the request's operationName; may be empty.
  std::string name;
  // The root fields it selects, directly or through fragments: names of the schema, never aliases,
  // introspection's (`__schema`) too. Sorted, each once. Skipped ones (@skip) count.
  std::vector<std::string> fields;
  // The hash or id of a persisted document that the request gives; may be empty. With a `type` as
  // well, the document came along (the first request of "automatic persisted queries").
  std::string persisted_id;
};

// OpenShell's bounds of one document: nested braces, brackets and parentheses; lexical tokens.
struct GraphqlBounds {
  int depth_max = 128;
  size_t tokens_max = 20000;
};

// Reads a whole executable document and picks the operation `operation_name`, or its only one when
// that is empty. Fails with kInvalid and what is wrong ("graphql document: 3:7: expected a name"):
// not a document, a type system definition, an unknown operation or root fragment, two operations
// or fragments of one name, a bound exceeded. Fragments that use each other in a circle at the root
// are refused, as any server must.
Result<GraphqlOperation> ParseGraphqlDocument(std::string_view document,
                                              std::string_view operation_name,
                                              const GraphqlBounds& bounds = {});

// Parses the object {query, operationName, extensions, id | documentId | queryId} in which a
// document travels: a POST body, one item of a batch, or the payload of a `subscribe` or `start`
// message over WebSocket. Fails with kInvalid where a member has another type than the protocol
// gives it, where more than one id is given, and where a name differs from one of these only in
// case (some servers ignore it).
Result<GraphqlOperation> ParseGraphqlEnvelope(const Json& envelope);

// A decoded query string, in the order written: what ParseQuery gives.
using QueryParameters = std::vector<std::pair<std::string, std::string>>;

// Parses a request over HTTP: GET with the parameters in the query and no body, or POST with a JSON
// object or a non-empty array of them. `fields` are the request's; `body` is whole. At least one
// operation. Fails with kInvalid: another method, a multipart or encoded body, parameters given
// twice or in both places, and everything the functions above refuse.
Result<std::vector<GraphqlOperation>> ParseGraphqlRequest(std::string_view method,
                                                          const HttpFields& fields,
                                                          const QueryParameters& query,
                                                          std::string_view body);

}  // namespace codec
