// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/client/rpc_policy.h"

#include <utility>

#include "codec/text/neutral.h"

namespace openshell {
namespace {

using codec::Json;

constexpr size_t kRpcFieldBytesMax = 100;

// A matcher of one pattern is a text in a policy, and a message here.
Json MatcherOf(const Json& value) {
  if (value.string() == nullptr) return value;
  Json matcher;
  matcher.Set("glob", *value.string());
  return matcher;
}

Json MatchMessage(const Json& match) {
  Json message = Json::EmptyObject();
  for (const auto& [name, value] : *match.object()) {
    if (name == "tool") {  // Another word for the parameter `name`.
      Json params;
      params.Set("name", MatcherOf(value));
      message.Set("params", std::move(params));
    } else if (name == "allow") {
      message.Set(name, MatchMessage(value));
    } else {
      message.Set(name, value);
    }
  }
  return message;
}

Json EndpointMessage(const Json& endpoint) {
  Json message = Json::EmptyObject();
  for (const auto& [name, value] : *endpoint.object()) {
    if (name == "rules" || name == "deny_rules") {
      Json rules = Json::EmptyArray();
      for (const Json& rule : *value.array()) rules.Push(MatchMessage(rule));
      message.Set(name, std::move(rules));
    } else if (name == "json_rpc" || name == "mcp") {
      Json rest = Json::EmptyObject();
      for (const auto& [key, option] : *value.object()) {
        if (key == "max_body_bytes") {
          message.Set("json_rpc_max_body_bytes", option);
        } else {
          rest.Set(key, option);
        }
      }
      if (name == "mcp") message.Set(name, std::move(rest));
    } else {
      message.Set(name, value);
    }
  }
  return message;
}

// What a person is shown of an endpoint: its hosts and ports, and all else that it says.
std::string EndpointText(const Json& endpoint) {
  std::string ports;
  for (const Json& port : ListOf(endpoint, "ports")) {
    ports += (ports.empty() ? "" : ",") + std::to_string(port.integer().value_or(0));
  }
  if (ports.empty()) ports = std::to_string(endpoint.IntegerAt("port"));
  Json rest = Json::EmptyObject();
  if (endpoint.object() != nullptr) {
    for (const auto& [name, value] : *endpoint.object()) {
      if (name != "host" && name != "port" && name != "ports") rest.Set(name, value);
    }
  }
  std::string text = endpoint.StringAt("host") + ":" + ports;
  if (!rest.object()->empty()) text += " " + codec::RenderJsonLine(rest);
  return text;
}

Proposal ProposalOf(const Json& chunk) {
  Proposal proposal;
  proposal.id = chunk.StringAt("id");
  proposal.status = NeutralMember(chunk, "status");
  const Json& rule = MemberOf(chunk, "proposed_rule");
  for (const Json& endpoint : ListOf(rule, "endpoints")) {
    proposal.endpoints += (proposal.endpoints.empty() ? "" : ", ") + EndpointText(endpoint);
  }
  for (const Json& binary : ListOf(rule, "binaries")) {
    proposal.binaries += (proposal.binaries.empty() ? "" : ", ") + binary.StringAt("path");
  }
  if (proposal.binaries.empty()) proposal.binaries = chunk.StringAt("binary");
  for (std::string* text : {&proposal.endpoints, &proposal.binaries}) {
    if (text->size() > kOpenedBytesMax) proposal.too_long = true;
    *text = codec::NeutralLine(*text, kOpenedBytesMax);
  }
  proposal.clear = !proposal.too_long && !proposal.endpoints.empty();
  if (!proposal.clear) proposal.endpoints = proposal.binaries = "";
  return proposal;
}

}  // namespace

const Json& MemberOf(const Json& json, const char* name) {
  static const Json kNull;
  const Json* member = json.Find(name);
  return member == nullptr ? kNull : *member;
}

const Json::Array& ListOf(const Json& json, const char* name) {
  static const Json::Array kEmpty;
  const Json* member = json.Find(name);
  return member == nullptr || member->array() == nullptr ? kEmpty : *member->array();
}

std::string NeutralMember(const Json& json, const char* name) {
  return codec::NeutralLine(json.StringAt(name), kRpcFieldBytesMax);
}

std::vector<Proposal> ProposalsOf(const Json& response) {
  std::vector<Proposal> all;
  for (const Json& chunk : ListOf(response, "chunks")) {
    if (IsProposalId(chunk.StringAt("id"))) all.push_back(ProposalOf(chunk));
  }
  return all;
}

Result<Json> PolicyMessage(const std::string& policy) {
  const Json json = TRY(codec::ParseJson(policy));
  Json message = Json::EmptyObject();
  for (const auto& [name, value] : *json.object()) {
    if (name != "network_policies") {
      message.Set(name, value);
      continue;
    }
    Json rules = Json::EmptyObject();
    for (const auto& [key, rule] : *value.object()) {
      Json one = Json::EmptyObject();
      for (const auto& [member, content] : *rule.object()) {
        if (member != "endpoints") {
          one.Set(member, content);
          continue;
        }
        Json endpoints = Json::EmptyArray();
        for (const Json& endpoint : *content.array()) endpoints.Push(EndpointMessage(endpoint));
        one.Set(member, std::move(endpoints));
      }
      rules.Set(key, std::move(one));
    }
    message.Set(name, std::move(rules));
  }
  return message;
}

}  // namespace openshell
