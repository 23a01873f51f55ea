// SPDX-License-Identifier: Apache-2.0
// GraphQL: what a document asks for does not depend on what is ignored in it, nor on the way it
// travels.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "codec/call/graphql.h"

namespace {

using codec::GraphqlOperation;
using Operations = std::vector<GraphqlOperation>;

bool Same(const GraphqlOperation& a, const GraphqlOperation& b) {
  return a.type == b.type && a.name == b.name && a.fields == b.fields;
}

void CheckOperation(const GraphqlOperation& operation, std::string_view document) {
  ENSURE(operation.type == "query" || operation.type == "mutation" ||
         operation.type == "subscription");
  ENSURE(std::is_sorted(operation.fields.begin(), operation.fields.end()));
  ENSURE(!operation.fields.empty());
  for (const std::string& field : operation.fields) {
    ENSURE(!field.empty() && document.find(field) != std::string_view::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string document(reinterpret_cast<const char*>(data), size);
  (void)codec::ParseGraphqlRequest("POST", {}, {}, document);
  Result<GraphqlOperation> parsed = codec::ParseGraphqlDocument(document, "");
  if (!parsed.ok()) return 0;
  CheckOperation(parsed.value(), document);

  Result<GraphqlOperation> padded =
      codec::ParseGraphqlDocument("\xef\xbb\xbf,# { x }\n" + document + "\r,#", "");
  ENSURE(padded.ok() && Same(padded.value(), parsed.value()));

  codec::Json envelope;
  envelope.Set("query", codec::Json(document));
  Result<Operations> post =
      codec::ParseGraphqlRequest("POST", {}, {}, codec::RenderJsonLine(envelope));
  ENSURE(post.ok() && Same(post.value()[0], parsed.value()));
  Result<Operations> get = codec::ParseGraphqlRequest("GET", {}, {{"query", document}}, "");
  ENSURE(get.ok() && Same(get.value()[0], parsed.value()));
  return 0;
}
