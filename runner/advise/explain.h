// SPDX-License-Identifier: Apache-2.0
// `agentic-ci policy explain`: what the gateway would say to one connection or request, and why.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/wire/http_head.h"
#include "policy/decide/decide.h"
#include "policy/load/parse.h"
#include "policy/model/destination.h"

namespace advise {

// The connection or request that is asked about.
struct Question {
  // An http or https URL: connection and request are judged. A ws or wss URL: the upgrade to a
  // WebSocket, and with the method WEBSOCKET_TEXT a text message behind it. "host:port": the
  // connection alone.
  std::string url;
  std::string method = "GET";
  // The body of a GraphQL, JSON-RPC or MCP request, or the text message; nullopt if there is no
  // body.
  std::optional<std::string> body;
  codec::HttpFields fields;  // The request's fields that decisions look at: Accept, Content-Type.
  // The calling executable, then its ancestors. If empty, the first program that a policy for this
  // host and port names, since the question named no program.
  std::vector<std::string> binaries;
  std::vector<std::string> cmdline;
  // The addresses that the name resolves to; nullopt if they are unknown, and not judged. An
  // address stands for itself.
  std::optional<std::vector<policy::Address>> resolved;
};

// One judgement on the way to the verdict.
struct ExplanationStep {
  std::string what;  // "connection", "address", "path", "request", "body" or "message".
  policy::Decision decision;
};

struct Explanation {
  bool allowed = false;
  bool audited = false;
  std::string method;   // "CONNECT" for a connection alone.
  std::string subject;  // The URL with its canonical path, or "host:port".
  std::string path;     // Canonical; empty for a connection alone, or when the path was refused.
  std::string file;     // The policy's file.
  std::vector<ExplanationStep> steps;  // In order; the last one decided. At least one.
  std::vector<std::string> notes;      // Further things that the gateway does, and assumptions.
  std::string hint;  // For a refusal: which rule denied it, or which one came nearest.
};

// Fails with kInvalid when the URL is neither form. Looks nothing up.
Result<Explanation> Explain(const policy::ParsedPolicy& parsed, const Question& question);
Result<Explanation> Explain(const policy::ParsedPolicy& parsed, std::string_view url_or_hostport,
                            std::string_view method, const std::vector<std::string>& binaries);

// Renders for people: "deny  GET https://... ", one line per step, the notes. Ends with a newline.
std::string RenderExplanation(const Explanation& explanation);
// Renders for machines: one JSON object, ending with a newline.
std::string RenderExplanationJson(const Explanation& explanation);

}  // namespace advise
