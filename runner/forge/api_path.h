// SPDX-License-Identifier: Apache-2.0
// The path of a request to a forge's API, segment by segment: what a report, an event or a forge
// says can be a segment or a value, and nothing else of an address.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace forge {

class ApiPath {
 public:
  // The API's root.
  ApiPath() = default;
  // Returns the one address of a forge's GraphQL.
  static ApiPath GraphQl();
  // Returns "/repos/OWNER/NAME" of "owner/name".
  static ApiPath Repository(std::string_view repository);

  // One segment more. Every byte that has a meaning in an address is escaped. An empty segment, "."
  // and "..", which no escape keeps from being resolved, make the path invalid.
  ApiPath operator/(std::string_view segment) const;
  ApiPath operator/(std::integral auto number) const { return *this / std::to_string(number); }
  // Appends each part of "a/b/c" as a segment.
  ApiPath Below(std::string_view path) const;
  // Appends a query's parameter, its value escaped.
  ApiPath Query(std::string_view name, std::string_view value) const;
  ApiPath Query(std::string_view name, std::integral auto value) const {
    return Query(name, std::to_string(value));
  }

  bool valid() const { return valid_; }
  bool graphql() const { return graphql_; }
  // Returns the text of the path: "/repos/acme/site/pulls?state=open".
  std::string text() const { return path_ + query_; }

 private:
  std::string path_;
  std::string query_;
  bool valid_ = true;
  bool graphql_ = false;
};

}  // namespace forge
