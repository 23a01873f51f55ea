// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/provider.h"

#include <algorithm>
#include <span>

#include "base/ascii.h"
#include "codec/data/embedded_file.h"
#include "codec/data/yaml_fields.h"
#include "codec/glob/glob.h"
#include "policy/model/host_pattern.h"

namespace gateway {

std::span<const codec::EmbeddedFile> EmbeddedProviders();

namespace {

using codec::YamlFields;
using codec::YamlKind;
using codec::YamlNode;

bool IsHeaderName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return ascii::IsLower(c) || ascii::IsDigit(c) || c == '-';
  });
}

Result<std::vector<std::string>> Variables(const YamlFields& fields, std::string_view key) {
  std::vector<std::string> names = TRY(fields.Texts(key));
  for (const std::string& name : names) {
    if (!ascii::IsVariableName(name))
      return fields.Invalid(key, "'" + name + "' is not a valid variable name");
  }
  return names;
}

Result<std::string> Variable(const YamlFields& fields, std::string_view key) {
  std::string name = TRY(fields.Text(key));
  if (!name.empty() && !ascii::IsVariableName(name)) {
    return fields.Invalid(key, "'" + name + "' is not a valid variable name");
  }
  return name;
}

// Returns at least one mapping.
Result<const std::vector<YamlNode>*> Mappings(const YamlFields& fields, std::string_view key) {
  const YamlNode* list = TRY(fields.List(key));
  if (list == nullptr || list->items.empty()) {
    return fields.Invalid(key, "'" + std::string(key) + "' must have at least one entry");
  }
  return &list->items;
}

Result<HeaderForm> ParseForm(const YamlFields& fields) {
  HeaderForm form;
  form.header = TRY(fields.Text("header"));
  form.scheme = TRY(fields.Text("scheme"));
  form.user = TRY(fields.Text("user"));
  if (form.header.empty() && !(form.scheme + form.user).empty()) {
    return fields.Invalid("scheme", "'scheme' and 'user' need a 'header'", "header: authorization");
  }
  if (!form.header.empty() && !IsHeaderName(form.header)) {
    return fields.Invalid("header", "a header name must be in lower case", "header: x-api-key");
  }
  if ((form.scheme == "Basic") != !form.user.empty()) {
    return fields.Invalid("user", "'user' and 'scheme: Basic' must be used together",
                          "scheme: Basic");
  }
  return form;
}

Result<ProviderCredential> ParseCredential(const std::string& file, const YamlNode& node) {
  YamlFields fields =
      TRY(YamlFields::Open(file, node, "a credential",
                           {"name", "from", "shown_as", "header", "scheme", "user", "type"}));
  ProviderCredential credential;
  TRY(fields.RequiredText("name"));
  credential.name = TRY(Variable(fields, "name"));
  credential.from = TRY(Variables(fields, "from"));
  if (credential.from.empty()) credential.from = {credential.name};
  credential.shown_as = TRY(Variables(fields, "shown_as"));
  credential.form = TRY(ParseForm(fields));
  credential.google = TRY(fields.Choice("type", {"google"})).has_value();
  bool shown = fields.Find("shown_as") != nullptr || credential.google;
  if (!shown) credential.shown_as = {credential.name};
  return credential;
}

Result<ProviderEndpoint> ParseEndpoint(const std::string& file, const YamlNode& node) {
  YamlFields fields = TRY(YamlFields::Open(
      file, node, "an endpoint", {"host", "port", "path", "base_url", "header", "scheme", "user"}));
  ProviderEndpoint endpoint;
  std::string host = TRY(fields.Text("host"));
  endpoint.base_url = TRY(Variable(fields, "base_url"));
  if (host.empty() && endpoint.base_url.empty()) {
    return fields.Invalid("host", "an endpoint needs a 'host' or a 'base_url'",
                          "host: api.example.com");
  }
  if (!host.empty()) endpoint.host = policy::CanonicalHost(host);
  std::string fault = endpoint.host.empty() ? "" : policy::HostFault(endpoint.host);
  if (!fault.empty()) return fields.Invalid("host", fault);
  endpoint.port = static_cast<uint16_t>(TRY(fields.Number("port", 443, 1, 65535)));
  endpoint.path = TRY(fields.Text("path"));
  if (!endpoint.path.empty() && endpoint.path.front() != '/' && endpoint.path != "**") {
    return fields.Invalid("path", "'path' must begin with '/' or be '**'", "path: /v1/**");
  }
  if (fields.Find("header") != nullptr) endpoint.form = TRY(ParseForm(fields));
  return endpoint;
}

Status ParseReplaced(const std::string& file, const YamlNode& node, Provider* provider) {
  YamlFields fields = TRY(YamlFields::Open(file, node, "replaces", {"headers", "query"}));
  provider->replaced_headers = TRY(fields.Texts("headers"));
  provider->replaced_query = TRY(fields.Texts("query"));
  for (const std::string& name : provider->replaced_headers) {
    if (!IsHeaderName(name)) {
      return fields.Invalid("headers", "a header name must be in lower case");
    }
  }
  return Ok();
}

Status ParseEnvironment(const std::string& file, const YamlNode& node, Provider* provider) {
  TRY(codec::CheckMapping(file, node, "environment"));
  for (const codec::YamlEntry& entry : node.entries) {
    if (!ascii::IsVariableName(entry.key) || entry.value.kind != YamlKind::kScalar) {
      return codec::InvalidAt(file, entry.at, "'environment' must map variables to text");
    }
    provider->environment.emplace_back(entry.key, entry.value.text);
  }
  return Ok();
}

}  // namespace

Result<Provider> ParseProvider(std::string_view text, const std::string& file) {
  YamlNode root = TRY(codec::ParseYaml(text, file));
  YamlFields fields =
      TRY(YamlFields::Open(file, root, "a provider",
                           {"provider", "about", "credentials", "endpoints", "replaces", "signing",
                            "bodies", "environment", "pass", "identity"}));
  Provider provider;
  provider.name = TRY(fields.RequiredText("provider"));
  provider.about = TRY(fields.Text("about"));
  const std::vector<YamlNode>* credentials = TRY(Mappings(fields, "credentials"));
  for (const YamlNode& node : *credentials) {
    provider.credentials.push_back(TRY(ParseCredential(file, node)));
  }
  const std::vector<YamlNode>* endpoints = TRY(Mappings(fields, "endpoints"));
  for (const YamlNode& node : *endpoints) {
    provider.endpoints.push_back(TRY(ParseEndpoint(file, node)));
  }
  if (const YamlNode* replaces = fields.Find("replaces")) {
    TRY(ParseReplaced(file, *replaces, &provider));
  }
  if (const YamlNode* environment = fields.Find("environment")) {
    TRY(ParseEnvironment(file, *environment, &provider));
  }
  provider.signing_service = TRY(fields.Text("signing"));
  provider.passed = TRY(Variables(fields, "pass"));
  if (const YamlNode* identity = fields.Find("identity")) {
    provider.identity = TRY(ParseProviderIdentity(file, *identity));
    for (const std::string& name : provider.identity->credentials) {
      const bool known = std::any_of(provider.credentials.begin(), provider.credentials.end(),
                                     [&](const auto& one) { return one.name == name; });
      if (!known) return fields.Invalid("identity", "no credential is called '" + name + "'");
    }
  }
  provider.bodies_pass = TRY(fields.Choice("bodies", {"search", "pass"})) == 1U;
  return provider;
}

std::vector<std::string> ProviderNames() {
  std::vector<std::string> names;
  for (const codec::EmbeddedFile& file : EmbeddedProviders()) {
    std::string_view name = file.path.substr(file.path.rfind('/') + 1);
    names.emplace_back(name.substr(0, name.rfind('.')));
  }
  return names;
}

Result<Provider> FindProvider(std::string_view name) {
  std::string list;
  for (const codec::EmbeddedFile& file : EmbeddedProviders()) {
    std::string_view base = file.path.substr(file.path.rfind('/') + 1);
    base = base.substr(0, base.rfind('.'));
    if (base == name) return ParseProvider(file.text, std::string(file.path));
    list.append(list.empty() ? "" : ", ").append(base);
  }
  return Error{Code::kNotFound, "unknown provider '" + std::string(name) + "'", "one of " + list};
}

}  // namespace gateway
