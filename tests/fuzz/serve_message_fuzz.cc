// SPDX-License-Identifier: Apache-2.0
// The lines of a client of `serve`: each is a request or an answer of one line, and what a request
// asks for is checked before it is used.
#include <cstddef>
#include <cstdint>

#include "serve/message.h"
#include "serve/method.h"
#include "serve/script.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<serve::Method> methods = serve::Methods({{"name"}, {"env"}});
  const std::string line(reinterpret_cast<const char*>(data), size);
  std::variant<serve::Request, serve::BadMessage> message = serve::ParseMessage(line);
  if (const auto* bad = std::get_if<serve::BadMessage>(&message)) {
    const std::string answer = serve::RenderFault(bad->id, bad->fault, bad->what);
    ENSURE(answer.find('\n') == answer.size() - 1);
    ENSURE(codec::ParseJson(answer).ok());
    return 0;
  }
  const auto& request = std::get<serve::Request>(message);
  if (!request.id.empty()) {
    const std::string answer = serve::RenderResult(request.id, request.params);
    ENSURE(answer.find('\n') == answer.size() - 1);
    Result<codec::Json> json = codec::ParseJson(answer, {.bytes_max = size_t{64} << 20});
    ENSURE(json.ok() && serve::IdOf(json.value().Find("id")) == request.id);
  }
  Result<const serve::Method*> method = serve::FindMethod(methods, request.method);
  if (!method.ok() || !serve::CheckParams(*method.value(), request.params).ok()) return 0;
  if (request.method == "exec") (void)serve::ScriptOf(request.params);
  (void)serve::BytesOf(request.params);
  return 0;
}
