// SPDX-License-Identifier: Apache-2.0
#include "forge/api_path.h"

#include <algorithm>

#include "codec/text/percent.h"

namespace forge {

ApiPath ApiPath::GraphQl() {
  ApiPath path;
  path.graphql_ = true;
  return path;
}

ApiPath ApiPath::Repository(std::string_view repository) {
  size_t slash = std::min(repository.find('/'), repository.size());
  return ApiPath() / "repos" / repository.substr(0, slash) /
         repository.substr(std::min(slash + 1, repository.size()));
}

ApiPath ApiPath::operator/(std::string_view segment) const {
  ApiPath longer = *this;
  longer.valid_ = valid_ && !segment.empty() && segment != "." && segment != "..";
  longer.path_ += "/" + codec::PercentEncode(segment);
  return longer;
}

ApiPath ApiPath::Below(std::string_view path) const {
  ApiPath longer = *this;
  for (size_t slash = 0; slash != std::string_view::npos;) {
    slash = path.find('/');
    longer = longer / path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return longer;
}

ApiPath ApiPath::Query(std::string_view name, std::string_view value) const {
  ApiPath longer = *this;
  longer.query_ += query_.empty() ? '?' : '&';
  ((longer.query_ += name) += '=') += codec::PercentEncode(value);
  return longer;
}

}  // namespace forge
