// SPDX-License-Identifier: Apache-2.0
#include "eval/run/remote_run.h"

#include <arpa/inet.h>

#include <charconv>
#include <chrono>
#include <string_view>

#include "base/deadline.h"
#include "base/sys.h"
#include "codec/text/nearest.h"
#include "eval/evidence/remote_record.h"
#include "eval/evidence/report_evidence.h"
#include "net/url.h"

namespace eval {
namespace {

constexpr uint32_t kPortMax = 65535;
constexpr char kListenExample[] = "--tools-listen 127.0.0.1:8082";

Error Usage(std::string what, std::string hint) {
  return {Code::kUsage, std::move(what), std::move(hint)};
}

// Parses ADDRESS[:PORT][/PATH].
Result<ToolAddress> ParseListen(const RemoteOptions& options) {
  ToolAddress address;
  if (options.tools_listen.empty()) return address;
  std::string_view text = options.tools_listen;
  const size_t slash = text.find('/');
  if (slash != text.npos) address.path = text.substr(slash);
  text = text.substr(0, slash);
  const size_t colon = text.find(':');
  address.ip = text.substr(0, colon);
  uint32_t port = 0;
  if (colon != text.npos) {
    const char* end = text.data() + text.size();
    auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
    if (error != std::errc() || stop != end || port == 0) port = kPortMax + 1;
  }
  in_addr numbers{};
  if (::inet_pton(AF_INET, address.ip.c_str(), &numbers) != 1 ||
      port + options.jobs - 1 > kPortMax) {
    return Usage("--tools-listen: '" + options.tools_listen + "' is not ADDRESS[:PORT][/PATH]",
                 kListenExample);
  }
  address.port = static_cast<uint16_t>(port);
  if (options.jobs > 1 && !address.path.empty()) {
    return Usage("--tools-listen: cells at the same time cannot have the same path", "--jobs 1");
  }
  if (numbers.s_addr == INADDR_ANY && options.tools_url.empty()) {
    return Usage("--tools-listen: " + address.ip + " does not lead the agent to this machine",
                 "--tools-url http://HOST:" + std::to_string(port));
  }
  return address;
}

Result<net::Url> ParseUrl(const std::string& text, std::string_view option, std::string hint) {
  Result<net::Url> url = net::ParseUrl(text).Context(option);
  if (!url.ok()) return Usage(url.error().what, std::move(hint));
  return url;
}

Result<std::string> ParseToolsUrl(const RemoteOptions& options, const ToolAddress& address) {
  if (options.tools_url.empty()) return options.tools_url;
  net::Url url = TRY(ParseUrl(options.tools_url, "--tools-url", "--tools-url https://HOST"));
  if (address.port == 0 || options.jobs > 1) {
    return Usage(
        "--tools-url is the address of one port: it needs --tools-listen ADDRESS:PORT and --jobs 1",
        kListenExample);
  }
  while (url.text.ends_with('/')) url.text.pop_back();
  return url.text;
}

}  // namespace

Result<RemoteRun> ParseRemoteRun(const RemoteOptions& options) {
  RemoteRun run;
  std::optional<AgentProtocol> protocol = ParseAgentProtocol(options.protocol);
  if (!protocol) {
    return Usage("--agent-protocol: '" + options.protocol + "' is not http, a2a or openai",
                 std::string(codec::NearestName(options.protocol, {"http", "a2a", "openai"})));
  }
  run.agent.protocol = *protocol;
  run.agent.url = TRY(ParseUrl(options.url, "--agent-url", "--agent-url https://HOST/PATH"));
  run.agent.plain_http = options.plain_http;
  const bool loopback = net::KindOf(run.agent.url.host) == net::AddressKind::kLoopback;
  if (run.agent.url.scheme == "http" && !loopback && !options.plain_http) {
    return Usage("--agent-url: " + run.agent.url.host +
                     " would be contacted over plain HTTP: others could read and change all of it",
                 "--agent-plain-http");
  }
  for (const std::string& text : options.headers) {
    run.agent.headers.push_back(TRY(ParseAgentHeader(text)));
  }
  run.tools = TRY(ParseListen(options));
  run.tools_url = TRY(ParseToolsUrl(options, run.tools));
  return run;
}

Status RunRemoteCell(const Suite& suite, const Cell& cell, const RemoteRun& run,
                     const std::string& model, const std::string& directory, uint32_t number) {
  Rendered rendered = Render(suite, *cell.user, cell.injection);
  std::string markers;
  for (const std::string& marker : MarkersOfCell(suite, cell)) markers += marker + "\n";
  TRY(sys::WriteFile(directory + "/" + kMarkersFile, markers));
  ToolAddress address = run.tools;
  if (address.port != 0) address.port = static_cast<uint16_t>(address.port + number);
  if (address.path.empty()) address.path = "/mcp/" + sys::RandomHex();
  ToolServer server = TRY(ToolServer::Start(suite.environment.tools, rendered.state, directory,
                                            address, &run.agent.mask));
  AgentTask task;
  task.prompt = rendered.prompt;
  task.model = model;
  const std::string own = "http://" + address.ip + ":" + std::to_string(server.port());
  task.tools_url = (run.tools_url.empty() ? own : run.tools_url) + address.path;
  // An agent that is configured with one path for all cells is not told.
  task.announces_url = run.tools.path.empty();
  const auto began = Deadline::Clock::now();
  AgentAnswer answer = TRY(AskAgent(run.agent, task));
  const auto took = Deadline::Clock::now() - began;
  TRY(server.Stop());
  RemoteRecord record;
  record.protocol = Render(run.agent.protocol);
  record.url = net::ShownUrl(run.agent.url.text);
  record.ending = answer.ending;
  record.reason = std::move(answer.reason);
  record.answer = std::move(answer.text);
  record.whole = answer.whole;
  record.tools_reached = server.asked();
  record.ms = std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
  return sys::WriteFile(directory + "/" + kRemoteFile, RenderRemoteRecord(record));
}

}  // namespace eval
