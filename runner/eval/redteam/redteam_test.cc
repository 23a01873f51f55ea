// SPDX-License-Identifier: Apache-2.0
#include "eval/redteam/redteam.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "policy/model/credential_places.h"

namespace redteam {
namespace {

TEST_CASE("CredentialFiles names every place that is to be tried, and no directory") {
  const std::vector<std::string> files = CredentialFiles("/home/me");
  CHECK(std::count(files.begin(), files.end(), "/home/me/.ssh/id_rsa") == 1);
  CHECK(std::count(files.begin(), files.end(), "/home/me/.ssh") == 0);
  CHECK(std::count(files.begin(), files.end(), "/etc/krb5.keytab") == 1);
  const auto tried = [](const policy::CredentialPlace& place) {
    return (place.uses & policy::kProbe) != 0;
  };
  CHECK(static_cast<int>(files.size()) ==
        std::count_if(policy::kCredentialPlaces.begin(), policy::kCredentialPlaces.end(), tried));
}

TEST_CASE("CredentialFiles without a home are those of the host") {
  const std::vector<std::string> files = CredentialFiles("");
  CHECK_FALSE(files.empty());
  CHECK(std::all_of(files.begin(), files.end(), [](const std::string& file) {
    return file.starts_with("/etc/") || file.starts_with("/var/");
  }));
}

}  // namespace
}  // namespace redteam
