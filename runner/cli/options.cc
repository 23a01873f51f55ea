// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <algorithm>

#include "agent/harness.h"
#include "backend/open/open.h"
#include "base/ascii.h"
#include "codec/text/quantity.h"
#include "gateway/credential/provider.h"
#include "image/source/reference.h"

namespace cli {
namespace {

constexpr size_t kHostBytesMax = 253;  // RFC 1035, 2.3.4, without the last dot.

bool IsHostName(std::string_view host) {
  auto fits = [](char c) { return ascii::IsLower(c) || ascii::IsDigit(c) || c == '-' || c == '.'; };
  return !host.empty() && host.size() <= kHostBytesMax && host.front() != '.' &&
         host.back() != '.' && host.find("..") == std::string_view::npos &&
         std::all_of(host.begin(), host.end(), fits);
}

template <typename T>
Status Store(Result<T> parsed, T run::Request::*member, run::Request* request) {
  request->*member = TRY(std::move(parsed));
  return Ok();
}

Status Set(const Text& field, std::string_view text, run::Request* request) {
  if (text.empty()) return Usage("the value is empty");
  if (text.find('\0') != std::string_view::npos) return Usage("the value has a null byte");
  request->*field.member = std::string(text);
  return Ok();
}

Status Set(const Duration& field, std::string_view text, run::Request* request) {
  int64_t seconds = TRY(codec::ParseDuration(text));
  if (seconds == 0 && !field.may_be_off) return Usage("the minimum is 1s");
  request->*field.member = seconds;
  return Ok();
}

Status Set(const Size& field, std::string_view text, run::Request* request) {
  if (field.may_be_off && text == "off") {
    request->*field.member = 0;
    return Ok();
  }
  const int64_t bytes = TRY(codec::ParseSize(text));
  if (bytes < field.least) return Usage("the minimum is " + codec::RenderSize(field.least));
  request->*field.member = bytes;
  return Ok();
}

Status Set(const Count& field, std::string_view text, run::Request* request) {
  return Store(codec::ParseCount(text), field.member, request);
}

Status Set(const Cpus& field, std::string_view text, run::Request* request) {
  return Store(codec::ParseCpus(text), field.member, request);
}

Status Set(const Dollars& field, std::string_view text, run::Request* request) {
  return Store(codec::ParseDollars(text), field.member, request);
}

Status Set(const Switch& field, std::string_view text, run::Request* request) {
  if (text != "true" && text != "false") return Usage("must be true or false");
  request->*field.member = text == "true";
  return Ok();
}

Status Set(const Tier&, std::string_view text, run::Request* request) {
  for (sandbox::Isolation tier : {sandbox::Isolation::kNamespaces, sandbox::Isolation::kLandlock}) {
    request->isolation = tier;
    if (text == TextOf(tier)) return Ok();
  }
  return Usage(std::string(text) + " is not a tier", "--isolation landlock");
}

Status Set(const Backend&, std::string_view text, run::Request* request) {
  if (const backend::Row* row = backend::FindRow(text)) {
    request->backend = row->runs;
    return Ok();
  }
  // The Python agentic-ci has these two.
  return Usage(std::string(text) + " is not a backend", text == "local"    ? "--isolation landlock"
                                                        : text == "podman" ? "--image REF"
                                                                           : "--backend openshell");
}

// NAME[=VARIABLE]@HOST. A value is never given here: command lines are seen by everyone.
Status Set(const Secrets& field, std::string_view text, run::Request* request) {
  constexpr std::string_view kForm = "NAME@HOST or NAME=VARIABLE@HOST";
  constexpr std::string_view kExample = "--secret ANTHROPIC_API_KEY@api.anthropic.com";
  size_t at = text.rfind('@');
  if (at == std::string_view::npos) {
    return Usage("a credential must be bound to a host: " + std::string(kForm),
                 std::string(kExample));
  }
  std::string_view names = text.substr(0, at);
  size_t equals = names.find('=');
  std::string_view name = names.substr(0, equals);
  std::string_view variable = equals == std::string_view::npos ? name : names.substr(equals + 1);
  std::string host = ascii::LowerCase(text.substr(at + 1));
  if (!ascii::IsVariableName(name) || !ascii::IsVariableName(variable)) {
    return Usage("NAME and VARIABLE must be names of environment variables: " + std::string(kForm),
                 std::string(kExample));
  }
  if (!IsHostName(host)) return Usage("HOST must be a single host name: " + std::string(kForm));
  for (const run::SecretBinding& other : request->*field.member) {
    if (other.name == name && other.host == host) {
      return Usage(std::string(name) + " is bound to " + host + " twice");
    }
  }
  (request->*field.member).push_back({std::string(name), std::string(variable), host});
  return Ok();
}

// KEY=VALUE,KEY=VALUE.
Result<std::vector<std::pair<std::string, std::string>>> ParseIdentity(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> values;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    const size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      return Usage("an identity must be given as NAME:KEY=VALUE,...",
                   "--provider anthropic:federation_rule=fdrl_...,organization=...");
    }
    values.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
  }
  return values;
}

// NAME[=VARIABLE], or NAME:KEY=VALUE,...
Status Set(const Providers& field, std::string_view text, run::Request* request) {
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos && colon < text.find('=')) {
    auto identity = TRY(ParseIdentity(text.substr(colon + 1)));
    TRY(Set(field, text.substr(0, colon), request));
    if (identity.empty()) return Usage("an identity needs values: NAME:KEY=VALUE,...");
    run::ProviderBinding& binding = (request->*field.member).back();
    gateway::Provider provider = TRY(gateway::FindProvider(binding.name));
    if (!provider.identity) return Usage(binding.name + " takes no identity of a job");
    TRY(gateway::CheckIdentity(binding.name, *provider.identity, identity));
    binding.identity = std::move(identity);
    return Ok();
  }
  size_t equals = text.find('=');
  std::string_view name = text.substr(0, equals);
  std::string_view variable = equals == std::string_view::npos ? "" : text.substr(equals + 1);
  bool named = equals == std::string_view::npos || ascii::IsVariableName(variable);
  if (name.empty() || !named) {
    return Usage("a provider must be given as NAME or NAME=VARIABLE", "--provider anthropic");
  }
  for (const run::ProviderBinding& other : request->*field.member) {
    if (other.name == name) return Usage(std::string(name) + " is given twice");
  }
  (request->*field.member).push_back({std::string(name), std::string(variable)});
  return Ok();
}

Status Set(const Texts& field, std::string_view text, run::Request* request) {
  if (text.empty() || text.find('\0') != std::string_view::npos) {
    return Usage("the value is empty, or has a null byte");
  }
  (request->*field.member).emplace_back(text);
  return Ok();
}

Status Set(const Variables& field, std::string_view text, run::Request* request) {
  size_t equals = text.find('=');
  if (equals == std::string_view::npos || !ascii::IsVariableName(text.substr(0, equals))) {
    return Usage("a variable must be given as NAME=VALUE", "--env LANG=C.UTF-8");
  }
  (request->*field.member)
      .emplace_back(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
  return Ok();
}

Status SetField(const RunOption& option, std::string_view text, run::Request* request) {
  return std::visit([&](const auto& field) { return Set(field, text, request); }, option.field);
}

// Accepts any well-formed name: the configuration, which may describe more agents than are built
// in, says whether there is such an agent.
Status CheckAgent(const std::string& name) {
  if (agent::IsAgentName(name)) return Ok();
  return Usage("an agent's name consists of a-z, 0-9 and '-'", "--agent claude-code");
}

Status CheckFailOn(const std::string& severity) {
  if (severity == "error" || severity == "warning" || severity == "never") return Ok();
  return Usage("'" + severity + "' is not error, warning or never", "--fail-on error");
}

Status SetTaskOption(std::string_view name, std::string_view text, run::Request* request) {
  const auto* option = std::find_if(kRunOptions.begin(), kRunOptions.end(),
                                    [&](const RunOption& one) { return one.spec.name == name; });
  ENSURE(option != kRunOptions.end());  // Tasks name options of the table only.
  TRY(SetField(*option, text, request));
  if (name == "agent") return CheckAgent(request->agent);
  if (name == "fail-on") return CheckFailOn(request->fail_on);
  if (name == "image") TRY(image::ParseReference(request->image));
  if (name == "provider") TRY(gateway::FindProvider(request->providers.back().name));
  return Ok();
}

Status CheckBackend(const run::Request& request) {
  if (!request.backend.local) {
    if (!request.approval_mode.empty() && request.approval_mode != "manual" &&
        request.approval_mode != "auto") {
      return Usage("--approval-mode: " + request.approval_mode + " is not a mode",
                   "--approval-mode manual");
    }
    if (request.gateway_tls.empty() || !request.gateway.empty()) return Ok();
    return Usage("--gateway-tls needs a gateway", "--gateway https://...");
  }
  for (const auto& [name, value] :
       {std::pair("gateway", &request.gateway), std::pair("gateway-tls", &request.gateway_tls),
        std::pair("approval-mode", &request.approval_mode)}) {
    if (value->empty()) continue;
    return Usage("--" + std::string(name) + " needs OpenShell", "--backend openshell");
  }
  if (request.gateway_providers.empty()) return Ok();
  return Usage("--gateway-provider needs OpenShell", "--backend openshell");
}

}  // namespace

const run::OptionRules& TaskOptionRules() {
  static const run::OptionRules kRules = {SetTaskOption, CheckRequest};
  return kRules;
}

Error Usage(std::string what, std::string hint) {
  return {Code::kUsage, std::move(what), std::move(hint)};
}

run::Request DefaultRequest() {
  run::Request request;
  for (const RunOption& option : kRunOptions) {
    if (!option.spec.fallback.empty()) {
      ENSURE(SetOption(option, option.spec.fallback, &request).ok());
    }
  }
  return request;
}

Status SetOption(const RunOption& option, std::string_view text, run::Request* request) {
  Status status = SetField(option, text, request);
  if (status.ok()) return Ok();
  Error error = std::move(status).error();
  error.code = Code::kUsage;
  error.what = "--" + std::string(option.spec.name) + ": " + error.what;
  return error;
}

Status CheckRequest(const run::Request& request) {
  if (!request.prompt.empty() && !request.prompt_file.empty()) {
    return Usage("--prompt and --prompt-file are mutually exclusive");
  }
  bool signer = !request.image_key.empty() || !request.image_identity.empty() ||
                !request.image_issuer.empty() || !request.image_bundles.empty();
  if (signer && request.image.empty()) {
    return Usage("this option requires an image", "--image REF");
  }
  if (request.apply_ignored && !request.apply) {
    return Usage("--apply-ignored needs --apply", "--apply --apply-ignored");
  }
  TRY(CheckFailOn(request.fail_on).Context("--fail-on"));
  if (request.isolation == sandbox::Isolation::kLandlock && !request.image.empty()) {
    return Usage("--image needs --isolation namespaces");
  }
  TRY(CheckBackend(request));
  if (request.idle_timeout_s > request.timeout_s) {
    return Usage("--idle-timeout is longer than --timeout");
  }
  return Ok();
}

}  // namespace cli
