// SPDX-License-Identifier: Apache-2.0
#include "run/registry_sources.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/process.h"
#include "base/sys.h"
#include "net/http_client.h"

namespace run {
namespace {

constexpr std::chrono::seconds kAskTimeout{20};  // Maven, on a machine with much to do.
constexpr std::chrono::seconds kFetchTimeout{10};
constexpr size_t kAnswerBytesMax = 65536;
constexpr size_t kLockBytesMax = size_t{32} << 20;
// Nothing listens there: what a tool cannot answer from what it knows, it fails to fetch, and says
// from where.
constexpr char kNowhere[] = "http://127.0.0.1:9";

std::string FindProgram(const std::string& name, const std::string& search_path) {
  for (size_t begin = 0; begin <= search_path.size();) {
    size_t end = std::min(search_path.find(':', begin), search_path.size());
    std::string path = search_path.substr(begin, end - begin) + "/" + name;
    if (path.front() == '/' && ::access(path.c_str(), X_OK) == 0) return path;
    begin = end + 1;
  }
  return {};
}

// Empty, and not the checkout, whose files would tell the tools what to say.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = "/var/tmp/agentic-ci-ask-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;  // What is left is not worth failing for.
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The tools, started together: each takes a part of a second, most of it waiting.
class Tools {
 public:
  Tools(const std::vector<Ecosystem>& ecosystems, const std::string& search_path,
        const std::string& directory)
      : deadline_(Deadline::After(kAskTimeout)) {
    std::string home = sys::Environment("HOME").value_or("/");
    for (const Ecosystem& ecosystem : ecosystems) {
      for (const Ecosystem::Ask& ask : ecosystem.asks) {
        std::string program = FindProgram(ask.program, search_path);
        if (program.empty()) continue;
        Process::Command command;
        command.argv = ask.arguments;
        command.argv.insert(command.argv.begin(), program);
        command.directory = directory;
        command.environment = {{"PATH", search_path},     {"HOME", home},
                               {"LANG", "C.UTF-8"},       {"HTTPS_PROXY", kNowhere},
                               {"https_proxy", kNowhere}, {"HTTP_PROXY", kNowhere},
                               {"http_proxy", kNowhere},  {"CARGO_NET_RETRY", "0"},
                               {"NO_COLOR", "1"},         {"CI", "true"}};
        Result<Process> started = Process::Start(command);
        if (started.ok()) running_.emplace(Key(ask), std::move(started).value());
      }
    }
  }

  std::string Answer(const Ecosystem::Ask& ask) {
    auto found = running_.find(Key(ask));
    return found == running_.end() ? "" : found->second.Finish(kAnswerBytesMax, deadline_);
  }

 private:
  static std::string Key(const Ecosystem::Ask& ask) {
    std::string key = ask.program;
    for (const std::string& argument : ask.arguments) key += '\0' + argument;
    return key;
  }

  Deadline deadline_;
  std::map<std::string, Process> running_;
};

std::optional<std::string> Fetch(const std::string& url, const std::string& ca_file) {
  net::HttpClientOptions options;
  options.ca_file = ca_file;
  options.response_bytes_max = kAnswerBytesMax;
  Result<net::HttpClient> client = net::HttpClient::Create(options);
  if (!client.ok()) return std::nullopt;
  net::HttpRequest request;
  request.url = url;
  Result<net::HttpResponse> response = client.value().Send(request, Deadline::After(kFetchTimeout));
  if (!response.ok() || response.value().status != 200) return std::nullopt;
  return std::move(response.value().body);
}

}  // namespace

Status AddEcosystems(const EcosystemRequest& request, policy::Policy* policy) {
  std::vector<Ecosystem> ecosystems = TRY(FindEcosystems(request.names));
  TemporaryDirectory directory;
  if (directory.path().empty()) return Errno("mkdtemp");
  Tools tools(ecosystems, request.search_path, directory.path());
  RegistrySources sources;
  sources.ask = [&](const Ecosystem::Ask& ask) { return tools.Answer(ask); };
  sources.read = [&](const std::string& path) -> std::optional<std::string> {
    Result<TrustedFile> file =
        ReadTrustedFile(request.repository, request.checkout, request.ref, path, kLockBytesMax);
    return file.ok() ? std::move(file.value().text) : std::nullopt;
  };
  sources.fetch = [&](const std::string& url) { return Fetch(url, request.ca_file); };
  for (const Ecosystem& ecosystem : ecosystems) {
    std::vector<Registry> registries = FindRegistries(ecosystem, sources);
    std::optional<policy::NetworkPolicy> network =
        EcosystemPolicy(ecosystem.name, registries, request.binaries);
    if (!network) {
      return Error{Code::kSetup,
                   "no registry is known for the ecosystem '" + ecosystem.name +
                       "': none of its tools is installed, and no lock file names one"};
    }
    for (const Registry& registry : registries) {
      logging::Info(
          "registry opened",
          {{"ecosystem", ecosystem.name}, {"host", registry.host}, {"access", "read-only"}});
    }
    policy->network.push_back(std::move(*network));
  }
  std::sort(
      policy->network.begin(), policy->network.end(),
      [](const policy::NetworkPolicy& a, const policy::NetworkPolicy& b) { return a.key < b.key; });
  return Ok();
}

}  // namespace run
