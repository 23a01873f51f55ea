// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/sent_watch.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"
#include "codec/text/base64.h"
#include "codec/text/hex.h"
#include "codec/text/json_escape.h"
#include "codec/text/percent.h"
#include "gateway/budget/model_api.h"
#include "policy/model/host_pattern.h"

namespace gateway {
namespace {

constexpr char kCompressedBody[] = "a compressed body";
constexpr size_t kServersMax = 1000;  // The servers of which is remembered what they were sent.

// Returns what Base64 has of `text` wherever it begins: without the characters that its neighbours
// share.
std::vector<std::string> EncodedForms(const std::string& text) {
  constexpr size_t kGroup = 3;
  constexpr size_t kByteBits = 8;
  constexpr size_t kDigitBits = 6;
  std::vector<std::string> forms;
  for (size_t before = 0; before < kGroup; ++before) {
    const size_t first = (before * kByteBits + kDigitBits - 1) / kDigitBits;
    const size_t end = (before + text.size()) * kByteBits / kDigitBits;
    const std::string padded = std::string(before, '\0') + text;
    for (const std::string& encoded :
         {codec::EncodeBase64(padded), codec::EncodeBase64Url(padded)}) {
      forms.push_back(encoded.substr(first, end - first));
    }
  }
  return forms;
}

// Returns whether a body begins as compressed data do, whether or not its request says so: gzip,
// zlib (at its four levels), Zstandard, LZ4, bzip2, xz, LZMA, zip.
bool LooksCompressed(std::string_view body) {
  constexpr auto kBegins = std::to_array<std::string_view>({"\x1f\x8b\x08",
                                                            "x\x01",
                                                            "x^",
                                                            "x\x9c",
                                                            "x\xda",
                                                            "\x28\xb5\x2f\xfd",
                                                            "\x04\x22\x4d\x18",
                                                            "BZh",
                                                            "\xfd\x37zXZ",
                                                            {"\x5d\x00\x00", 3},
                                                            "PK\x03\x04"});
  return std::any_of(kBegins.begin(), kBegins.end(),
                     [&](std::string_view begin) { return body.starts_with(begin); });
}

Notice NewFinding(const char* type, std::string title, const Authority& server) {
  Notice notice;
  notice.activity = "CREATE";
  notice.type = type;
  notice.title = std::move(title);
  notice.context = {{"host", server.host}};
  notice.counts = {{"port", server.port}};
  return notice;
}

}  // namespace

class SentWatch::BodyLook final : public StreamFilter {
 public:
  BodyLook(SentWatch& watch, To to) : watch_(watch), to_(std::move(to)) {}

  std::optional<OutgoingRefusal> Filter(std::string_view in, bool, std::string& out) override {
    out.append(in);
    seen_.append(in);
    watch_.LookInto(to_, seen_);
    if (!cut_ && LooksCompressed(seen_)) watch_.NoteUnread(to_.server, kCompressedBody);
    // The end of what was seen may be the beginning of a text, in its longest encoding.
    const size_t kept = std::min(seen_.size(), watch_.longest_ * codec::kJsonEscapeBytesMax);
    cut_ = cut_ || seen_.size() > kept;
    seen_.erase(0, seen_.size() - kept);
    return std::nullopt;
  }
  bool keeps_length() const override { return true; }

 private:
  SentWatch& watch_;
  To to_;
  std::string seen_;
  bool cut_ = false;  // `seen_` no longer begins where the body does.
};

SentWatch::SentWatch(std::vector<std::string> texts, std::vector<Authority> models,
                     std::function<void(const Notice&)> record)
    : texts_(std::move(texts)), models_(std::move(models)), record_(std::move(record)) {
  for (size_t i = 0; i < texts_.size(); ++i) {
    std::vector<std::string> forms = EncodedForms(texts_[i]);
    forms.push_back(texts_[i]);
    for (std::string& form : forms) forms_.push_back({i, std::move(form), false});
    forms_.push_back({i, codec::EncodeHex(texts_[i]), true});
  }
  std::erase_if(forms_, [](const Form& form) { return form.bytes.empty(); });
  for (const Form& form : forms_) longest_ = std::max(longest_, form.bytes.size());
}

SentWatch::To SentWatch::Addressed(const Authority& server, std::string_view method,
                                   std::string_view path) const {
  const bool prompts = CarriesPrompt(method, path);
  const bool model =
      prompts && std::any_of(models_.begin(), models_.end(), [&](const Authority& known) {
        return (known.port == 0 || known.port == server.port) &&
               policy::HostMatches(known.host, server.host);
      });
  return {server, model};
}

void SentWatch::Look(const To& to, std::string_view bytes) {
  const std::string lower = ascii::LowerCase(bytes);
  for (const Form& form : forms_) {
    const std::string_view searched = form.any_case ? std::string_view(lower) : bytes;
    if (searched.find(form.bytes) == std::string_view::npos) continue;
    if (sent_.size() >= kServersMax * texts_.size()) {
      NoteUnread(to.server, "more servers than are remembered");
      return;
    }
    if (!sent_.emplace(form.text, to.server.host, to.model).second) continue;
    Notice notice = NewFinding("watch.sent", "a server was sent a watched text", to.server);
    notice.counts.emplace_back("text", static_cast<int64_t>(form.text) + 1);
    notice.counts.emplace_back("model", to.model ? 1 : 0);
    record_(notice);
  }
}

void SentWatch::LookInto(const To& to, std::string_view bytes) {
  Look(to, bytes);
  const bool percent = bytes.find('%') != std::string_view::npos;
  if (percent) Look(to, codec::PercentDecode(bytes));
  if (percent || bytes.find('+') != std::string_view::npos) Look(to, codec::FormDecode(bytes));
  if (bytes.find('\\') != std::string_view::npos) Look(to, codec::JsonUnescape(bytes));
}

void SentWatch::LookAtName(const std::string& host) {
  if (!watches()) return;
  for (size_t i = 0; i < texts_.size(); ++i) {
    if (host.find(ascii::LowerCase(texts_[i])) != std::string::npos) Look({{host, 0}}, texts_[i]);
  }
  Look({{host, 0}}, host);
}

void SentWatch::LookAtRequest(const To& to, const OutgoingRequest& request) {
  if (!watches()) return;
  LookInto(to, request.method);
  LookInto(to, request.target);
  LookAtFields(to, request.fields);
  LookInto(to, request.body);
  if (!codec::CodingsOf(request.fields).empty() ||
      !codec::CodingsOf(request.fields, "grpc-encoding").empty() || LooksCompressed(request.body)) {
    NoteUnread(to.server, kCompressedBody);
  }
}

void SentWatch::LookAtFields(const To& to, const codec::HttpFields& fields) {
  if (!watches()) return;
  for (const codec::HttpField& field : fields) {
    Look(to, field.name);
    LookInto(to, field.value);
  }
}

std::unique_ptr<StreamFilter> SentWatch::NewFilter(To to) {
  return std::make_unique<BodyLook>(*this, std::move(to));
}

void SentWatch::NotePassage(const Authority& server) {
  if (watches()) NoteUnread(server, "a connection without inspection");
}

void SentWatch::NoteUnread(const Authority& server, const char* why) {
  if (unread_.size() >= kServersMax || !unread_.insert(server.host).second) return;
  record_(NewFinding("watch.sent-unread", std::string("not looked into for watched texts: ") + why,
                     server));
}

}  // namespace gateway
