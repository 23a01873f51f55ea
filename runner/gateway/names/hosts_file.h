// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "policy/model/destination.h"

namespace gateway {

// The content of /etc/hosts: lower-case names and their addresses, in the file's order.
using HostsFile = std::map<std::string, std::vector<policy::Address>>;

// Lines that are not "address name..." are skipped, as every resolver does (hosts(5)).
HostsFile ParseHostsFile(std::string_view text);

}  // namespace gateway
