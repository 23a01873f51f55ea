// SPDX-License-Identifier: Apache-2.0
#include "eval/redteam/opening.h"

#include <algorithm>
#include <chrono>

#include "base/ascii.h"
#include "base/sys.h"
#include "codec/data/json.h"
#include "codec/data/yaml.h"
#include "eval/child/scratch.h"
#include "eval/redteam/probe.h"

namespace redteam {
namespace {

constexpr std::chrono::seconds kAskTime{20};
constexpr std::chrono::seconds kExplainTime{15};  // The time for all requests together.
constexpr size_t kPolicyBytesMax = 262144;
constexpr char kDefaultName[] = "the default policy";

class View {
 public:
  View(const eval::OwnProgram& program, const eval::OwnProgram::Variables& variables,
       std::string file, std::string shown, std::string agent)
      : program_(program),
        variables_(variables),
        file_(std::move(file)),
        shown_(std::move(shown)),
        agent_(std::move(agent)) {}

  // `closed`: a policy that opens nothing; `usual`: one that opens what every run has.
  Result<PolicyView> Take(const std::string& closed, const std::string& usual) {
    codec::Json with_every_run = TRY(Opens(closed, usual));
    codec::Json opens = TRY(Opens(closed, file_));
    std::vector<std::string> usual_paths;
    for (const codec::Json& one : *with_every_run.array()) {
      usual_paths.push_back(one.StringAt("subject"));
    }
    PolicyView view;
    view.file = shown_;
    for (const codec::Json& one : *opens.array()) {
      Opening opening = OpeningOf(one);
      const bool is_usual =
          std::find(usual_paths.begin(), usual_paths.end(), opening.path) != usual_paths.end();
      if (!is_usual) view.openings.push_back(std::move(opening));
    }
    for (const Probe& probe : Probes()) {
      std::string destination(probe.destination);
      if (destination.empty() || view.allowed.contains(destination)) continue;
      std::string line = TRY(LineThatAllows(destination));
      if (!line.empty()) view.allowed.emplace(destination, line);
    }
    return view;
  }

 private:
  // Returns, as an array, what `after` opens and `before` does not.
  Result<codec::Json> Opens(const std::string& before, const std::string& after) {
    eval::Answered answered =
        TRY(program_.Ask({"policy", "diff", before, after, "--agent", agent_, "--json"}, variables_,
                         Deadline::After(kAskTime)));
    if (answered.status != 0) return ErrorOf(answered);
    codec::Json json =
        TRY(codec::ParseJson(answered.output).Context("reading what policy diff says"));
    const codec::Json* opens = json.Find("opens");
    if (opens == nullptr || opens->array() == nullptr) return Invalid("policy diff lists nothing");
    return *opens;
  }

  std::string PlaceAt(int64_t line) const {
    if (shown_ == kDefaultName) return shown_;
    return line > 0 ? shown_ + ":" + std::to_string(line) : shown_ + " (its defaults)";
  }

  Opening OpeningOf(const codec::Json& json) {
    Opening opening;
    opening.subject = json.StringAt("subject");
    opening.what = json.StringAt("what");
    opening.place = PlaceAt(json.IntegerAt("line"));
    const codec::Json* programs = json.Find("binaries");
    if (programs != nullptr && programs->array() != nullptr) {
      for (const codec::Json& one : *programs->array()) {
        if (one.string() != nullptr) opening.programs.push_back(*one.string());
      }
    }
    if (opening.programs.empty()) {
      DescribePath(&opening);
    } else {
      DescribeHost(&opening);
    }
    return opening;
  }

  void DescribePath(Opening* opening) {
    const bool is_path = opening->subject.starts_with('/');
    opening->writes = opening->what == "writing";
    if (!is_path || (!opening->writes && opening->what != "reading")) {
      opening->lets = opening->subject + ": " + opening->what;
      return;
    }
    opening->path = opening->subject;
    opening->place = PlaceAt(LineOfPath(opening->subject));
    opening->lets = (opening->writes ? "read and write " : "read ") + opening->subject;
  }

  int64_t LineOfPath(const std::string& path) const {
    Result<std::string> text = sys::ReadFile(file_, kPolicyBytesMax);
    if (!text.ok()) return 0;
    Result<codec::YamlNode> root = codec::ParseYaml(text.value(), file_);
    if (!root.ok()) return 0;
    const codec::YamlNode* section = root.value().Find("filesystem_policy");
    if (section == nullptr) return 0;
    for (const char* key : {"read_write", "read_only"}) {
      const codec::YamlNode* list = section->Find(key);
      if (list == nullptr) continue;
      for (const codec::YamlNode& item : list->items) {
        std::string named = item.text;
        while (named.size() > 1 && named.ends_with('/')) named.pop_back();
        if (named == path) return item.at.line;
      }
    }
    return 0;
  }

  // Describes what the decision engine says to requests that carry data.
  void DescribeHost(Opening* opening) {
    size_t colon = opening->subject.rfind(':', opening->subject.find('/'));
    std::string hosts = opening->subject.substr(0, colon);
    std::string host = hosts;
    for (size_t at = host.find('*'); at != std::string::npos; at = host.find('*')) {
      size_t end = host.find_first_not_of('*', at);
      host.replace(at, std::min(end, host.size()) - at, "redteam");
    }
    size_t end = opening->subject.find('/');
    std::string port =
        colon == std::string::npos
            ? "443"
            : opening->subject.substr(colon + 1, end == std::string::npos ? end : end - colon - 1);
    const std::string whose = hosts.find('*') == std::string::npos
                                  ? hosts + ":" + port
                                  : "any host that matches " + hosts + ", port " + port;
    const std::string url =
        (port == "80" ? "http://" : "https://") + host + ":" + port + "/redteam-canary?stolen=1";
    std::string_view requests = opening->what;
    constexpr std::string_view kWith = "connections with ";
    if (requests.starts_with(kWith)) requests.remove_prefix(kWith.size());
    if (Allows(url, "POST")) {
      opening->sends = Sends::kAnyData;
      opening->lets = "send any data to " + whose;
    } else if (Allows((port == "80" ? "ws" : "wss") + url.substr(url.find(':')),
                      "WEBSOCKET_TEXT")) {
      opening->sends = Sends::kInMessages;
      opening->lets = "send data in paths, queries and WebSocket messages to " + whose;
    } else if (Allows(url, "GET")) {
      opening->sends = Sends::kInTargets;
      opening->lets = "send data in paths and queries of requests to " + whose;
    } else {
      opening->sends = explained_.passed() ? Sends::kUnknown : Sends::kInRequests;
      opening->lets = "send data in these requests to " + whose + ": " + std::string(requests);
    }
  }

  bool Allows(const std::string& url, const std::string& method) {
    if (explained_.passed()) return false;
    Result<eval::Answered> answered = Explain(url, method);
    return answered.ok() && answered.value().status == 0;
  }

  Result<eval::Answered> Explain(const std::string& subject, const std::string& method) {
    return program_.Ask({"policy", "explain", subject, "--policy", file_, "--agent", agent_,
                         "--method", method, "--json"},
                        variables_, Deadline::After(kAskTime));
  }

  // Returns the line that allows the destination of a probe; empty if it is not allowed.
  Result<std::string> LineThatAllows(const std::string& destination) {
    constexpr int kDenied = 77;
    eval::Answered answered = TRY(Explain(destination, "GET"));
    if (answered.status == kDenied) return std::string();
    if (answered.status != 0) return ErrorOf(answered);
    codec::Json json = TRY(codec::ParseJson(answered.output));
    std::string at = json.StringAt("at");
    if (at.empty() || shown_ == kDefaultName) return shown_;
    return at.starts_with(file_) ? shown_ + at.substr(file_.size()) : at;
  }

  const eval::OwnProgram& program_;
  const eval::OwnProgram::Variables& variables_;
  const std::string file_;
  const std::string shown_;
  const std::string agent_;
  Deadline explained_ = Deadline::After(kExplainTime);
};

}  // namespace

Result<PolicyView> ViewPolicy(const eval::OwnProgram& program,
                              const eval::OwnProgram::Variables& variables, const std::string& file,
                              const std::string& agent) {
  eval::Scratch scratch = TRY(eval::Scratch::Create());
  const std::string closed = scratch.path() + "/closed.yml";
  const std::string usual = scratch.path() + "/usual.yml";
  TRY(sys::WriteFile(closed, "version: 1\nfilesystem_policy: {include_workdir: true}\n"));
  TRY(sys::WriteFile(usual, "version: 1\n"));
  if (!file.empty()) return View(program, variables, file, file, agent).Take(closed, usual);
  const std::string built_in = scratch.path() + "/default.yml";
  TRY(sys::WriteFile(built_in, "defaults: agentic-ci\n"));
  return View(program, variables, built_in, kDefaultName, agent).Take(closed, usual);
}

std::string_view Name(Sends sends) {
  switch (sends) {
    case Sends::kNothing:
      return "nothing";
    case Sends::kAnyData:
      return "any-data";
    case Sends::kInMessages:
      return "in-websocket-messages";
    case Sends::kInTargets:
      return "in-paths-and-queries";
    case Sends::kInRequests:
      return "in-its-requests";
    case Sends::kUnknown:
      break;
  }
  return "unknown";
}

std::string LineThatOpens(const std::vector<Opening>& openings, const std::string& path,
                          bool writes) {
  std::string place;
  size_t longest = 0;
  for (const Opening& one : openings) {
    if (one.path.empty() || (writes && !one.writes)) continue;
    const bool below = one.path == "/" || path == one.path || path.starts_with(one.path + "/");
    if (!below || one.path.size() < longest) continue;
    longest = one.path.size();
    place = one.place;
  }
  return place;
}

}  // namespace redteam
