// SPDX-License-Identifier: Apache-2.0
#include "advise/diff.h"
#include "base/join.h"
#include "codec/data/json.h"
#include "codec/text/neutral.h"

namespace advise {
namespace {

using codec::Json;

// Returns a value of a policy on one line. The policy may be a pull request's, and a line end in it
// must not begin a line of the comparison.
std::string Shown(std::string_view value) { return codec::EscapedLine(value); }

void RenderList(std::string_view head, const std::vector<Difference>& list, const std::string& file,
                std::string* out) {
  if (list.empty()) return;
  *out += std::string(head) + ":\n";
  for (const Difference& one : list) {
    *out += "  " + Shown(one.subject) + ": " + Shown(one.what);
    if (!one.binaries.empty()) *out += ", by " + Shown(Join(one.binaries));
    if (one.at.line > 0 && !file.empty()) *out += "  (" + codec::Locate(file, one.at) + ")";
    *out += "\n";
    if (!one.secrets.empty()) *out += "    with the credential " + Shown(Join(one.secrets)) + "\n";
  }
}

Json ListAsJson(const std::vector<Difference>& list) {
  Json array = Json::EmptyArray();
  for (const Difference& one : list) {
    Json object;
    object.Set("subject", one.subject).Set("what", one.what);
    object.Set("binaries", Json::FromStrings(one.binaries));
    object.Set("line", one.at.line);
    object.Set("secrets", Json::FromStrings(one.secrets));
    array.Push(std::move(object));
  }
  return array;
}

}  // namespace

std::string RenderDifference(const PolicyDifference& difference, const std::string& now,
                             const std::string& next) {
  if (difference.empty() && difference.reaches.empty()) return "no effective differences\n";
  std::string out;
  RenderList("opens", difference.opens, next, &out);
  RenderList("closes", difference.closes, now, &out);
  RenderList("changes", difference.changes, "", &out);
  if (!difference.reaches.empty()) out += "newly reachable with credentials:\n";
  for (const CredentialReach& reach : difference.reaches) {
    out += "  " + Shown(reach.name) + ": at " + Shown(reach.host) + ":" +
           std::to_string(reach.port) + ", by " + Shown(reach.binary) + "  (" +
           codec::Locate(next, reach.at) + ")\n";
  }
  if (!difference.live_refusal.empty()) {
    out += "not accepted during a run: " + Shown(difference.live_refusal) + "\n";
  }
  return out;
}

std::string RenderDifferenceJson(const PolicyDifference& difference, const std::string& now,
                                 const std::string& next) {
  Json reaches = Json::EmptyArray();
  for (const CredentialReach& reach : difference.reaches) {
    Json object;
    object.Set("name", reach.name).Set("host", reach.host);
    object.Set("port", static_cast<int>(reach.port));
    object.Set("binary", reach.binary).Set("line", reach.at.line);
    reaches.Push(std::move(object));
  }
  Json object;
  object.Set("before", now).Set("after", next);
  object.Set("opens", ListAsJson(difference.opens));
  object.Set("closes", ListAsJson(difference.closes));
  object.Set("changes", ListAsJson(difference.changes));
  object.Set("credentials", std::move(reaches));
  object.Set("live_refusal", difference.live_refusal);
  return codec::RenderJson(object);
}

}  // namespace advise
