// SPDX-License-Identifier: Apache-2.0
#include "advise/table.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "advise/explain.h"
#include "base/ascii.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "codec/data/yaml_fields.h"
#include "policy/load/parse.h"

namespace advise {
namespace {

using codec::Position;
using codec::YamlFields;
using codec::YamlKind;
using codec::YamlNode;

constexpr size_t kTableBytesMax = 1 << 20;

std::string Folder(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The whole run of one table. Rows fail into report_; an Error is about the table itself.
class TableRun {
 public:
  TableRun(const std::string& path, const policy::ModelHosts& model_hosts) : path_(path) {
    context_.file = path;
    context_.model_hosts = model_hosts;
  }

  Result<TableReport> Run(const YamlNode& root) {
    YamlFields fields =
        TRY(Open(root, "a table", {"about", "policy", "context", "cases", "accepts", "rejects"}));
    report_.about = TRY(fields.Text("about"));
    if (const YamlNode* context = fields.Find("context")) TRY(ReadContext(*context));
    if (const YamlNode* policy = fields.Find("policy")) shared_ = TRY(LoadPolicy(*policy));
    TRY(RunRows(fields, "cases", &TableRun::RunCase));
    TRY(RunRows(fields, "accepts", &TableRun::RunAccept));
    TRY(RunRows(fields, "rejects", &TableRun::RunReject));
    if (report_.cases == 0) {
      return codec::InvalidAt(path_, root.at, "the table has no cases", "add 'cases:'");
    }
    return std::move(report_);
  }

 private:
  Result<YamlFields> Open(const YamlNode& node, std::string_view what,
                          const std::vector<std::string_view>& known) const {
    return YamlFields::Open(path_, node, what, known, codec::Blanks::kTrimmed);
  }

  // One text or a list of them.
  static Result<std::vector<std::string>> TextsOf(const YamlFields& row, std::string_view key) {
    const YamlNode* value = row.Find(key);
    if (value == nullptr || value->kind == YamlKind::kSequence) return row.Texts(key);
    return std::vector<std::string>{TRY(row.Text(key))};
  }

  Status RunRows(const YamlFields& root, std::string_view key,
                 Status (TableRun::*run)(const YamlNode& row)) {
    const YamlNode* list = TRY(root.List(key));
    if (list == nullptr) return Ok();
    for (const YamlNode& row : list->items) TRY((this->*run)(row));
    return Ok();
  }

  Status ReadContext(const YamlNode& node) {
    YamlFields fields = TRY(Open(node, "context", {"agent", "forge"}));
    std::string agent = TRY(fields.Text("agent"));
    if (!agent.empty()) context_.agent_name = agent;
    std::string forge = TRY(fields.Text("forge"));
    if (!forge.empty()) context_.forge_host = forge;
    return Ok();
  }

  // A mapping is a policy; text is the path of one; "default" is the policy of a repository without
  // a file.
  Result<policy::ParsedPolicy> LoadPolicy(const YamlNode& node) const {
    if (node.kind == YamlKind::kMapping) return policy::ParsePolicyTree(node, context_);
    std::optional<std::string> name = codec::ScalarText(node);
    if (!name || name->empty()) {
      return codec::InvalidAt(path_, node.at, "'policy' must be a path or a mapping",
                              "write 'policy: policy.yml'");
    }
    if (*name == "default") {
      policy::ParsedPolicy built_in;
      built_in.policy = policy::DefaultPolicy(context_);
      built_in.file = "the default policy";
      return built_in;
    }
    policy::ParseContext context = context_;
    context.file = name->front() == '/' ? *name : Folder(path_) + *name;
    Result<std::string> bytes = ReadNamedFile(context.file, policy::kPolicyBytesMax);
    if (!bytes.ok()) {
      return codec::InvalidAt(path_, node.at, "policy '" + *name + "': " + bytes.error().what,
                              "the path is relative to the table");
    }
    return policy::ParsePolicy(bytes.value(), context);
  }

  // Rows are named by their label, or by what they ask.
  void Fail(Position at, const std::string& label, const std::string& subject,
            const std::string& what) {
    std::string name = label.empty() ? subject : label + ": " + subject;
    report_.failures.push_back(codec::Locate(path_, at) + ": " + name + ": " + what);
  }

  Result<Question> ReadQuestion(const YamlFields& row) const {
    std::string request = TRY(row.Text("request"));
    size_t space = request.find(' ');
    if (space == std::string::npos) {
      return codec::InvalidAt(path_, row.at(), "a case needs a 'request'",
                              "write 'request: GET https://api.example.com/', or "
                              "'request: CONNECT api.example.com:443'");
    }
    Question question;
    question.method = request.substr(0, space);
    question.url = ascii::Trimmed(request.substr(space + 1));
    question.binaries = TRY(TextsOf(row, "binary"));
    question.cmdline = TRY(TextsOf(row, "cmdline"));
    TRY(ReadBody(row, &question));
    bool connect = question.method == "CONNECT";
    if (connect == Contains(question.url, "://")) {
      return codec::InvalidAt(path_, row.at(),
                              "'request' is neither METHOD URL nor CONNECT host:port",
                              "write 'request: GET https://api.example.com/'");
    }
    if (row.Find("resolves") != nullptr) {
      question.resolved.emplace();
      std::vector<std::string> resolves = TRY(TextsOf(row, "resolves"));
      for (const std::string& text : resolves) {
        std::optional<policy::Address> address = policy::ParseAddress(text);
        if (!address)
          return codec::InvalidAt(path_, row.at(), "'" + text + "' is not an IP address");
        question.resolved->push_back(*address);
      }
    }
    return question;
  }

  // Reads what the request carries, and the fields that a decision looks at.
  Status ReadBody(const YamlFields& row, Question* question) const {
    if (row.Find("body") != nullptr) {
      std::string body = TRY(row.Text("body"));
      question->body = std::move(body);
    }
    std::vector<std::string> fields = TRY(TextsOf(row, "fields"));
    for (const std::string& field : fields) {
      size_t colon = field.find(": ");
      if (colon == std::string::npos) {
        return codec::InvalidAt(path_, row.at(), "'" + field + "' is not a header field",
                                "write 'fields: [\"Accept: text/event-stream\"]'");
      }
      question->fields.push_back({field.substr(0, colon), field.substr(colon + 2)});
    }
    return Ok();
  }

  Status RunCase(const YamlNode& node) {
    YamlFields row = TRY(Open(node, "a case",
                              {"case", "request", "expect", "binary", "by", "policy", "cmdline",
                               "resolves", "path", "body", "fields", "hint"}));
    std::string expect = TRY(row.Text("expect"));
    if (expect != "allow" && expect != "deny" && expect != "audit") {
      return codec::InvalidAt(path_, row.at(), "'expect' is missing or invalid",
                              "one of: allow, deny, audit");
    }
    Question question = TRY(ReadQuestion(row));
    const YamlNode* own = row.Find("policy");
    std::optional<policy::ParsedPolicy> policy;
    if (own != nullptr) policy = TRY(LoadPolicy(*own));
    if (!policy && !shared_) {
      return codec::InvalidAt(path_, row.at(), "the table names no policy",
                              "add 'policy:' to the table");
    }
    std::string label = TRY(row.Text("case"));
    std::string by = TRY(row.Text("by"));
    std::string path = TRY(row.Text("path"));
    ++report_.cases;
    Result<Explanation> asked = Explain(policy ? *policy : *shared_, question);
    if (!asked.ok()) {
      // A malformed request never gets out; a row must expect that explicitly, or a typo would pass
      // as a refusal.
      bool meant = expect == "deny" && by == "malformed";
      std::string remedy = "; if that is intended, write 'expect: deny, by: malformed'";
      if (!meant) Fail(row.at(), label, question.url, asked.error().what + remedy);
      return Ok();
    }
    Compare(row.at(), label, asked.value(), expect, by, path);
    std::string hint = TRY(row.Text("hint"));
    if (!Contains(asked.value().hint, hint)) {
      Fail(row.at(), label, question.url,
           "expected the hint '" + hint + "', found '" + asked.value().hint + "'");
    }
    return Ok();
  }

  void Compare(Position at, const std::string& label, const Explanation& explanation,
               const std::string& expect, const std::string& by, const std::string& path) {
    const policy::Decision& last = explanation.steps.back().decision;
    std::string subject = explanation.method + " " + explanation.subject;
    std::string found = explanation.allowed ? (explanation.audited ? "audit" : "allow") : "deny";
    std::string why = last.reason.substr(0, last.reason.find(". SYMLINK HINT"));
    if (found != expect) {
      Fail(at, label, subject, "expected " + expect + ", found " + found + ": " + why);
    } else if (!by.empty() && last.policy != by && !Contains(last.reason, by)) {
      Fail(at, label, subject,
           "expected " + expect + " by '" + by + "', found policy '" + last.policy + "': " + why);
    } else if (!path.empty() && explanation.path != path) {
      Fail(at, label, subject, "expected the path " + path + ", found " + explanation.path);
    }
  }

  Result<policy::ParsedPolicy> LoadCandidate(const YamlFields& row) const {
    const YamlNode* yaml = row.Find("yaml");
    if (yaml->kind == YamlKind::kMapping) return policy::ParsePolicyTree(*yaml, context_);
    policy::ParseContext context = context_;
    context.file = "yaml";
    return policy::ParsePolicy(yaml->text, context);
  }

  Status CheckCandidate(const YamlFields& row) const {
    const YamlNode* yaml = row.Find("yaml");
    bool readable = yaml != nullptr && yaml->kind != YamlKind::kSequence;
    if (readable) return Ok();
    return codec::InvalidAt(path_, row.at(),
                            "this row needs 'yaml': a policy, as text or as a mapping");
  }

  Status RunAccept(const YamlNode& node) {
    YamlFields row = TRY(Open(node, "a row of 'accepts'", {"case", "yaml", "warning"}));
    TRY(CheckCandidate(row));
    std::string label = TRY(row.Text("case"));
    std::string warning = TRY(row.Text("warning"));
    ++report_.cases;
    Result<policy::ParsedPolicy> parsed = LoadCandidate(row);
    if (!parsed.ok()) {
      Fail(row.at(), label, "this policy", "expected to load, but: " + parsed.error().what);
      return Ok();
    }
    const std::vector<policy::Warning>& warnings = parsed.value().warnings;
    bool warned = std::any_of(warnings.begin(), warnings.end(),
                              [&](const policy::Warning& w) { return Contains(w.what, warning); });
    if (!warning.empty() && !warned) {
      Fail(row.at(), label, "this policy", "expected a warning with '" + warning + "'");
    }
    return Ok();
  }

  Status RunReject(const YamlNode& node) {
    YamlFields row = TRY(Open(node, "a row of 'rejects'", {"case", "yaml", "error"}));
    TRY(CheckCandidate(row));
    std::string label = TRY(row.Text("case"));
    std::string error = TRY(row.Text("error"));
    if (error.empty()) {
      return codec::InvalidAt(path_, row.at(),
                              "a row of 'rejects' needs 'error': part of the message");
    }
    ++report_.cases;
    Result<policy::ParsedPolicy> parsed = LoadCandidate(row);
    if (parsed.ok()) {
      Fail(row.at(), label, "this policy", "expected an error with '" + error + "', but it loads");
    } else if (!Contains(parsed.error().what, error)) {
      Fail(row.at(), label, "this policy",
           "expected an error with '" + error + "', found: " + parsed.error().what);
    }
    return Ok();
  }

  std::string path_;
  policy::ParseContext context_;
  std::optional<policy::ParsedPolicy> shared_;
  TableReport report_;
};

}  // namespace

Result<TableReport> RunPolicyTable(const std::string& path, const policy::ModelHosts& model_hosts) {
  std::string bytes = TRY(ReadNamedFile(path, kTableBytesMax).Context("reading the table"));
  codec::YamlLimits limits;
  limits.bytes_max = kTableBytesMax;
  limits.nul = true;  // A request that a table asks about may have one.
  YamlNode root = TRY(codec::ParseYaml(bytes, path, limits));
  return TableRun(path, model_hosts).Run(root);
}

}  // namespace advise
