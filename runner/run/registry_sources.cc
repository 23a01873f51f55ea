// SPDX-License-Identifier: Apache-2.0
#include "run/registry_sources.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/join.h"
#include "base/log.h"
#include "base/process.h"
#include "base/sys.h"
#include "codec/text/shell_word.h"
#include "net/http_client.h"
#include "run/ecosystem/answer_cache.h"
#include "run/environment.h"
#include "run/signals.h"
#include "sandbox/host.h"
#include "sandbox/sandbox.h"

namespace run {
namespace {

constexpr std::chrono::seconds kAskTimeout{60};    // Maven, on a machine with much to do.
constexpr std::chrono::seconds kFetchTimeout{10};  // The time for all documents together.
constexpr std::chrono::milliseconds kAskInterval{200};
constexpr size_t kAnswerBytesMax = 65536;
constexpr int64_t kAnswersBytesMax = int64_t{64} << 20;  // And whatever else the tools write.
constexpr size_t kLockBytesMax = size_t{32} << 20;
// An address at which nothing listens: a tool fails to fetch what it does not know, and says from
// where.
constexpr char kNowhere[] = "http://127.0.0.1:9";

// An empty directory, and not the checkout, whose files would tell the tools what to say.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = "/var/tmp/agentic-ci-ask-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;  // Anything left is not worth failing for.
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A tool that is installed, and what it said.
struct Question {
  const Ecosystem::Ask* ask;
  std::vector<std::string> argv;
  std::string state;  // Everything that the answer depends on: AnswerCache.
  std::string answer;
  std::string name() const { return Join(argv, "\n"); }
};

// Those that `find` finds.
std::vector<Question> NewQuestions(const std::vector<Ecosystem>& ecosystems,
                                   const std::function<std::string(const std::string&)>& find) {
  std::vector<Question> questions;
  for (const Ecosystem& ecosystem : ecosystems) {
    for (const Ecosystem::Ask& ask : ecosystem.asks) {
      if (find(ask.program).empty()) continue;
      questions.push_back({&ask, {ask.program}, {}, {}});
      std::vector<std::string>& argv = questions.back().argv;
      argv.insert(argv.end(), ask.arguments.begin(), ask.arguments.end());
    }
  }
  return questions;
}

// Without PATH.
std::vector<std::pair<std::string, std::string>> AskEnvironment(const std::string& home) {
  return {{"HOME", home},
          {"LANG", "C.UTF-8"},
          {"HTTPS_PROXY", kNowhere},
          {"https_proxy", kNowhere},
          {"HTTP_PROXY", kNowhere},
          {"http_proxy", kNowhere},
          {"CARGO_NET_RETRY", "0"},
          {"NO_COLOR", "1"},
          {"CI", "true"}};
}

std::string Prefix(const std::string& program) {
  return std::filesystem::path(program).parent_path().parent_path().string();
}

// Returns the state of a program of the host: itself, its settings, and what its environment has of
// this machine.
std::string HostState(const Ecosystem::Ask& ask, const std::string& program,
                      const std::string& search_path) {
  const std::string home = sys::Environment("HOME").value_or("/");
  Result<std::string> real = sys::RealPath(program);
  const std::string file = real.ok() ? real.value() : program;
  std::string state = "HOME=" + home + "\nPATH=" + search_path + "\n" + FileState(program) +
                      (file == program ? "" : FileState(file));
  for (const std::string& name : ask.files) {
    if (name.starts_with("~/")) {
      state += FileState(home + name.substr(1));
    } else if (name.starts_with("%/")) {
      state += FileState(Prefix(program) + name.substr(1));
      state += FileState(Prefix(file) + name.substr(1));
    } else {
      state += FileState(name);
    }
  }
  return state;
}

// Takes those out of `questions` that are answered already, and returns them.
std::vector<Question> TakeAnswered(const AnswerCache& cache, std::vector<Question>* questions) {
  std::vector<Question> answered;
  std::erase_if(*questions, [&](Question& question) {
    std::optional<std::string> answer = cache.Find(question.name(), question.state);
    if (!answer) return false;
    question.answer = std::move(*answer);
    answered.push_back(question);
    return true;
  });
  return answered;
}

// Started together: each takes a part of a second, most of it waiting.
void AskHost(const ProgramPlaces& places, const std::string& directory,
             std::vector<Question>* questions) {
  for (const std::string& place : places.left_out()) {
    logging::Warn("no registry is asked of a program in the checkout", {{"path", place}});
  }
  Deadline deadline = Deadline::After(kAskTimeout);
  Process::Command command;
  command.directory = directory;
  command.environment = AskEnvironment(sys::Environment("HOME").value_or("/"));
  std::vector<std::pair<Question*, Process>> running;
  for (Question& question : *questions) {
    command.argv = question.argv;
    Result<Process> started = Process::Start(places, command);
    if (started.ok()) running.emplace_back(&question, std::move(started).value());
  }
  for (auto& [question, process] : running) {
    question->answer = process.Finish(kAnswerBytesMax, deadline);
    if (deadline.passed()) question->state.clear();  // Perhaps not the whole: not to be kept.
  }
}

// The beginning of a file that programs in the sandbox may have replaced by anything.
std::string ReadAnswer(int directory, const std::string& name) {
  Result<Fd> file = sys::OpenBeneath(directory, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat facts {};
  if (!file.ok() || ::fstat(file.value().get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  std::string text(kAnswerBytesMax, '\0');
  text.resize(static_cast<size_t>(
      std::max<ssize_t>(::pread(file.value().get(), text.data(), text.size(), 0), 0)));
  return text;
}

// The image's tools, each beside the others in one sandbox. Its workspace is the empty directory:
// nothing of the checkout is in it, no credential, and its network ends at itself.
Status AskImage(const EcosystemRequest& request, const std::string& directory,
                std::vector<Question>* questions) {
  std::string shell = FindProgram("sh", request.image);
  if (questions->empty() || shell.empty()) return Ok();
  std::string script;
  for (size_t i = 0; i < questions->size(); ++i) {
    for (const std::string& word : (*questions)[i].argv) script += codec::ShellWord(word) + " ";
    script += ">" + std::to_string(i) + " 2>&1 &\n";
  }
  sandbox::SandboxRequest wanted;
  wanted.policy.filesystem.read_only = {"/"};
  wanted.checkout = directory;
  wanted.image = PlanImage(*request.image);
  wanted.image->system_directories.clear();
  wanted.argv = {shell, "-c", script + "wait"};
  wanted.env = AskEnvironment(sandbox::kHome);
  wanted.env.emplace_back("PATH", SearchPath(request.image));
  AddImageVariables(*request.image, &wanted.env);
  wanted.limits = request.limits;
  wanted.limits.disk_bytes = kAnswersBytesMax;
  sandbox::SandboxPlan plan = TRY(sandbox::PlanSandbox(wanted, sandbox::ReadHost(directory)));
  // No connection of theirs leads anywhere, so none has to be looked at.
  plan.namespaces().watched = false;
  Fd input = TRY(sys::Open("/dev/null", O_RDONLY));
  const std::unique_ptr<sandbox::Sandbox> started =
      TRY(sandbox::Sandbox::Start(plan, std::move(input)));
  sandbox::Sandbox& sandbox = *started;
  (void)sandbox.TakeGatewaySockets();  // Closed: they have no other end.
  TRY(sandbox.StartAgent());
  Deadline deadline = Deadline::After(kAskTimeout);
  for (bool ended = false; !ended && !deadline.passed() && !PendingEnd();) {
    ended =
        TRY(sys::WaitReadable(sandbox.ended(), std::min(deadline, Deadline::After(kAskInterval))));
    ended |= sandbox.ReachedLimit({}).has_value();
  }
  sandbox.Kill();
  const bool whole = !deadline.passed() && !PendingEnd();
  for (size_t i = 0; i < questions->size(); ++i) {
    (*questions)[i].answer = ReadAnswer(sandbox.upper(), std::to_string(i));
    if (!whole) (*questions)[i].state.clear();
  }
  return Ok();
}

std::optional<std::string> Fetch(const std::string& url, const std::string& ca_file,
                                 Deadline deadline) {
  net::HttpClientOptions options;
  options.ca_file = ca_file;
  options.response_bytes_max = kAnswerBytesMax;
  Result<net::HttpClient> client = net::HttpClient::Create(options);
  if (!client.ok()) return std::nullopt;
  net::HttpRequest request;
  request.url = url;
  Result<net::HttpResponse> response = client.value().Send(request, deadline);
  if (!response.ok() || response.value().status != 200) return std::nullopt;
  return std::move(response.value().body);
}

// Returns what the tools say, now or within the last day.
Result<std::vector<Question>> Answer(const EcosystemRequest& request,
                                     const std::vector<Ecosystem>& ecosystems,
                                     const AnswerCache& cache) {
  std::vector<Question> questions;
  std::vector<Question> answered;
  TemporaryDirectory directory;
  if (directory.path().empty()) return Errno("mkdtemp");
  if (request.image != nullptr) {
    questions = NewQuestions(
        ecosystems, [&](const std::string& name) { return FindProgram(name, request.image); });
    const std::string& digest = request.image->pulled.image.manifest_digest;
    // A directory has no digest: its tools are asked each time.
    for (Question& question : questions) {
      if (!digest.empty()) question.state = "image " + digest;
    }
    answered = TakeAnswered(cache, &questions);
    TRY(AskImage(request, directory.path(), &questions).Context("asking the image's tools"));
  } else {
    ProgramPlaces places(SearchPath(nullptr), request.repository != nullptr
                                                  ? request.repository->top()
                                                  : request.checkout);
    questions =
        NewQuestions(ecosystems, [&](const std::string& name) { return places.Find(name); });
    for (Question& question : questions) {
      question.state =
          HostState(*question.ask, places.Find(question.ask->program), places.search_path());
    }
    answered = TakeAnswered(cache, &questions);
    AskHost(places, directory.path(), &questions);
  }
  for (const Question& question : questions) {
    if (!question.state.empty()) cache.Keep(question.name(), question.state, question.answer);
  }
  questions.insert(questions.end(), answered.begin(), answered.end());
  return questions;
}

}  // namespace

Status AddEcosystems(const EcosystemRequest& request, policy::Policy* policy) {
  std::vector<Ecosystem> ecosystems = TRY(FindEcosystems(request.names));
  const AnswerCache cache = AnswerCache::Open();
  std::vector<Question> questions = TRY(Answer(request, ecosystems, cache));
  RegistrySources sources;
  sources.ask = [&](const Ecosystem::Ask& ask) -> std::string {
    auto found = std::find_if(questions.begin(), questions.end(),
                              [&](const Question& question) { return question.ask == &ask; });
    return found != questions.end() ? found->answer : "";
  };
  sources.read = [&](const std::string& path) -> std::optional<std::string> {
    std::string prefix = request.repository != nullptr ? request.repository->prefix() : "";
    Result<TrustedFile> file = ReadTrustedFile(request.repository, request.checkout, request.ref,
                                               prefix + path, kLockBytesMax);
    return file.ok() ? std::move(file.value().text) : std::nullopt;
  };
  Deadline deadline = Deadline::After(kFetchTimeout);
  sources.fetch = [&](const std::string& url) {
    const std::string state = FileState(request.ca_file);
    std::optional<std::string> document = cache.Find(url, state);
    if (document) return document;
    document = Fetch(url, request.ca_file, deadline);
    if (document) cache.Keep(url, state, *document);
    return document;
  };
  for (const Ecosystem& ecosystem : ecosystems) {
    std::vector<Registry> registries = FindRegistries(ecosystem, sources);
    if (registries.size() > kRegistriesMax) {
      return Error{Code::kSetup, "the ecosystem '" + ecosystem.name + "' has more than " +
                                     std::to_string(kRegistriesMax) + " registries"};
    }
    std::optional<policy::NetworkPolicy> network = EcosystemPolicy(ecosystem, registries);
    if (!network) {
      return Error{Code::kSetup, "no registry found for the ecosystem '" + ecosystem.name +
                                     "': none of its tools " +
                                     (request.image != nullptr ? "in the image" : "on this host") +
                                     " names one, and no lock file does"};
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
