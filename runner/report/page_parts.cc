// SPDX-License-Identifier: Apache-2.0
#include "report/page_parts.h"

#include "codec/text/neutral.h"
#include "report/html_style.h"
#include "report/wording.h"

namespace report::page {

std::string Text(std::string_view text, size_t bytes_max) {
  return codec::HtmlText(codec::RedactTokens(text), bytes_max);
}

std::string CodeText(std::string_view text) { return "<code>" + Text(text, 1000) + "</code>"; }

std::string SentenceText(std::string_view text, size_t bytes_max) {
  std::string out;
  for (text = text.substr(0, bytes_max); !text.empty();) {
    const size_t begin = text.find('`');
    const size_t end = begin == std::string_view::npos ? begin : text.find('`', begin + 1);
    if (end == std::string_view::npos) return out + Text(text, bytes_max);
    out += Text(text.substr(0, begin), bytes_max);
    if (end > begin + 1) out += CodeText(text.substr(begin + 1, end - begin - 1));
    text.remove_prefix(end + 1);
  }
  return out;
}

std::string PageHead(const std::string& title, std::string_view style) {
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
         "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
         "<meta name=\"referrer\" content=\"no-referrer\">\n<title>" +
         title + "</title>\n<style>" + std::string(kHtmlStyle) + std::string(style) +
         "</style>\n</head>\n<body>\n";
}

std::string Card(std::string_view title, const std::string& body, std::string_view id) {
  return "<div class=\"card\"" + (id.empty() ? "" : " id=\"" + std::string(id) + "\"") + "><h2>" +
         std::string(title) + "</h2>\n" + body + "</div>\n";
}

std::string Tag(std::string_view kind, std::string_view text) {
  return "<span class=\"tag " + std::string(kind) + "\">" + Text(text, 60) + "</span>";
}

std::string LinkTo(size_t finding, const ChangesHtml& changes) {
  const auto anchor = changes.anchors.find(finding);
  if (anchor == changes.anchors.end()) return {};
  return "<a class=\"go\" href=\"#" + anchor->second + "\">see the change</a>";
}

std::string CauseRow(const CauseHtml& cause) {
  return "<div class=\"cause" + cause.classes + "\"><span class=\"" + std::string(cause.kind) +
         "\" aria-hidden=\"true\">" + std::string(cause.sign) + "</span><div>" + cause.what +
         (cause.advice.empty() ? "" : "<p class=\"soft\">" + cause.advice + "</p>") + "</div>" +
         cause.link + "</div>\n";
}

std::string MoreRows(size_t all, size_t shown, std::string_view where) {
  if (all <= shown) return {};
  return "<p class=\"row soft\">… and " + HumanCount(static_cast<int64_t>(all - shown)) +
         " more in <code>" + std::string(where) + "</code></p>\n";
}

std::string RenderTranscript(const ReportInput& input) {
  std::string out;
  if (!input.prompt.empty()) {
    out += "<details class=\"step\" open><summary>The task</summary><pre>" +
           Text(input.prompt, 64 << 10) + "</pre></details>\n";
  }
  size_t turn = 0;
  bool after_call = true;
  for (const TranscriptStep& step : input.transcript) {
    const bool call = step.kind == TranscriptStep::Kind::kTool;
    if (!call && after_call)
      out += "<h3>Turn " + HumanCount(static_cast<int64_t>(++turn)) + "</h3>\n";
    after_call = call;
    const std::string nested = step.nested ? " nested" : "";
    if (step.kind == TranscriptStep::Kind::kText) {
      out += "<p class=\"said" + nested + "\">" + Text(step.text, 16 << 10) + "</p>\n";
      continue;
    }
    if (!call) {
      out += "<details class=\"step" + nested + "\"><summary>Thinking</summary><pre>" +
             Text(step.text, 16 << 10) + "</pre></details>\n";
      continue;
    }
    out += "<details class=\"step" + nested + "\"><summary>" +
           std::string(step.failed ? "<b class=\"bad\">✕ failed</b> " : "") + CodeText(step.title) +
           "</summary><pre>" + Text(step.text, 16 << 10) + "</pre>" +
           (step.result.empty() ? ""
                                : "<h4>Result</h4><pre>" + Text(step.result, 16 << 10) + "</pre>") +
           "</details>\n";
  }
  if (input.transcript_dropped > 0) {
    out += "<p class=\"row soft\">… and " + Plural(input.transcript_dropped, "more step") +
           " in <code>agent.jsonl</code></p>\n";
  }
  return out;
}

}  // namespace report::page
