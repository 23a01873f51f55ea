// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "codec/text/neutral.h"
#include "report/page_parts.h"
#include "report/verdict.h"
#include "report/wording.h"

namespace report::page {
namespace {

std::string ControlRow(const ControlRecord& control) {
  const bool enforced = control.state == ControlState::kEnforced;
  const char* kind = enforced ? "good" : control.state == ControlState::kEmulated ? "warn" : "bad";
  return "<p class=\"row\"><span class=\"" + std::string(kind) + "\" aria-hidden=\"true\">" +
         (enforced                                   ? "✓"
          : control.state == ControlState::kEmulated ? "◐"
                                                     : "✕") +
         "</span> <b>" + Text(control.name, 200) + "</b> " +
         (enforced ? "" : Tag(kind, Render(control.state)) + " ") + "<span class=\"soft\">" +
         Text(control.note, 300) + "</span></p>\n";
}

// Renders the controls, those that are not enforced first.
std::string RenderControls(const RunRecord& record) {
  std::string lesser;
  std::string enforced;
  for (ControlState state : {ControlState::kUnavailable, ControlState::kEmulated}) {
    for (const ControlRecord& control : record.isolation.controls) {
      if (control.state == state) lesser += ControlRow(control);
    }
  }
  for (const ControlRecord& control : record.isolation.controls) {
    if (control.state == ControlState::kEnforced) enforced += ControlRow(control);
  }
  std::string body;
  for (const WaiverRecord& waiver : record.waivers) {
    body += "<p class=\"row\">" + Tag("warn", "waiver") + " " + CodeText(waiver.name) + " " +
            Text(waiver.reason) + "</p>\n";
  }
  body += lesser;
  if (!enforced.empty()) {
    body += "<details class=\"row\"><summary>" + HumanCount(CountEnforced(record.isolation)) +
            " enforced</summary>\n" + enforced + "</details>\n";
  }
  if (body.empty()) return {};
  const std::string title = lesser.empty() ? "Every control is enforced" : "Not enforced";
  return Card(title + " <small>tier " + Text(record.isolation.tier, 60) + "</small>", body);
}

// Bars only where there is a limit and a use.
std::string RenderLimits(const RunRecord& record) {
  std::string bars;
  std::string others;
  std::string off;
  for (const LimitRecord& limit : record.limits) {
    const std::string name = Text(limit.name, 60);
    if (limit.limit && limit.used && *limit.limit > 0) {
      const double share = std::clamp(*limit.used / *limit.limit, 0.0, 1.0);
      bars += "<tr" + std::string(limit.fired ? " class=\"fired\"" : "") + "><th scope=\"row\">" +
              name + "</th><td>" + Text(DescribeLimit(limit)) +
              (limit.fired ? " " + Tag("bad", "reached") : "") +
              "</td><td><progress max=\"1000\" value=\"" +
              std::to_string(static_cast<int>(share * 1000)) + "\" aria-label=\"" + name +
              "\"></progress></td></tr>\n";
    } else if (limit.limit) {
      others += (others.empty() ? "" : " · ") + name + " " + Text(DescribeLimit(limit));
    } else {
      off += (off.empty() ? "" : ", ") + name;
    }
  }
  std::string body;
  if (!bars.empty()) body += "<table class=\"limits\">\n" + bars + "</table>\n";
  if (!others.empty()) body += "<p class=\"row soft\">Not measured: " + others + "</p>\n";
  if (!off.empty()) body += "<p class=\"row soft\">No limit: " + off + "</p>\n";
  return body.empty() ? "" : Card("Limits", body);
}

std::string Fact(std::string_view name, const std::string& html) {
  if (html.empty()) return {};
  return "<div><dt>" + std::string(name) + "</dt><dd>" + html + "</dd></div>\n";
}

std::string ImageFacts(const ImageRecord& image) {
  if (image.reference.empty()) return Fact("Image", "none: the host’s root, read-only and masked");
  const bool pinned = image.reference.ends_with("@" + image.digest);
  std::string signer = image.signer.empty() ? "none: not signed" : Text(image.signer);
  if (!signer.empty() && !image.issuer.empty()) signer += ", issuer " + Text(image.issuer);
  std::string out =
      Fact("Image", CodeText(image.reference)) +
      Fact("Digest", pinned ? "" : CodeText(image.digest)) +
      Fact("Manifest", image.manifest_digest.empty() ? "" : CodeText(image.manifest_digest)) +
      Fact("Signer", signer) + Fact("Signature", Text(image.signature));
  for (const std::string& warning : image.warnings) out += Fact("Warning", Text(warning));
  return out;
}

std::string IdentityFacts(const RunRecord& record) {
  std::string out;
  for (const IdentityRecord& identity : record.identities) {
    out +=
        Fact("Identity", "for " + Text(identity.provider, 60) + ": " + CodeText(identity.subject) +
                             ", issuer " + Text(identity.issuer, 300) + ", audience " +
                             Text(identity.audience, 300));
  }
  return out;
}

std::string RenderFacts(const RunRecord& record) {
  std::string phases;
  for (const auto& [name, ms] : record.phases_ms) {
    phases += (phases.empty() ? "" : " · ") + Text(name, 60) + " " +
              (ms < 1000 ? HumanCount(ms) + " ms" : HumanDuration(static_cast<double>(ms) / 1000));
  }
  std::string command;
  for (const std::string& word : record.agent.command) {
    command += (command.empty() ? "" : " ") + word;
    if (command.size() > 4000) break;
  }
  std::string trust = record.trust.level;
  if (!trust.empty() && !record.trust.reason.empty()) trust += ": " + record.trust.reason;
  const std::string policy =
      CodeText(DescribePolicy(record.policy)) +
      (record.policy.sha256.empty() ? "" : " SHA-256 " + CodeText(record.policy.sha256));
  return Card("Facts",
              "<dl class=\"facts\">\n" + Fact("Policy", policy) + Fact("Trust", Text(trust)) +
                  ImageFacts(record.image) + IdentityFacts(record) +
                  Fact("Agent", Text(record.agent.name + " " + record.agent.version, 300)) +
                  Fact("Task", Text(record.agent.task, 300)) +
                  Fact("Command",
                       command.empty()
                           ? ""
                           : "<details><summary>" + CodeText(record.agent.command.front()) +
                                 " …</summary><pre>" + Text(command, 8000) + "</pre></details>") +
                  Fact("Usage", Text(DescribeUsage(record.usage))) +
                  Fact("Cost", Text(DescribeCost(record.usage), 300)) +
                  Fact("Started", HumanDate(record.started_at_ms)) + Fact("Phases", phases) +
                  Fact("Versions", "agentic-ci " + Text(record.tool_version, 60) + ", Linux " +
                                       Text(record.kernel, 100)) +
                  "</dl>\n");
}

}  // namespace

std::string RenderSandbox(const RunRecord& record) {
  return RenderControls(record) + RenderLimits(record) + RenderFacts(record);
}

}  // namespace report::page
