// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/sent_watch.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/ascii.h"
#include "gateway/budget/model_api.h"
#include "gateway/inspect/sent_forms.h"
#include "policy/model/host_pattern.h"

namespace gateway {
namespace {

constexpr char kCompressedBody[] = "a compressed body";
constexpr char kNotText[] = "a body that is not text";
constexpr char kHidden[] = "a long run of digits that stand for no text";
// A piece of a text, in letters and digits, of this size is taken for the text.
constexpr size_t kPieceSize = 24;
// A text with fewer letters and digits is searched for as it is.
constexpr size_t kSkeletonMin = sizeof(uint64_t);
constexpr uint64_t kMixer = 0x9e3779b97f4a7c15;  // 2^64 by the golden ratio.
constexpr int kBeginsShift = 64 - 16;            // To an index of SentWatch::begins_.
constexpr int kNestedMax = 1;                    // Base64 in Base64.
constexpr size_t kServersMax = 1000;  // The servers of which is remembered what they were sent.

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

uint64_t HeadOf(std::string_view bytes, size_t at) {
  uint64_t head = 0;
  std::memcpy(&head, bytes.data() + at, sizeof head);
  return head;
}

// Returns whether a field of that name has a credential, which stands for no text.
bool HasCredential(std::string_view name) {
  const std::string lower = ascii::LowerCase(name);
  constexpr auto kParts =
      std::to_array<std::string_view>({"auth", "cookie", "key", "signature", "token"});
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return lower.find(part) != std::string::npos; });
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
    watch_.LookForUnread(to_, seen_, !cut_);
    // The end of what was seen may be the beginning of a text, in its longest form.
    const size_t kept = std::min(seen_.size(), watch_.kept_);
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
  constexpr size_t kStretch = 8;    // Of a dump of UTF-16; nothing of the listed forms is longer.
  constexpr size_t kLineSize = 80;  // A dump is read from the beginning of a line.
  constexpr size_t kShared = SIZE_MAX;
  for (size_t i = 0; i < texts_.size(); ++i) {
    const std::string form = Skeleton(texts_[i]);
    if (form.size() < kSkeletonMin) {
      if (!texts_[i].empty()) forms_.push_back({i, texts_[i], true});
      kept_ = std::max(kept_, texts_[i].size() * kStretch);
      continue;
    }
    kept_ = std::max(kept_, std::min(texts_[i].size(), 2 * kPieceSize) * kStretch);
    forms_.push_back({i, form, false});
    forms_.push_back({i, {form.rbegin(), form.rend()}, false});
  }
  std::unordered_map<std::string_view, size_t> pieces;
  for (const Form& form : forms_) {
    if (form.exact) continue;
    const std::string_view whole = form.bytes;
    AddNeedle({form.text, whole});
    for (size_t at = 0; at + kPieceSize <= whole.size(); ++at) {
      const auto [found, added] = pieces.emplace(whole.substr(at, kPieceSize), form.text);
      if (!added && found->second != form.text) found->second = kShared;  // Whose is not known.
    }
  }
  for (const auto& [piece, text] : pieces) {
    if (text != kShared) AddNeedle({text, piece});
  }
  kept_ += 2 * kLineSize;
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

void SentWatch::AddNeedle(const Needle& needle) {
  const uint64_t head = HeadOf(needle.bytes, 0);
  begins_.set(head * kMixer >> kBeginsShift);
  needles_.emplace(head, needle);
}

void SentWatch::Look(const To& to, std::string_view bytes) {
  for (const Form& form : forms_) {
    if (form.exact && bytes.find(form.bytes) != std::string_view::npos) NoteSent(to, form.text);
  }
  const std::string skeleton = Skeleton(bytes);
  for (size_t at = 0; at + kSkeletonMin <= skeleton.size(); ++at) {
    const uint64_t head = HeadOf(skeleton, at);
    if (!begins_[head * kMixer >> kBeginsShift]) continue;
    const auto [first, last] = needles_.equal_range(head);
    for (auto needle = first; needle != last; ++needle) {
      const std::string_view rest = std::string_view(skeleton).substr(at);
      if (rest.starts_with(needle->second.bytes)) NoteSent(to, needle->second.text);
    }
  }
}

void SentWatch::NoteSent(const To& to, size_t text) {
  if (sent_.size() >= kServersMax * texts_.size()) {
    NoteUnread(to.server, "more servers than are remembered");
    return;
  }
  if (!sent_.emplace(text, to.server.host, to.model).second) return;
  Notice notice = NewFinding("watch.sent", "a server was sent a watched text", to.server);
  notice.counts.emplace_back("text", static_cast<int64_t>(text) + 1);
  notice.counts.emplace_back("model", to.model ? 1 : 0);
  record_(notice);
}

void SentWatch::LookInto(const To& to, std::string_view bytes, int depth) {
  if (!IsReadable(bytes)) return Look(to, bytes);
  std::vector<std::string> layers = UndoText(bytes);
  layers.emplace_back(bytes);
  for (const std::string& layer : layers) {
    Look(to, layer);
    Look(to, JoinValues(layer));
    Look(to, WithoutPlaces(layer));
    for (const std::string& decoded : UndoDigits(layer)) {
      Look(to, decoded);
      const bool text = decoded.size() >= kSkeletonMin && IsReadable(decoded);
      if (text && depth < kNestedMax) LookInto(to, decoded, depth + 1);
    }
  }
}

void SentWatch::LookForUnread(const To& to, std::string_view body, bool from_beginning) {
  if (from_beginning && LooksCompressed(body)) return NoteUnread(to.server, kCompressedBody);
  if (!IsReadable(body)) return NoteUnread(to.server, kNotText);
  // A prompt has images and signatures.
  if (!to.model && HidesBytes(body)) NoteUnread(to.server, kHidden);
}

void SentWatch::LookAtName(const std::string& host) {
  if (watches()) LookInto({{host, 0}}, host);
}

void SentWatch::LookAtRequest(const To& to, const OutgoingRequest& request) {
  if (!watches()) return;
  LookInto(to, request.method);
  LookInto(to, request.target);
  LookAtFields(to, request.fields);
  LookInto(to, request.body);
  if (!codec::CodingsOf(request.fields).empty() ||
      !codec::CodingsOf(request.fields, "grpc-encoding").empty()) {
    NoteUnread(to.server, kCompressedBody);
  }
  LookForUnread(to, request.body, true);
  if (!to.model && HidesBytes(request.target)) NoteUnread(to.server, kHidden);
}

void SentWatch::LookAtFields(const To& to, const codec::HttpFields& fields) {
  if (!watches()) return;
  SecretString values;
  for (const codec::HttpField& field : fields) {
    Look(to, field.name);
    LookInto(to, field.value);
    values += field.value;
    if (!to.model && !HasCredential(field.name) && HidesBytes(field.value)) {
      NoteUnread(to.server, kHidden);
    }
  }
  Look(to, values);  // A text may be split over them.
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
