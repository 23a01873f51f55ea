// SPDX-License-Identifier: Apache-2.0
#include "run/ecosystem/ecosystem.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "codec/data/embedded_file.h"
#include "codec/data/json.h"
#include "codec/data/yaml_fields.h"
#include "codec/text/nearest.h"
#include "policy/load/parse.h"
#include "policy/model/access.h"
#include "policy/model/destination.h"
#include "policy/model/host_pattern.h"

namespace run {

std::span<const codec::EmbeddedFile> EmbeddedEcosystems();

namespace {

using codec::YamlFields;
using codec::YamlNode;

constexpr std::string_view kHttps = "https://";
constexpr std::string_view kHttp = "http://";
constexpr uint16_t kHttpPort = 80;

Result<Ecosystem::Ask> ReadAsk(const std::string& file, const YamlNode& node) {
  YamlFields fields = TRY(YamlFields::Open(file, node, "an entry of 'ask'",
                                           {"program", "arguments", "files", "bare", "then"}));
  Ecosystem::Ask ask;
  ask.program = TRY(fields.RequiredText("program"));
  ask.arguments = TRY(fields.Texts("arguments"));
  ask.files = TRY(fields.Texts("files"));
  ask.bare = TRY(fields.Boolean("bare", false));
  if (const YamlNode* node_then = fields.Find("then")) {
    YamlFields then = TRY(YamlFields::Open(file, *node_then, "then", {"path", "member"}));
    ask.then_path = TRY(then.RequiredText("path"));
    ask.then_member = TRY(then.RequiredText("member"));
  }
  return ask;
}

Result<Ecosystem> ReadEcosystem(const std::string& file, const YamlNode& node) {
  YamlFields fields = TRY(YamlFields::Open(
      file, node, "an ecosystem", {"name", "ask", "locks", "encoded_slash", "plain", "system"}));
  Ecosystem ecosystem;
  ecosystem.name = TRY(fields.RequiredText("name"));
  if (const YamlNode* asks = TRY(fields.List("ask"))) {
    for (const YamlNode& item : asks->items) ecosystem.asks.push_back(TRY(ReadAsk(file, item)));
  }
  ecosystem.encoded_slash = TRY(fields.Boolean("encoded_slash", false));
  ecosystem.plain = TRY(fields.Boolean("plain", false));
  ecosystem.system = TRY(fields.Boolean("system", false));
  if (const YamlNode* locks = TRY(fields.List("locks"))) {
    for (const YamlNode& item : locks->items) {
      YamlFields lock =
          TRY(YamlFields::Open(file, item, "an entry of 'locks'", {"file", "behind"}));
      ecosystem.locks.push_back({TRY(lock.RequiredText("file")), TRY(lock.Texts("behind"))});
    }
  }
  return ecosystem;
}

bool IsHostByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-';
}

// "host" or "host:port" at the start of `text`; nothing for what no registry is called.
std::optional<Registry> RegistryAt(std::string_view text, uint16_t port = Registry().port) {
  size_t end = 0;
  while (end < text.size() && IsHostByte(text[end])) ++end;
  Registry registry;
  registry.port = port;
  registry.host = policy::CanonicalHost(text.substr(0, end));
  if (end < text.size() && text[end] == ':') {
    const char* begin = text.data() + end + 1;
    std::from_chars_result parsed =
        std::from_chars(begin, text.data() + text.size(), registry.port);
    if (parsed.ec != std::errc() || registry.port == 0) return std::nullopt;
  }
  bool named = registry.host.find('.') != std::string::npos &&
               policy::HostFault(registry.host).empty() && !registry.host.ends_with(".localhost");
  if (!named || policy::ParseAddress(registry.host).has_value()) return std::nullopt;
  return registry;
}

class Finder {
 public:
  explicit Finder(const RegistrySources& sources) : sources_(sources) {}

  void TakeAsk(const Ecosystem::Ask& ask, bool plain) {
    std::string output = sources_.ask(ask);
    for (size_t at = output.find(kHttp); plain && at != std::string::npos;
         at = output.find(kHttp, at + kHttp.size())) {
      Add(RegistryAt(std::string_view(output).substr(at + kHttp.size()), kHttpPort));
    }
    for (size_t at = output.find(kHttps); at != std::string::npos;
         at = output.find(kHttps, at + kHttps.size())) {
      std::string_view rest = std::string_view(output).substr(at + kHttps.size());
      if (Add(RegistryAt(rest)) && !ask.then_path.empty()) {
        Follow(ask, output.substr(at, output.find('/', at + kHttps.size()) - at));
      }
    }
    if (ask.bare) TakeWords(output);
  }

  void TakeLock(const Ecosystem::Lock& lock) {
    std::optional<std::string> text = sources_.read(lock.file);
    if (!text) return;
    for (const std::string& marker : lock.behind) {
      for (size_t at = text->find(marker); at != std::string::npos;
           at = text->find(marker, at + marker.size())) {
        TakeUrl(std::string_view(*text).substr(at + marker.size()));
      }
    }
  }

  std::vector<Registry> Take() { return std::move(found_); }

 private:
  // Returns false if it was known already, or is not a registry.
  bool Add(const std::optional<Registry>& registry) {
    if (!registry || found_.size() > kRegistriesMax ||
        std::find(found_.begin(), found_.end(), *registry) != found_.end()) {
      return false;
    }
    found_.push_back(*registry);
    return true;
  }

  void TakeUrl(std::string_view text) {
    // Java's property files escape the colon.
    for (std::string_view scheme : {kHttps, std::string_view("https\\://")}) {
      if (text.starts_with(scheme)) Add(RegistryAt(text.substr(scheme.size())));
    }
  }

  void TakeWords(std::string_view output) {
    while (!output.empty()) {
      size_t end = std::min(output.find_first_of(" \t\r\n,"), output.size());
      if (end > 0) Add(RegistryAt(output.substr(0, end)));
      output.remove_prefix(std::min(end + 1, output.size()));
    }
  }

  void Follow(const Ecosystem::Ask& ask, const std::string& base) {
    std::optional<std::string> document = sources_.fetch(base + ask.then_path);
    if (!document) return;
    Result<codec::Json> json = codec::ParseJson(*document);
    if (json.ok()) TakeUrl(json.value().StringAt(ask.then_member));
  }

  const RegistrySources& sources_;
  std::vector<Registry> found_;
};

}  // namespace

std::vector<Ecosystem> KnownEcosystems() {
  std::vector<Ecosystem> known;
  for (const codec::EmbeddedFile& file : EmbeddedEcosystems()) {
    Result<YamlNode> root = codec::ParseYaml(file.text, std::string(file.path));
    ENSURE(root.ok());
    for (const YamlNode& item : root.value().Find("ecosystems")->items) {
      Result<Ecosystem> ecosystem = ReadEcosystem(std::string(file.path), item);
      ENSURE(ecosystem.ok());
      known.push_back(std::move(ecosystem).value());
    }
  }
  return known;
}

Result<std::vector<Ecosystem>> FindEcosystems(const std::vector<std::string>& names) {
  if (names.empty()) return std::vector<Ecosystem>();  // Reading the catalogue takes milliseconds.
  std::vector<Ecosystem> known = KnownEcosystems();
  std::vector<std::string_view> all;
  std::string list;
  for (const Ecosystem& ecosystem : known) {
    all.push_back(ecosystem.name);
    list += (list.empty() ? "" : ", ") + ecosystem.name;
  }
  std::vector<Ecosystem> found;
  for (const std::string& name : names) {
    auto match = std::find_if(known.begin(), known.end(),
                              [&](const Ecosystem& ecosystem) { return ecosystem.name == name; });
    if (match == known.end()) {
      return Error{Code::kInvalid, "unknown ecosystem '" + name + "'; known ecosystems: " + list,
                   codec::NearestName(name, all)};
    }
    found.push_back(*match);
  }
  return found;
}

Result<bool> ChangesSystem(const std::vector<std::string>& names) {
  const std::vector<Ecosystem> found = TRY(FindEcosystems(names));
  return std::any_of(found.begin(), found.end(), [](const Ecosystem& one) { return one.system; });
}

std::vector<Registry> FindRegistries(const Ecosystem& ecosystem, const RegistrySources& sources) {
  Finder finder(sources);
  for (const Ecosystem::Ask& ask : ecosystem.asks) finder.TakeAsk(ask, ecosystem.plain);
  for (const Ecosystem::Lock& lock : ecosystem.locks) finder.TakeLock(lock);
  return finder.Take();
}

std::optional<policy::NetworkPolicy> EcosystemPolicy(const Ecosystem& ecosystem,
                                                     const std::vector<Registry>& registries) {
  if (registries.empty()) return std::nullopt;
  policy::NetworkPolicy network;
  network.key = "ecosystem_" + ecosystem.name;
  network.name = network.key;
  network.binaries = {std::string(policy::kAgentPrograms)};
  for (const Registry& registry : registries) {
    policy::Endpoint endpoint;
    endpoint.host = registry.host;
    endpoint.ports = {registry.port};
    endpoint.protocol = policy::Protocol::kRest;
    endpoint.access = policy::Access::kReadOnly;
    endpoint.allow_encoded_slash = ecosystem.encoded_slash;
    endpoint.rules = policy::ExpandAccess(endpoint.protocol, endpoint.access, {});
    network.endpoints.push_back(std::move(endpoint));
  }
  return network;
}

}  // namespace run
