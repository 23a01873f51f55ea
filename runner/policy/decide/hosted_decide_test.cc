// SPDX-License-Identifier: Apache-2.0
#include "policy/decide/hosted_decide.h"

#include <catch2/catch.hpp>
#include <string>

#include "codec/data/yaml.h"
#include "policy/load/hosted_parse.h"

namespace policy {
namespace {

constexpr ModelFamily kA = ModelFamily::kAnthropic;
constexpr ModelFamily kC = ModelFamily::kChat;
constexpr ModelFamily kR = ModelFamily::kResponses;
constexpr ModelFamily kG = ModelFamily::kGemini;

std::vector<HostedAllowance> Allowed(const std::string& text) {
  Result<codec::YamlNode> node = codec::ParseYaml(text, "policy.yml");
  REQUIRE(node.ok());
  Result<std::vector<HostedAllowance>> list = ParseHostedTools("policy.yml", node.value());
  INFO((list.ok() ? "" : list.error().what));
  REQUIRE(list.ok());
  return std::move(list).value();
}

// "pass", "pass web_search (a.example)" or "deny web_search, mcp".
std::string Judge(ModelFamily family, const std::string& allowed, std::string_view body) {
  Result<codec::Json> json = codec::ParseJson(body);
  INFO(body);
  REQUIRE(json.ok());
  const HostedPlace place{family, "", "api.example.com"};
  HostedVerdict verdict = DecideHostedUses(Allowed(allowed), FindHostedUses(place, json.value()));
  CHECK(verdict.allowed == verdict.reason.empty());
  std::string text = verdict.allowed ? "pass" : "deny";
  for (const Operation& one : verdict.operations) {
    CHECK(one.method == kHostedMethod);
    text += (text.size() == 4 ? " " : ", ") + OperationText(one).substr(kHostedMethod.size() + 1);
  }
  return text;
}

struct Row {
  ModelFamily family;
  const char* allowed;
  const char* body;
  const char* expected;
};

constexpr char kNone[] = "none";
constexpr char kDocs[] = "[web_search: {domains: [docs.example.com]}]";

constexpr Row kRows[] = {
    // Anthropic.
    {kA, kNone, R"({"model":"m","messages":[{"role":"user","content":"hi"}]})", "pass"},
    {kA, kNone,
     R"({"tools":[{"name":"x","input_schema":{}},{"type":"custom","name":"y"},{"type":null,"name":"z"}]})",
     "pass"},
    {kA, kNone,
     R"({"tools":[{"type":"bash_20250124","name":"bash"},{"type":"computer_20251124"},{"type":"memory_20250818"},{"type":"text_editor_20250728"}]})",
     "pass"},
    {kA, kNone, R"({"tools":[{"type":"tool_search_tool_regex_20251119"}]})", "pass"},
    {kA, kNone, R"({"tools":[{"type":"web_search_20250305","name":"web_search"}]})",
     "deny web_search"},
    {kA, "[web_search]", R"({"tools":[{"type":"web_search_20250305"}]})", "pass web_search"},
    {kA, "[web_fetch]", R"({"tools":[{"type":"web_search_20260318"}]})", "deny web_search"},
    {kA, kDocs, R"({"tools":[{"type":"web_search_20250305"}]})", "deny web_search"},
    {kA, kDocs,
     R"({"tools":[{"type":"web_search_20250305","allowed_domains":["docs.example.com"]}]})",
     "pass web_search (docs.example.com)"},
    {kA, kDocs,
     R"({"tools":[{"type":"web_search_20250305","allowed_domains":["a.docs.example.com/b"]}]})",
     "pass web_search (a.docs.example.com)"},
    {kA, kDocs,
     R"({"tools":[{"type":"web_search_20250305","allowed_domains":["docs.example.com","evil.example"]}]})",
     "deny web_search (docs.example.com, evil.example)"},
    {kA, kDocs,
     R"({"tools":[{"type":"web_search_20250305","allowed_domains":["evildocs.example.com"]}]})",
     "deny web_search (evildocs.example.com)"},
    {kA, kDocs, R"({"tools":[{"type":"web_search_20250305","allowed_domains":[]}]})",
     "deny web_search"},
    {kA, kDocs, R"({"tools":[{"type":"web_search_20250305","allowed_domains":null}]})",
     "deny web_search"},
    {kA, kDocs, R"({"tools":[{"type":"web_search_20250305","blocked_domains":["evil.example"]}]})",
     "deny web_search"},
    {kA, kDocs,
     R"({"tools":[{"type":"web_search_20250305","allowed_domains":["docs.example.com"],"Allowed_Domains":["evil.example"]}]})",
     "deny web_search"},
    {kA, kDocs,
     R"({"tools":[{"type":"web_search_20250305","allowed_domains":["docs.example.com","*"]}]})",
     "deny web_search (docs.example.com, *)"},
    {kA, kNone, R"({"tools":[{"type":"web_fetch_20260318"}]})", "deny web_fetch"},
    {kA, "[web_fetch: {domains: [a.example]}]",
     R"({"tools":[{"type":"web_fetch_20260318","allowed_domains":["a.example"]}]})",
     "pass web_fetch (a.example)"},
    {kA, kNone, R"({"tools":[{"type":"code_execution_20260521"}],"container":"c_1"})",
     "deny code_execution"},
    {kA, "[code_execution]", R"({"container":{"skills":[{"skill_id":"pdf"}]}})",
     "pass code_execution"},
    {kA, kNone,
     R"({"mcp_servers":[{"type":"url","url":"https://mcp.example/x"}],"tools":[{"type":"mcp_toolset"}]})",
     "deny mcp (mcp.example)"},
    {kA, "[mcp: {domains: [mcp.example]}]",
     R"({"mcp_servers":[{"type":"url","url":"https://mcp.example/x"}]})", "pass mcp (mcp.example)"},
    {kA, "[mcp: {domains: [mcp.example]}]",
     R"({"mcp_servers":[{"url":"https://mcp.example/x"},{"url":"https://other.example"}]})",
     "deny mcp (other.example)"},
    {kA, kNone, R"({"mcp_servers":[]})", "pass"},
    {kA, kNone, R"({"tools":[{"type":"advisor_20260301","model":"big"}]})", "deny models"},
    {kA, kNone, R"({"fallbacks":[{"model":"other"}]})", "deny models"},
    {kA, kNone, R"({"tools":[{"type":"teleport_20270101"}]})", "deny type=teleport_20270101"},
    {kA, "['type=teleport_20270101']", R"({"tools":[{"type":"teleport_20270101"}]})",
     "pass type=teleport_20270101"},
    {kA, kNone, R"({"tools":[{"type":"custom","Type":"web_search_20250305"}]})",
     "deny type=type, twice"},
    {kA, kNone, R"({"Tools":[{"TYPE":"Web_Search_20250305"}]})", "deny web_search"},
    {kA, kNone,
     R"({"requests":[{"custom_id":"1","params":{"tools":[{"type":"web_fetch_20250910"}]}}]})",
     "deny web_fetch"},
    {kA, kNone,
     R"({"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://evil.example/a.png"}}]}]})",
     "deny urls (evil.example)"},
    {kA, "[urls: {domains: [pics.example]}]",
     R"({"messages":[{"content":[{"type":"tool_result","content":[{"type":"document","source":{"type":"url","url":"https://pics.example/a.pdf"}}]}]}]})",
     "pass urls (pics.example)"},
    {kA, kNone,
     R"({"messages":[{"content":[{"type":"image","source":{"type":"base64","data":"aGk="}},{"type":"tool_use","input":{"source":{"url":"https://a.example"}}}]}]})",
     "pass"},
    {kA, kNone,
     R"({"messages":[{"content":[{"type":"image","source":{"type":"url","url":"ht\ntps:evil.example"}}]}]})",
     "deny urls ()"},
    {kA, kNone, R"({"toolConfig":{"tools":[{"toolSpec":{"name":"x"}},{"cachePoint":{}}]}})",
     "pass"},
    {kA, kNone, R"({"toolConfig":{"tools":[{"systemTool":{"name":"nova_grounding"}}]}})",
     "deny web_search"},
    {kA, kNone,
     R"({"additionalModelRequestFields":{"tools":[{"type":"code_execution_20250825"}]}})",
     "deny code_execution"},
    {kA, kNone,
     R"({"messages":[{"content":[{"image":{"source":{"s3Location":{"uri":"s3://b/k"}}}}]}]})",
     "deny urls ()"},
    // OpenAI Chat Completions, and servers like it.
    {kC, kNone,
     R"({"tools":[{"type":"function","function":{"name":"web_search"}}],"tool_choice":"auto","parallel_tool_calls":true})",
     "pass"},
    {kC, kNone,
     R"({"tools":[{"type":"custom","custom":{"name":"x"}}],"tool_choice":{"type":"function","function":{"name":"x"}}})",
     "pass"},
    {kC, kNone, R"({"web_search_options":{}})", "deny web_search"},
    {kC, "[web_search]", R"({"web_search_options":{"search_context_size":"low"}})",
     "pass web_search"},
    {kC, kDocs, R"({"web_search_options":{}})", "deny web_search"},
    {kC, kNone, R"({"web_search_options":null,"model":"gpt-5.1"})", "pass"},
    {kC, kNone, R"({"model":"gpt-4o-search-preview-2025-03-11"})", "deny web_search"},
    {kC, kNone, R"({"model":"anthropic/claude-sonnet-4.5:online"})", "deny web_search"},
    {kC, kNone, R"({"model":"a","models":["b"]})", "deny models"},
    {kC, kNone, R"({"plugins":[{"id":"web"}]})", "deny type=plugins"},
    {kC, kNone, R"({"tools":[{"type":"openrouter:web_search"}]})",
     "deny type=openrouter:web_search"},
    {kC, kNone, R"({"connectors":[{"id":"web-search"}]})", "deny type=connectors"},
    {kC, kNone, R"({"tools":[{"googleSearch":{}}]})", "deny web_search"},
    {kC, kNone,
     R"({"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}]})",
     "pass"},
    {kC, kNone,
     R"({"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://evil.example/?x=1"}}]}]})",
     "deny urls (evil.example)"},
    // OpenAI Responses.
    {kR, kNone,
     R"({"input":"hi","tools":[{"type":"function"},{"type":"custom"},{"type":"local_shell"},{"type":"apply_patch"},{"type":"computer_use_preview"}],"store":false})",
     "pass"},
    {kR, kNone, R"({"tools":[{"type":"web_search","external_web_access":false}]})",
     "deny web_search"},
    {kR, kDocs,
     R"({"tools":[{"type":"web_search","filters":{"allowed_domains":["docs.example.com"]}}]})",
     "pass web_search (docs.example.com)"},
    {kR, kDocs, R"({"tools":[{"type":"web_search","allowed_domains":["docs.example.com"]}]})",
     "deny web_search"},
    {kR, kDocs,
     R"({"tools":[{"type":"web_search_preview","filters":{"allowed_domains":["docs.example.com"]}}]})",
     "deny web_search"},
    {kR, kNone,
     R"({"tools":[{"type":"file_search","vector_store_ids":["v"]},{"type":"image_generation"}]})",
     "deny file_search, image_generation"},
    {kR, "[file_search, image_generation]",
     R"({"tools":[{"type":"file_search"},{"type":"image_generation"}]})",
     "pass file_search, image_generation"},
    {kR, kNone, R"({"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]})",
     "deny code_execution"},
    {kR, "[code_execution: {domains: [a.example]}]",
     R"({"tools":[{"type":"code_interpreter","container":{"type":"auto","network_policy":{"type":"allowlist","allowed_domains":["a.example"]}}}]})",
     "pass code_execution (a.example)"},
    {kR, "[code_execution: {domains: [a.example]}]",
     R"({"tools":[{"type":"shell","environment":{"type":"container_auto","network_policy":{"type":"disabled"}}}]})",
     "pass code_execution"},
    {kR, "[code_execution: {domains: [a.example]}]",
     R"({"tools":[{"type":"shell","environment":{"type":"container_auto"}}]})",
     "deny code_execution"},
    {kR, kNone, R"({"tools":[{"type":"shell","environment":{"type":"local"}}]})", "pass"},
    {kR, kNone, R"({"tools":[{"type":"shell"}]})", "deny code_execution"},
    {kR, kNone, R"({"tools":[{"type":"mcp","server_url":"https://mcp.example/sse"}]})",
     "deny mcp (mcp.example)"},
    {kR, "[mcp: {domains: [mcp.example]}]",
     R"({"tools":[{"type":"mcp","connector_id":"connector_gmail","server_url":"https://mcp.example"}]})",
     "deny mcp"},
    {kR, "[mcp: {domains: [mcp.example]}]",
     R"({"tools":[{"type":"mcp","server_url":"https://a@mcp.example.evil/"}]})", "deny mcp ()"},
    {kR, kNone, R"({"tools":[{"type":"namespace","tools":[{"type":"function"}]}]})", "pass"},
    {kR, kNone, R"({"tools":[{"type":"namespace","tools":[{"type":"web_search"}]}]})",
     "deny web_search"},
    {kR, kNone,
     R"({"input":[{"type":"additional_tools","tools":[{"type":"mcp","server_url":"https://mcp.example"}]}]})",
     "deny mcp (mcp.example)"},
    {kR, kNone, R"({"input":[{"type":"tool_search_output","tools":[{"type":"function"}]}]})",
     "pass"},
    {kR, kNone, R"({"input":[{"type":"mcp_approval_response","approve":true}]})", "deny mcp"},
    {kR, kNone,
     R"({"input":[{"type":"web_search_call","action":{"type":"search","sources":[{"type":"url","url":"https://a.example"}]}}]})",
     "pass"},
    {kR, kNone,
     R"({"input":[{"content":[{"type":"input_file","file_url":"https://evil.example/f"}]}]})",
     "deny urls (evil.example)"},
    {kR, kNone,
     R"({"input":[{"type":"function_call_output","output":[{"type":"input_image","image_url":"https://evil.example/f"}]}]})",
     "deny urls (evil.example)"},
    {kR, kNone, R"({"prompt":{"id":"pmpt_1"}})", "deny stored"},
    {kR, "[stored]", R"({"prompt":{"id":"pmpt_1"},"conversation":"conv_1"})", "pass stored"},
    {kR, kNone, R"({"background":true})", "deny background"},
    {kR, kNone, R"({"background":false,"previous_response_id":"resp_1"})", "pass"},
    {kR, kNone, R"({"tool_choice":{"type":"web_search_preview"}})", "deny web_search"},
    {kR, kDocs,
     R"({"tool_choice":{"type":"allowed_tools","tools":[{"type":"web_search"},{"type":"function","name":"x"}]}})",
     "pass web_search"},
    {kR, kNone, R"({"model":"o3-deep-research"})", "deny web_search"},
    {kR, kNone, R"({"multi_agent":{}})", "deny agents"},
    // Gemini.
    {kG, kNone,
     R"({"contents":[{"parts":[{"text":"hi"}]}],"tools":[{"functionDeclarations":[{"name":"x"}]}],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}})",
     "pass"},
    {kG, kNone, R"({"tools":[{"googleSearch":{}}]})", "deny web_search"},
    {kG, kNone, R"({"tools":[{"google_search":{}},{"function_declarations":[]}]})",
     "deny web_search"},
    {kG, kNone, R"({"tools":[{"google_search":null,"computerUse":{}}]})", "pass"},
    {kG, "[web_search]", R"({"tools":[{"googleSearch":{}}]})", "pass web_search"},
    {kG, kDocs, R"({"tools":[{"googleSearch":{"exclude_domains":["a.example"]}}]})",
     "deny web_search"},
    {kG, kNone, R"({"tools":[{"urlContext":{}},{"code_execution":{}}]})",
     "deny web_fetch, code_execution"},
    {kG, kNone, R"({"tools":{"codeExecution":{}}})", "deny code_execution"},
    {kG, kNone, R"({"tools":[{"timeTravel":{}}]})", "deny type=timeTravel"},
    {kG, kNone,
     R"({"tools":[{"mcpServers":[{"name":"a","streamableHttpTransport":{"url":"https://mcp.example"}}]}]})",
     "deny mcp (mcp.example)"},
    {kG, "[mcp: {domains: [mcp.example]}]",
     R"({"tools":[{"mcp_servers":[{"streamable_http_transport":{"url":"https://mcp.example"}}]}]})",
     "pass mcp (mcp.example)"},
    {kG, kNone, R"({"cachedContent":"cachedContents/1"})", "deny stored"},
    {kG, kNone, R"({"model":"m","request":{"tools":[{"googleSearch":{}}]}})", "deny web_search"},
    {kG, kNone, R"({"generateContentRequest":{"tools":[{"urlContext":{}}]}})", "deny web_fetch"},
    {kG, kNone,
     R"({"batch":{"inputConfig":{"requests":{"requests":[{"request":{"tools":[{"googleSearch":{}}]}}]}}}})",
     "deny web_search"},
    {kG, kNone, R"({"batch":{"inputConfig":{"fileName":"files/1"}}})", "deny unread"},
    {kG, kNone, R"({"contents":[{"parts":[{"fileData":{"fileUri":"https://evil.example/v"}}]}]})",
     "deny urls (evil.example)"},
    {kG, kNone,
     R"({"contents":[{"parts":[{"fileData":{"fileUri":"https://api.example.com/v1beta/files/1"}},{"functionResponse":{"response":{"file_uri":"https://a.example"}}}]}]})",
     "pass"},
    {kG, kNone, R"({"agent":"deep-research-pro-preview-12-2025"})", "deny agents"},
    {kG, kNone, R"({"tools":[{"type":"google_search"},{"type":"function"}]})", "deny web_search"},
};
static_assert(std::size(kRows) >= 60);

}  // namespace

TEST_CASE("What a model's provider would do is found in every API, and passes if it is allowed") {
  for (const Row& row : kRows) {
    INFO(row.allowed << "  " << row.body);
    CHECK(Judge(row.family, row.allowed, row.body) == row.expected);
  }
}

TEST_CASE("A refusal gives the line that would allow it, and with its entries added it passes") {
  for (const Row& row : kRows) {
    if (std::string_view(row.expected).starts_with("pass")) continue;
    INFO(row.body);
    Result<codec::Json> json = codec::ParseJson(row.body);
    REQUIRE(json.ok());
    const std::vector<HostedUse> uses =
        FindHostedUses({row.family, "", "api.example.com"}, json.value());
    const std::string line = HostedLine(DecideHostedUses(Allowed(row.allowed), uses).operations);
    if (line.empty()) continue;  // A type that no line can name.
    constexpr std::string_view kKey = "hosted_tools: ";
    REQUIRE(line.starts_with(kKey));
    std::vector<HostedAllowance> both = Allowed(row.allowed);
    for (HostedAllowance& entry : Allowed(line.substr(kKey.size()))) both.push_back(entry);
    CHECK(DecideHostedUses(both, uses).allowed);
  }
}

TEST_CASE("A value of hosted_tools is none or a list of known kinds") {
  CHECK(Allowed("none").empty());
  CHECK(RenderHostedTools(Allowed("[web_search: {domains: [A.Example., b.example]}, urls]")) ==
        "[web_search: {domains: [a.example, b.example]}, urls]");
  for (const char* text :
       {"all", "[]", "{web_search: {domains: [a.example]}}", "[web_serch]", "[web_search: {}]",
        "[web_search: {domains: []}]", "[web_search: {domains: ['*.example']}]",
        "[web_search: {domains: ['']}]", "[image_generation: {domains: [a.example]}]",
        "[web_search: {domain: [a.example]}]", "['type=']", "[[web_search]]", "true", ""}) {
    INFO(text);
    Result<codec::YamlNode> node = codec::ParseYaml(text, "policy.yml");
    REQUIRE(node.ok());
    Result<std::vector<HostedAllowance>> list = ParseHostedTools("policy.yml", node.value());
    REQUIRE_FALSE(list.ok());
    CHECK(list.error().what.starts_with("policy.yml:"));
  }
}

}  // namespace policy
