// SPDX-License-Identifier: Apache-2.0
#include "eval/remote/remote_agent.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "base/ascii.h"
#include "base/deadline.h"
#include "base/sys.h"
#include "codec/text/neutral.h"
#include "codec/wire/http_head.h"
#include "net/http_client.h"

namespace eval {
namespace {

using codec::Json;

// An answer is text for a person; codec::JsonBounds has the same bound.
constexpr size_t kAnswerBytesMax = size_t{4} << 20;
constexpr size_t kExcerptBytes = 200;
constexpr size_t kReasonBytes = 1000;
constexpr std::chrono::milliseconds kFirstPause{200};
constexpr std::chrono::milliseconds kLongestPause{5000};
constexpr char kJsonType[] = "application/json";

constexpr auto kProtocols =
    std::to_array<std::pair<AgentProtocol, std::string_view>>({{AgentProtocol::kHttp, "http"},
                                                               {AgentProtocol::kA2a, "a2a"},
                                                               {AgentProtocol::kOpenAi, "openai"}});

// These say what a request is and where it ends, which is not the user's to say.
constexpr auto kOwnHeaders = std::to_array<std::string_view>(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "expect", "te",
     "trailer", "upgrade", "accept", "accept-encoding"});

// The URL with one more piece of path, whose query stays behind it.
std::string Below(const net::Url& url, std::string_view piece) {
  const size_t end = std::min(url.text.find_first_of("?#"), url.text.size());
  std::string path = url.text.substr(0, end);
  while (path.ends_with('/')) path.pop_back();
  return path + std::string(piece) + url.text.substr(end);
}

bool IsLoopback(const net::Url& url) {
  return net::KindOf(url.host) == net::AddressKind::kLoopback;
}

// One task of one agent.
class Conversation {
 public:
  Conversation(const RemoteAgent& agent, net::HttpClient client)
      : agent_(agent),
        client_(std::move(client)),
        deadline_(Deadline::After(std::chrono::seconds(agent.timeout_s))) {}

  AgentAnswer Ask(const AgentTask& task) {
    Result<AgentAnswer> asked = AskBy(task);
    AgentAnswer answer;
    if (asked.ok()) {
      answer = std::move(asked).value();
    } else {
      answer.ending = asked_ ? Ending::kLost : Ending::kNeverRan;
      answer.reason = deadline_.passed()
                          ? "timed-out: no answer within " + std::to_string(agent_.timeout_s) + " s"
                          : asked.error().what;
    }
    answer.text = codec::RedactTokens(agent_.mask.Mask(answer.text));
    answer.reason = OneLine(answer.reason, kReasonBytes);
    return answer;
  }

 private:
  Result<AgentAnswer> AskBy(const AgentTask& task) {
    switch (agent_.protocol) {
      case AgentProtocol::kHttp: {
        const Json body = TRY(Post(agent_.url.text, RenderHttpTask(task)));
        return ParseHttpAnswer(body).Context("the answer");
      }
      case AgentProtocol::kOpenAi: {
        const Json body = TRY(Post(Below(agent_.url, "/responses"), RenderResponsesTask(task)));
        return ParseResponsesAnswer(body).Context("the answer");
      }
      case AgentProtocol::kA2a:
        return AskA2a(task);
    }
    return Error{Code::kBug, "no such protocol"};
  }

  Result<AgentAnswer> AskA2a(const AgentTask& task) {
    const Json card = TRY(ReadCard());
    const A2aInterface found = TRY(ParseAgentCard(card));
    const net::Url url = TRY(net::ResolveUrl(agent_.url, found.url).Context("the agent's card"));
    TRY(CheckSameServer(url));
    if (found.is_1) headers_.emplace_back("A2A-Version", "1.0");
    Json body = RenderA2aMessage(task, sys::RandomHex(), found.is_1);
    for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
      const Json answered = TRY(Post(url.text, body));
      A2aStep step = TRY(ParseA2aAnswer(answered).Context("the answer"));
      if (step.answer) return std::move(*step.answer);
      std::this_thread::sleep_until(std::min(Deadline::After(pause), deadline_).at());
      body = RenderA2aQuery(step.task_id, found.is_1);
    }
  }

  // A2A before 0.3 had the card elsewhere.
  Result<Json> ReadCard() {
    Result<Json> card = Exchange("GET", Below(agent_.url, "/.well-known/agent-card.json"), "");
    if (card.ok() || status_ != 404) return card;
    return Exchange("GET", Below(agent_.url, "/.well-known/agent.json"), "");
  }

  // What is sent for one server, credentials before all, is for no other one that it names.
  Status CheckSameServer(const net::Url& url) const {
    const bool same_host =
        url.host == agent_.url.host || (IsLoopback(url) && IsLoopback(agent_.url));
    if (same_host && url.port == agent_.url.port && url.scheme == agent_.url.scheme) return Ok();
    return Error{Code::kRefused, "the agent's card names another server, " +
                                     net::ShownUrl(url.text) +
                                     ": if it is the agent's, use it as --agent-url"};
  }

  // Sends what belongs to the task.
  Result<Json> Post(const std::string& url, const Json& body) {
    Result<Json> answered = Exchange("POST", url, codec::RenderJsonLine(body));
    asked_ = asked_ || client_.reached();
    return answered;
  }

  Result<Json> Exchange(std::string method, const std::string& url, std::string body) {
    status_ = 0;
    net::HttpRequest request;
    request.method = std::move(method);
    request.url = url;
    request.body = std::move(body);
    request.headers = headers_;
    request.headers.emplace_back("accept", kJsonType);
    if (!request.body.empty()) request.headers.emplace_back("content-type", kJsonType);
    for (const AgentHeader& header : agent_.headers) {
      request.secret_headers.emplace_back(header.name, &header.value);
    }
    if (agent_.url.scheme == "http" && !agent_.plain_http) request.judge_address = &RefuseRemote;
    const net::HttpResponse response = TRY(client_.Send(request, deadline_));
    status_ = response.status;
    const std::string said = request.method + " " + net::ShownUrl(url) + ": the agent answered " +
                             std::to_string(response.status);
    if (response.status >= 300 && response.status < 400) {
      return Error{Code::kRefused, said + ", a redirect to " +
                                       net::ShownUrl(response.Header("location")) +
                                       ", which is not followed"};
    }
    if (response.status < 200 || response.status >= 300) {
      return Error{Code::kTemporary, said + ": " + OneLine(response.body, kExcerptBytes)};
    }
    return codec::ParseJson(response.body).Context(said + ", which is not JSON");
  }

  // What a server says, masked before it is cut.
  std::string OneLine(const std::string& text, size_t bytes_max) const {
    return codec::VisibleLine(codec::RedactTokens(agent_.mask.Mask(text)), bytes_max);
  }

  // A name may lead anywhere, and nothing may be read on the way.
  static Status RefuseRemote(const std::string& address) {
    if (net::KindOf(address) == net::AddressKind::kLoopback) return Ok();
    return Error{Code::kRefused, address + " would be contacted over plain HTTP"};
  }

  const RemoteAgent& agent_;
  net::HttpClient client_;
  const Deadline deadline_;
  std::vector<std::pair<std::string, std::string>> headers_;
  int status_ = 0;      // Of the last answer; 0 if none came.
  bool asked_ = false;  // The agent may have begun to work.
};

}  // namespace

std::string_view Render(AgentProtocol protocol) {
  for (const auto& [known, name] : kProtocols) {
    if (known == protocol) return name;
  }
  return "";
}

std::optional<AgentProtocol> ParseAgentProtocol(std::string_view text) {
  for (const auto& [known, name] : kProtocols) {
    if (name == text) return known;
  }
  return std::nullopt;
}

Result<AgentHeader> ParseAgentHeader(std::string_view text) {
  const size_t equals = text.find('=');
  AgentHeader header;
  header.name = text.substr(0, equals);
  if (equals != std::string_view::npos) header.variable = text.substr(equals + 1);
  const bool is_token = !header.name.empty() &&
                        std::all_of(header.name.begin(), header.name.end(), &codec::IsTokenChar);
  // The value itself does not belong on a command line, and is not repeated here.
  if (!is_token || !ascii::IsVariableName(header.variable)) {
    return Error{Code::kUsage, "--agent-header: not the name of a header and of a variable",
                 "--agent-header authorization=AGENT_TOKEN"};
  }
  for (std::string_view own : kOwnHeaders) {
    if (!codec::EqualIgnoringCase(own, header.name)) continue;
    return Error{Code::kUsage, "--agent-header: agentic-ci itself says '" + header.name + "'"};
  }
  return header;
}

Status TakeHeaderValue(Secret value, AgentHeader* header, codec::SecretMask* mask) {
  if (value.empty()) {
    return Error{Code::kSetup,
                 "the header " + header->name + " has no value: " + header->variable +
                     " is not set, or is used twice",
                 "export " + header->variable + "=..."};
  }
  const std::string_view given = value.reveal();
  const size_t blank = given.find(' ');
  const std::string_view bare = blank == std::string_view::npos ? given : given.substr(blank + 1);
  if (!mask->Add(given) || !mask->Add(bare)) {
    return Error{Code::kSetup,
                 "the value of " + header->variable + " has fewer than " +
                     std::to_string(codec::SecretMask::kValueBytesMin) +
                     " bytes after its scheme: it could not be masked in what the agent says"};
  }
  if (blank == std::string_view::npos && codec::EqualIgnoringCase(header->name, "authorization")) {
    constexpr std::string_view kScheme = "Bearer ";
    SecretString line;
    line.reserve(kScheme.size() + given.size());  // No copy left behind.
    line.append(kScheme).append(given);
    value = Secret(line);
  }
  header->value = std::move(value);
  return Ok();
}

Result<AgentAnswer> AskAgent(const RemoteAgent& agent, const AgentTask& task) {
  net::HttpClientOptions options;
  options.ca_file = agent.ca_file;
  options.proxy = agent.proxy;
  options.response_bytes_max = kAnswerBytesMax;
  net::HttpClient client = TRY(net::HttpClient::Create(std::move(options)));
  return Conversation(agent, std::move(client)).Ask(task);
}

}  // namespace eval
