// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attest/commits.h"
#include "attest/expectations.h"
#include "attest/proof.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/verify_bundle_command.h"
#include "codec/data/digest.h"
#include "codec/data/json.h"
#include "codec/text/neutral.h"
#include "codec/text/quantity.h"
#include "forge/client.h"
#include "forge/open/open.h"
#include "report/read.h"
#include "report/wording.h"
#include "run/host_proxy.h"
#include "run/policy_source.h"
#include "run/subject.h"
#include "run/task_request.h"
#include "run/trusted/config.h"
#include "run/trusted/trust.h"
#include "run/trusted/trusted_file.h"

namespace cli {
namespace {

constexpr char kVerifyRunDoc[] =
    "Verify a run's signed statement. Who signed it, which report, patch or commit it is about, "
    "and that everything that is expected of the run holds. Offline, unless `stored` is given. "
    "Exit status 77: not verified, or an expectation is not met; each is named. What is stated: "
    "docs/reference/attestation.md.";
constexpr size_t kPolicyBytesMax = size_t{1} << 20;
constexpr size_t kPatchBytesMax = size_t{64} << 20;
constexpr size_t kRecordBytesMax = size_t{1} << 20;
constexpr std::chrono::minutes kStoreMax{1};
constexpr VariableSpec kStoreTokenVariable = {
    "GITHUB_TOKEN", "With `stored`: the token that reads the repository's attestations."};
// Keys of a file of expectations that are options of this command.
const std::vector<std::string_view> kSignerKeys = {"key", "certificate_identity",
                                                   "certificate_oidc_issuer", "trusted_root"};

// What is verified by, with the checkout that files are read from.
struct Basis {
  Arguments arguments;  // With what a file of expectations adds.
  run::Checkout checkout;
  forge::Event event;
  run::TrustedRef ref;  // Of --pull-request and --base-policy.
  ReadText read = ReadNamedFile;
  sigstore::VerifyOptions options;
  std::optional<sigstore::TrustedRoot> root;

  const sigstore::TrustedRoot& trusted_root() const {
    return root ? *root : sigstore::EmbeddedTrustedRoot();
  }
};

Result<attest::Wishes> WishesOf(const Arguments& arguments) {
  attest::Wishes wishes;
  for (const attest::Expectation& expectation : attest::Expectations()) {
    const std::vector<std::string> texts = arguments.All(expectation.name);
    for (const std::string& text : texts) {
      Status good = expectation.check == nullptr ? Ok() : expectation.check(text);
      if (!good.ok()) {
        return Error{Code::kUsage, "--" + std::string(expectation.name) + ": " + good.error().what,
                     good.error().hint};
      }
    }
    if (!texts.empty()) wishes[std::string(expectation.name)] = texts;
  }
  return wishes;
}

// Adds what the file of expectations says to the options, which take precedence.
Status AddWishes(const ReadText& read, Arguments* arguments) {
  const std::string file = arguments->Get("policy");
  if (file.empty()) return Ok();
  const std::string text = TRY(read(file, kPolicyBytesMax).Context("reading the expectations"));
  for (auto& [name, texts] : TRY(attest::ParseWishes(file, text, kSignerKeys))) {
    std::string option = name;
    std::replace(option.begin(), option.end(), '_', '-');
    arguments->values.try_emplace(option, std::move(texts));
  }
  return Ok();
}

// In a pull request's job, the checkout is what is judged: files in it are read at its base.
Result<std::string> ReadAtBase(const Basis& basis, const std::string& path, size_t bytes_max) {
  if (path.starts_with('/')) {
    if (!FindCheckoutPath(path)) return ReadNamedFile(path, bytes_max);
    return Error{Code::kRefused, path + " is in a checkout, whose files a pull request can change",
                 "a path from the repository's top, which is read at the base"};
  }
  run::TrustedFile file = TRY(
      run::ReadTrustedFile(basis.checkout.git(), basis.checkout.path, basis.ref, path, bytes_max));
  if (file.text) return *std::move(file.text);
  return Error{Code::kNotFound, "there is no " + path + " at " + basis.ref.ref};
}

Status CheckArguments(const Arguments& arguments) {
  // An empty value would be one that a script did not set.
  for (const auto& [name, values] : arguments.values) {
    for (const std::string& value : values) {
      if (value.empty()) return Error{Code::kUsage, "--" + name + ": the value is empty"};
    }
  }
  const bool proposal = arguments.Has("pull-request");
  for (const char* name : {"bundle", "report", "patch", "commit", "record", "show"}) {
    if (!proposal || !arguments.Has(name)) continue;
    return Error{Code::kUsage,
                 "--pull-request and --" + std::string(name) + " are mutually exclusive"};
  }
  if (proposal && !arguments.Has("bundles") && !arguments.Has("stored")) {
    return Error{Code::kUsage, "--pull-request needs the statements that were fetched, or stored",
                 "--bundles DIR"};
  }
  if (!proposal && !arguments.Has("bundle") && !arguments.Has("report")) {
    return Error{Code::kUsage, "verify-run needs a statement", "--report agentic-ci-report"};
  }
  return Ok();
}

Result<Basis> ReadBasis(const Arguments& arguments) {
  Basis basis;
  basis.arguments = arguments;
  const bool proposal = arguments.Has("pull-request");
  if (proposal || arguments.Has("base-policy") || arguments.Has("commit")) {
    basis.event = TRY(forge::ReadEvent(sys::Environment).Context("reading the event"));
    basis.checkout =
        TRY(run::OpenCheckout(arguments.Get("workdir", ".")).Context("opening the checkout"));
    if (basis.checkout.git() == nullptr) {
      return Error{Code::kSetup, "there is no git repository here", "--workdir DIR"};
    }
    basis.ref = TRY(run::FindTrustedRef(basis.event, arguments.Get("policy-ref")));
  }
  if (proposal) {
    basis.read = [&basis](const std::string& path, size_t bytes_max) {
      return ReadAtBase(basis, path, bytes_max);
    };
  }
  TRY(AddWishes(basis.read, &basis.arguments));
  basis.options = TRY(ReadAcceptedSigner("verify-run", basis.arguments, basis.read));
  basis.options.predicate_types = {attest::PredicateType()};
  basis.root = TRY(ReadTrustedRoot(basis.arguments, basis.read));
  basis.read = nullptr;  // It borrows this.
  return basis;
}

// The digests of the base's files; empty for one that it does not have.
struct BaseFiles {
  std::map<std::string, std::string> policies;  // By path: the repository's, and those of tasks.
  std::string config;
};

Result<BaseFiles> ReadBaseFiles(const Basis& basis) {
  const auto digest = [&](const std::string& path) -> Result<std::string> {
    const run::TrustedFile file = TRY(run::ReadTrustedFile(
        basis.checkout.git(), basis.checkout.path, basis.ref, path, kPolicyBytesMax));
    return file.text ? codec::Sha256Hex(*file.text) : "";
  };
  BaseFiles files;
  files.policies[run::kPolicyPath] = TRY(digest(run::kPolicyPath));
  const run::Config config = TRY(run::LoadConfig(basis.checkout.git(), basis.checkout.path,
                                                 basis.ref, run::CheckBy(TaskOptionRules())));
  for (const run::Task& task : config.tasks) {
    if (!task.policy.empty()) files.policies[task.policy] = TRY(digest(task.policy));
  }
  files.config = TRY(digest(run::kConfigPath));
  return files;
}

// Judges that the policy and the configuration were the base's, and stayed so.
void JudgeBase(const attest::Statement& statement, const BaseFiles& base,
               std::vector<attest::Unmet>* unmet) {
  const std::string policy = statement.TextAt("policy.sha256");
  // A file that the command line named is a task's policy for no task.
  const bool from_there = statement.TextAt("policy.source") == "repository";
  auto of_base = base.policies.find(from_there ? statement.TextAt("policy.path") : "");
  if (of_base == base.policies.end()) of_base = base.policies.find(run::kPolicyPath);
  const bool same = of_base->second.empty() ? statement.TextAt("policy.source") == "default"
                                            : policy == of_base->second;
  if (!same) {
    unmet->push_back({"base-policy", "the policy in force was not the base's: " +
                                         statement.TextAt("policy.source") + " " + policy});
  }
  const codec::Json* replaced = statement.Find("policy.replaced");
  if (replaced == nullptr || replaced->integer() != 0) {
    unmet->push_back({"base-policy", "the policy was replaced during the run"});
  }
  if (statement.TextAt("policy.configurationSha256") != base.config) {
    unmet->push_back({"base-policy", "the configuration was not the base's"});
  }
}

attest::JudgeProof JudgeBy(attest::Wishes wishes, std::optional<BaseFiles> base, int64_t number) {
  return [wishes = std::move(wishes), base, number](const attest::Statement& statement) {
    std::vector<attest::Unmet> unmet = attest::Judge(statement, wishes);
    if (base) JudgeBase(statement, *base, &unmet);
    const codec::Json* stated = statement.Find("source.number");
    const int64_t of = stated == nullptr ? 0 : stated->integer().value_or(0);
    if (number != 0 && of != 0 && of != number) {
      unmet.push_back({"pull-request", "the run was for another one: " + std::to_string(of)});
    }
    return unmet;
  };
}

codec::Json AsJson(const std::vector<attest::Unmet>& unmet) {
  codec::Json list = codec::Json::EmptyArray();
  for (const attest::Unmet& one : unmet) {
    codec::Json json;
    json.Set("name", one.name).Set("why", one.why);
    list.Push(std::move(json));
  }
  return list;
}

codec::Json AsJson(const attest::Proof& proof) {
  codec::Json json;
  json.Set("signer", proof.verified.signer).Set("issuer", proof.verified.issuer);
  json.Set("sha256", proof.sha256).Set("statement", proof.statement.json);
  return json;
}

std::string NamesOf(const std::vector<attest::Unmet>& unmet) {
  std::vector<std::string> names;
  for (const attest::Unmet& one : unmet) {
    if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
  }
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

Error NotMet(const std::vector<attest::Unmet>& unmet) {
  return Error{Code::kRefused, "the run is not what is expected: " + NamesOf(unmet)};
}

// Reads the report directory of `--report`, if there is one.
Result<std::optional<Fd>> OpenReport(const Arguments& arguments) {
  const std::string directory = arguments.Get("report");
  if (directory.empty()) return std::optional<Fd>();
  Fd fd = TRY(sys::Open(directory, O_RDONLY | O_DIRECTORY).Context("reading the report"));
  return std::optional(std::move(fd));
}

Result<int64_t> ReadIndex(const std::string& text) {
  if (text == "0") return int64_t{0};
  Result<int64_t> index = codec::ParseCount(text);
  if (index.ok()) return index;
  return Error{Code::kUsage, "--show: '" + text + "' is not a number from 0", "--show 0"};
}

// Prints one record of the report: nothing is verified for that.
Result<int> ShowOne(const Arguments& arguments) {
  const std::optional<Fd> report = TRY(OpenReport(arguments));
  if (!report) return Error{Code::kUsage, "--show needs a report", "--report DIR"};
  const int64_t index = TRY(ReadIndex(arguments.Get("show")));
  const attest::ShownRecord shown = TRY(attest::ShowRecord(report->get(), index));
  TRY(Print(attest::RenderShown(shown)));
  return 0;
}

Result<std::vector<attest::Unmet>> CompareAll(const Basis& basis, const attest::Proof& proof,
                                              const std::optional<Fd>& report) {
  const Arguments& arguments = basis.arguments;
  const attest::Statement& statement = proof.statement;
  std::vector<attest::Unmet> unmet;
  if (report) unmet = TRY(attest::CompareReport(statement, report->get()));
  std::optional<std::string> patch;
  if (arguments.Has("patch")) {
    patch = TRY(ReadNamedFile(arguments.Get("patch"), kPatchBytesMax).Context("reading the patch"));
    if (auto other = attest::ComparePatch(statement, *patch)) unmet.push_back(*other);
  }
  if (arguments.Has("record")) {
    const std::string text =
        TRY(ReadNamedFile(arguments.Get("record"), kRecordBytesMax).Context("reading the record"));
    const attest::ShownRecord shown =
        TRY(attest::ParseShown(text).Context(arguments.Get("record")));
    if (auto other = attest::CompareRecord(statement, shown)) unmet.push_back(*other);
  }
  if (arguments.Has("commit")) {
    const change::Repository& git = *basis.checkout.git();
    const change::Repository::CommitFacts commit = TRY(git.DescribeCommit(arguments.Get("commit")));
    const std::optional<attest::Unmet> other =
        TRY(attest::CompareCommit(statement, commit, git, patch ? &*patch : nullptr));
    if (other) unmet.push_back(*other);
  }
  return unmet;
}

Result<int> VerifyOne(const Basis& basis, const attest::JudgeProof& judge) {
  const Arguments& arguments = basis.arguments;
  const std::optional<Fd> report = TRY(OpenReport(arguments));
  Result<std::string> bundle =
      arguments.Has("bundle") ? ReadNamedFile(arguments.Get("bundle"), attest::kProofBytesMax)
                              : sys::ReadBeneath(arguments.Get("report"), report::kStatementFile,
                                                 attest::kProofBytesMax);
  if (!bundle.ok() && bundle.error().code == Code::kNotFound && report &&
      sys::ExistsAt(report->get(), report::kUnsignedFile)) {
    return Error{Code::kRefused, "the statement about this run is not signed",
                 "agentic-ci run --attest-key FILE"};
  }
  const std::string text = TRY(std::move(bundle).Context("reading the statement"));
  const attest::Proof proof = TRY(attest::VerifyProof(text, basis.options, basis.trusted_root()));
  std::vector<attest::Unmet> unmet = TRY(CompareAll(basis, proof, report));
  for (attest::Unmet& one : judge(proof.statement)) unmet.push_back(std::move(one));
  if (arguments.Has("json")) {
    codec::Json json = AsJson(proof);
    json.Set("met", unmet.empty()).Set("unmet", AsJson(unmet));
    TRY(Print(codec::RenderJson(json)));
  } else {
    std::string lines = attest::Describe(proof);
    for (const attest::Unmet& one : unmet) lines += "unmet: " + one.name + ": " + one.why + "\n";
    TRY(PrintLines(lines));
  }
  if (!unmet.empty()) return NotMet(unmet);
  return 0;
}

// The store of statements that the event's repository has. It is asked within a minute.
class Store {
 public:
  static Result<std::unique_ptr<Store>> Open(const forge::Event& event) {
    const forge::Place place{event.forge, event.repository};
    if (!forge::FactsOf(place.kind).can.statements) {
      return Error{Code::kUsage, "--stored: there is no store of statements here", "--bundles DIR"};
    }
    forge::ClientOptions options = forge::OptionsFor(place, event.api_url);
    options.proxy = run::HostProxy();
    options.token = Secret(SecretString(sys::Environment("GITHUB_TOKEN").value_or("")));
    std::unique_ptr<Store> store(new Store(TRY(forge::Client::Create(std::move(options)))));
    store->forge_ = TRY(forge::Open(store->client_, place));
    return store;
  }

  Result<std::vector<std::string>> Find(const std::string& tree) {
    return forge_->FindStatements(attest::PredicateType(), codec::Sha256Hex(tree), deadline_);
  }

 private:
  explicit Store(forge::Client client) : client_(std::move(client)) {}
  forge::Client client_;
  std::unique_ptr<forge::Forge> forge_;
  const Deadline deadline_ = Deadline::After(kStoreMax);
};

Result<int> VerifyProposal(const Basis& basis, const attest::JudgeProof& judge) {
  const forge::Event& event = basis.event;
  if (event.head_sha.empty() || event.proposal_number == 0) {
    return Error{Code::kSetup, "the event is about no pull request", "on: pull_request"};
  }
  attest::Evidence evidence{{}, {}, basis.options, basis.trusted_root()};
  const std::string fetched = basis.arguments.Get("bundles");
  if (!fetched.empty()) evidence.fetched = TRY(attest::FetchedProofs::FindIn(fetched));
  std::unique_ptr<Store> store;
  if (basis.arguments.Has("stored")) {
    store = TRY(Store::Open(event));
    evidence.stored = [&store](const std::string& tree) { return store->Find(tree); };
  }
  const std::vector<attest::JudgedCommit> commits = TRY(attest::JudgeCommits(
      *basis.checkout.git(), event.base_sha.empty() ? basis.ref.ref : event.base_sha,
      event.head_sha, evidence, basis.arguments.Has("every-commit"), judge));
  std::vector<attest::Unmet> unmet;
  codec::Json list = codec::Json::EmptyArray();
  std::string lines;
  if (commits.empty()) lines = "no commits: the head has none that the base lacks\n";
  for (const attest::JudgedCommit& commit : commits) {
    const bool judged = commit.agents || basis.arguments.Has("every-commit");
    lines += commit.id + ": " +
             (!judged                ? "not an agent's"
              : commit.unmet.empty() ? "proven, signed by " + commit.proof->verified.signer
                                     : "not proven") +
             "\n";
    for (const attest::Unmet& one : commit.unmet) {
      lines += "  unmet: " + one.name + ": " + one.why + "\n";
      unmet.push_back(one);
    }
    codec::Json json;
    json.Set("commit", commit.id).Set("agents", commit.agents);
    json.Set("statement", commit.proof ? AsJson(*commit.proof) : codec::Json());
    json.Set("unmet", AsJson(commit.unmet));
    list.Push(std::move(json));
  }
  if (basis.arguments.Has("json")) {
    codec::Json json;
    json.Set("met", unmet.empty()).Set("commits", std::move(list));
    TRY(Print(codec::RenderJson(json)));
  } else {
    TRY(PrintLines(lines));
  }
  if (!unmet.empty()) return NotMet(unmet);
  return 0;
}

// Returns exit status 0 if everything that is expected of the run holds, 77 if not.
Result<int> VerifyRunCommand(const Arguments& arguments) {
  if (!arguments.operands.empty()) {
    return Error{Code::kUsage, "unexpected '" + arguments.operands.front() + "'",
                 "agentic-ci verify-run --report " + arguments.operands.front()};
  }
  TRY(CheckArguments(arguments));
  if (arguments.Has("show")) return ShowOne(arguments);
  const Basis basis = TRY(ReadBasis(arguments));
  attest::Wishes wishes = TRY(WishesOf(basis.arguments));
  const bool proposal = arguments.Has("pull-request");
  // A statement about another repository's run proves nothing here.
  if (proposal && !wishes.contains("repository")) {
    wishes["repository"] = {basis.event.repository};
  }
  std::optional<BaseFiles> base;
  if (proposal || arguments.Has("base-policy")) base = TRY(ReadBaseFiles(basis));
  const attest::JudgeProof judge =
      JudgeBy(std::move(wishes), std::move(base), proposal ? basis.event.proposal_number : 0);
  return proposal ? VerifyProposal(basis, judge) : VerifyOne(basis, judge);
}

}  // namespace

Command VerifyRunCommandSpec() {
  Command command{
      .name = "verify-run",
      .carry_out = VerifyRunCommand,
      .operands = "",
      .doc = kVerifyRunDoc,
      .example =
          "  agentic-ci verify-run --report agentic-ci-report --key attest.pub\n"
          "  agentic-ci verify-run --pull-request --bundles runs --policy merge.yml\n",
      .options = {
          {"report", "DIR", "",
           "The report directory of the run: every record in it must be the stated one. Its "
           "statement is taken if `bundle` is not given."},
          {"bundle", "FILE", "", "The signed statement: a Sigstore bundle."},
          {"patch", "FILE", "", "A patch that must be the run's."},
          {"commit", "REF", "",
           "A commit of the checkout that must be what the run made: by its tree, or with `patch` "
           "as that patch on its first parent."},
          {"show", "NUMBER", "",
           "Print one record of the report's events, counted from 0, with the hashes that prove "
           "its place among the others, and nothing else."},
          {"record", "FILE", "", "Such a record, which must be among the stated events."},
          {"pull-request", "", "",
           "Judge the commits of the event's pull request: each that agentic-ci made needs a "
           "statement that meets what is expected, under the policy of the base. Needs the "
           "history of both branches in the checkout. Files in the checkout are read at the base."},
          {"bundles", "DIR", "",
           "Where the report directories of the runs were fetched to, at any depth."},
          {"stored", "", "",
           "With `pull-request`: look for the statement of a commit that was not fetched in the "
           "repository's own store, GitHub's attestations, by the commit's tree. Asks GitHub, with "
           "GITHUB_TOKEN; a job needs `attestations: read`."},
          {"every-commit", "", "",
           "With `pull-request`: every commit needs a statement, not only those that say that "
           "agentic-ci made them."},
          {"policy", "FILE", "",
           "A file of expectations, in YAML: the names below with `_` for `-`, and `key`, "
           "`certificate_identity`, `certificate_oidc_issuer` and `trusted_root`. Options take "
           "precedence."},
          kKeyOption,
          kIdentityOption,
          kIssuerOption,
          kSignersRootOption,
          {"require-log", "", "", "With a key: require a transparency log entry."},
          {"no-log", "", "",
           "With an identity: accept a signed timestamp instead of a transparency log entry."},
          {"workdir", "DIR", ".", "The checkout."},
          {"policy-ref", "REF", "",
           "The ref whose policy and files count. If not given, the event's base, or `HEAD` "
           "outside CI."},
          {"base-policy", "", "", "The run's policy file was the one at `policy-ref`."}}};
  for (const attest::Expectation& expectation : attest::Expectations()) {
    command.options.push_back(
        {expectation.name, expectation.value, "", expectation.doc, expectation.repeatable});
  }
  command.options.push_back(kJsonOption);
  command.variables = {kStoreTokenVariable, kGitHubVariables, kGitLabVariables};
  return command;
}

}  // namespace cli
