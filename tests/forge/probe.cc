// SPDX-License-Identifier: Apache-2.0
// usage: forge_probe post API_URL REPOSITORY NUMBER MARKER BODY_FILE SECONDS    (token: POST_TOKEN;
// POST_CA: a CA file)
//        forge_probe event                                                    (GITHUB_*)
// Prints one JSON object; an error as {"code": ..., "what": ..., "hint": ...} with exit 1.
#include <unistd.h>

#include <charconv>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "codec/data/json.h"
#include "forge/open/open.h"
#include "forge/sticky_comment.h"

namespace {

std::string_view Name(Code code) {
  switch (code) {
    case Code::kUsage:
      return "usage";
    case Code::kInvalid:
      return "invalid";
    case Code::kNotFound:
      return "not-found";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kIo:
      return "io";
    case Code::kTemporary:
      return "temporary";
    case Code::kRefused:
      return "refused";
    case Code::kSetup:
      return "setup";
    case Code::kNothingToDo:
      return "nothing-to-do";
    case Code::kBug:
      break;
  }
  return "bug";
}

int Integer(const std::string& text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Result<codec::Json> Post(const std::vector<std::string>& operands) {
  ENSURE(operands.size() == 6);
  forge::Place place;
  place.repository = operands[1];
  place.number = Integer(operands[2]);
  forge::StickyComment comment;
  comment.body = TRY(sys::ReadFile(operands[4], size_t{64} << 20));
  comment.full_text_at = "the artifacts of https://example.com/runs/1";
  forge::ClientOptions service = forge::OptionsFor(place, "");
  service.api_url = operands[0];
  service.ca_file = sys::Environment("POST_CA").value_or("");
  service.token = Secret(sys::Environment("POST_TOKEN").value_or(""));
  forge::Client client = TRY(forge::Client::Create(std::move(service)));
  std::unique_ptr<forge::Forge> forge = TRY(forge::Open(client, place));
  forge::CommentOutcome outcome = TRY(forge::KeepComment(
      *forge, operands[3], comment, Deadline::After(std::chrono::seconds(Integer(operands[5])))));
  codec::Json json;
  json.Set("url", outcome.comment_url);
  json.Set("id", outcome.comment_id);
  json.Set("created", outcome.created);
  json.Set("cut", outcome.cut);
  return json;
}

Result<codec::Json> ReadEvent() {
  forge::Event event = TRY(forge::ReadEvent(sys::Environment));
  codec::Json json;
  json.Set("forge", forge::FactsOf(event.forge).name);
  json.Set("name", event.name);
  json.Set("repository", event.repository);
  json.Set("number", event.proposal_number);
  json.Set("base_ref", event.base_ref);
  json.Set("base_sha", event.base_sha);
  json.Set("head_ref", event.head_ref);
  json.Set("head_sha", event.head_sha);
  json.Set("head_repository", event.head_repository);
  constexpr const char* kOrigins[] = {"base", "fork", "unknown"};
  json.Set("head_origin", kOrigins[static_cast<size_t>(event.head_origin)]);
  json.Set("trusted_sha", event.trusted_sha);
  json.Set("trusted_ref", event.trusted_ref);
  json.Set("actor", event.actor);
  return json;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> operands(argv + 1, argv + argc);
  ENSURE(!operands.empty());
  std::string command = operands.front();
  operands.erase(operands.begin());
  Result<codec::Json> answer = command == "post" ? Post(operands) : ReadEvent();
  codec::Json json;
  if (answer.ok()) {
    json = answer.value();
  } else {
    json.Set("code", Name(answer.error().code));
    json.Set("what", answer.error().what);
    json.Set("hint", answer.error().hint);
  }
  bool written = sys::WriteAll(STDOUT_FILENO, codec::RenderJsonLine(json) + "\n").ok();
  return written && answer.ok() ? 0 : 1;
}
