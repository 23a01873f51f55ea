// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/provider.h"

#include <algorithm>
#include <initializer_list>
#include <span>

#include "base/ascii.h"
#include "codec/data/embedded_file.h"
#include "codec/data/yaml.h"
#include "codec/glob/glob.h"
#include "codec/text/nearest.h"
#include "policy/model/host_pattern.h"

namespace gateway {

std::span<const codec::EmbeddedFile> EmbeddedProviders();

namespace {

using codec::YamlKind;
using codec::YamlNode;

// POSIX.1-2017, 8.1.
bool IsVariableName(std::string_view name) {
  auto letter = [](char c) { return ascii::IsAlpha(c) || c == '_'; };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || ascii::IsDigit(c); });
}

bool IsHeaderName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return ascii::IsLower(c) || ascii::IsDigit(c) || c == '-';
  });
}

// One mapping of a provider's file. Borrows the node.
class Section {
 public:
  static Result<Section> Open(const std::string& file, const YamlNode& node,
                              std::initializer_list<std::string_view> keys) {
    if (node.kind != YamlKind::kMapping) {
      return codec::InvalidAt(file, node.at,
                              "expected a mapping, not " + std::string(DescribeKind(node)));
    }
    for (const codec::YamlEntry& entry : node.entries) {
      if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) continue;
      std::string nearest = codec::NearestName(entry.key, {keys.begin(), keys.end()});
      return codec::InvalidAt(file, entry.at, "unknown key \"" + entry.key + "\"", nearest);
    }
    return Section(file, node);
  }

  Error Invalid(std::string_view key, std::string_view what, std::string_view hint = {}) const {
    const YamlNode* value = node_->Find(key);
    return codec::InvalidAt(*file_, value == nullptr ? node_->at : value->at, what, hint);
  }

  Result<std::string> Text(std::string_view key) const {
    const YamlNode* value = node_->Find(key);
    if (value == nullptr) return std::string();
    if (value->kind != YamlKind::kScalar) return Invalid(key, std::string(key) + " must be text");
    return value->text;
  }

  Result<std::vector<std::string>> Texts(std::string_view key) const {
    std::vector<std::string> texts;
    const YamlNode* value = node_->Find(key);
    if (value == nullptr) return texts;
    if (value->kind != YamlKind::kSequence)
      return Invalid(key, std::string(key) + " must be a list");
    for (const YamlNode& item : value->items) {
      if (item.kind != YamlKind::kScalar) return codec::InvalidAt(*file_, item.at, "expected text");
      texts.push_back(item.text);
    }
    return texts;
  }

  Result<std::vector<std::string>> Variables(std::string_view key) const {
    std::vector<std::string> names = TRY(Texts(key));
    for (const std::string& name : names) {
      if (!IsVariableName(name))
        return Invalid(key, "\"" + name + "\" is not a valid variable name");
    }
    return names;
  }

  Result<std::string> Variable(std::string_view key) const {
    std::string name = TRY(Text(key));
    if (!name.empty() && !IsVariableName(name)) {
      return Invalid(key, "\"" + name + "\" is not a valid variable name");
    }
    return name;
  }

  const YamlNode* Find(std::string_view key) const { return node_->Find(key); }

  // At least one mapping.
  Result<const std::vector<YamlNode>*> Mappings(std::string_view key) const {
    const YamlNode* value = node_->Find(key);
    if (value == nullptr || value->kind != YamlKind::kSequence || value->items.empty()) {
      return Invalid(key, std::string(key) + " must be a list of at least one mapping");
    }
    return &value->items;
  }

 private:
  Section(const std::string& file, const YamlNode& node) : file_(&file), node_(&node) {}
  const std::string* file_;
  const YamlNode* node_;
};

Result<HeaderForm> ParseForm(const Section& section) {
  HeaderForm form;
  form.header = TRY(section.Text("header"));
  form.scheme = TRY(section.Text("scheme"));
  form.user = TRY(section.Text("user"));
  if (form.header.empty() && !(form.scheme + form.user).empty()) {
    return section.Invalid("scheme", "scheme and user need a header", "header: authorization");
  }
  if (!form.header.empty() && !IsHeaderName(form.header)) {
    return section.Invalid("header", "a header name must be in lower case", "header: x-api-key");
  }
  if ((form.scheme == "Basic") != !form.user.empty()) {
    return section.Invalid("user", "'user' and 'scheme: Basic' must be used together",
                           "scheme: Basic");
  }
  return form;
}

Result<ProviderCredential> ParseCredential(const std::string& file, const YamlNode& node) {
  Section section = TRY(
      Section::Open(file, node, {"name", "from", "shown_as", "header", "scheme", "user", "type"}));
  ProviderCredential credential;
  credential.name = TRY(section.Variable("name"));
  if (credential.name.empty()) return section.Invalid("name", "a credential needs a name");
  credential.from = TRY(section.Variables("from"));
  if (credential.from.empty()) credential.from = {credential.name};
  credential.shown_as = TRY(section.Variables("shown_as"));
  credential.form = TRY(ParseForm(section));
  std::string type = TRY(section.Text("type"));
  if (!type.empty() && type != "google") {
    return section.Invalid("type", "unknown type \"" + type + "\"", "type: google");
  }
  credential.google = type == "google";
  bool shown = section.Find("shown_as") != nullptr || credential.google;
  if (!shown) credential.shown_as = {credential.name};
  return credential;
}

Result<ProviderEndpoint> ParseEndpoint(const std::string& file, const YamlNode& node) {
  Section section = TRY(
      Section::Open(file, node, {"host", "port", "path", "base_url", "header", "scheme", "user"}));
  ProviderEndpoint endpoint;
  std::string host = TRY(section.Text("host"));
  endpoint.base_url = TRY(section.Variable("base_url"));
  if (host.empty() && endpoint.base_url.empty()) {
    return section.Invalid("host", "an endpoint needs a host or a base_url",
                           "host: api.example.com");
  }
  if (!host.empty()) endpoint.host = policy::CanonicalHost(host);
  std::string fault = endpoint.host.empty() ? "" : policy::HostFault(endpoint.host);
  if (!fault.empty()) return section.Invalid("host", fault);
  if (const YamlNode* port = section.Find("port")) {
    std::optional<uint64_t> number = codec::YamlUnsigned(*port);
    if (!number.has_value() || *number < 1 || *number > 65535) {
      return section.Invalid("port", "a port must be a number from 1 to 65535", "port: 443");
    }
    endpoint.port = static_cast<uint16_t>(*number);
  }
  endpoint.path = TRY(section.Text("path"));
  if (!endpoint.path.empty() && endpoint.path.front() != '/' && endpoint.path != "**") {
    return section.Invalid("path", "a path must begin with /", "path: /v1/**");
  }
  if (section.Find("header") != nullptr) endpoint.form = TRY(ParseForm(section));
  return endpoint;
}

Status ParseReplaced(const std::string& file, const YamlNode& node, Provider* provider) {
  Section section = TRY(Section::Open(file, node, {"headers", "query"}));
  provider->replaced_headers = TRY(section.Texts("headers"));
  provider->replaced_query = TRY(section.Texts("query"));
  for (const std::string& name : provider->replaced_headers) {
    if (!IsHeaderName(name)) {
      return section.Invalid("headers", "a header name must be in lower case");
    }
  }
  return Ok();
}

Status ParseEnvironment(const std::string& file, const YamlNode& node, Provider* provider) {
  if (node.kind != YamlKind::kMapping) {
    return codec::InvalidAt(file, node.at, "environment must be a mapping");
  }
  for (const codec::YamlEntry& entry : node.entries) {
    if (!IsVariableName(entry.key) || entry.value.kind != YamlKind::kScalar) {
      return codec::InvalidAt(file, entry.at, "environment must map variables to text");
    }
    provider->environment.emplace_back(entry.key, entry.value.text);
  }
  return Ok();
}

}  // namespace

Result<Provider> ParseProvider(std::string_view text, const std::string& file) {
  YamlNode root = TRY(codec::ParseYaml(text, file));
  Section section = TRY(Section::Open(file, root,
                                      {"provider", "about", "credentials", "endpoints", "replaces",
                                       "signing", "bodies", "environment", "pass"}));
  Provider provider;
  provider.name = TRY(section.Text("provider"));
  if (provider.name.empty()) return section.Invalid("provider", "a provider needs a name");
  provider.about = TRY(section.Text("about"));
  const std::vector<YamlNode>* credentials = TRY(section.Mappings("credentials"));
  for (const YamlNode& node : *credentials) {
    provider.credentials.push_back(TRY(ParseCredential(file, node)));
  }
  const std::vector<YamlNode>* endpoints = TRY(section.Mappings("endpoints"));
  for (const YamlNode& node : *endpoints) {
    provider.endpoints.push_back(TRY(ParseEndpoint(file, node)));
  }
  if (const YamlNode* replaces = section.Find("replaces")) {
    TRY(ParseReplaced(file, *replaces, &provider));
  }
  if (const YamlNode* environment = section.Find("environment")) {
    TRY(ParseEnvironment(file, *environment, &provider));
  }
  provider.signing_service = TRY(section.Text("signing"));
  provider.passed = TRY(section.Variables("pass"));
  std::string bodies = TRY(section.Text("bodies"));
  if (!bodies.empty() && bodies != "pass" && bodies != "search") {
    return section.Invalid("bodies", "bodies must be 'search' or 'pass'", "bodies: search");
  }
  provider.bodies_pass = bodies == "pass";
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
  return Error{Code::kNotFound, "unknown provider \"" + std::string(name) + "\"", "one of " + list};
}

}  // namespace gateway
