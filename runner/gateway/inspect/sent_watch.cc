// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/sent_watch.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "base/ascii.h"
#include "codec/text/percent.h"
#include "gateway/budget/model_api.h"
#include "gateway/inspect/sent_digits.h"
#include "gateway/inspect/sent_forms.h"
#include "policy/model/host_pattern.h"

namespace gateway {
namespace {

constexpr char kCompressedBody[] = "a compressed body";
constexpr char kNotText[] = "bytes that are not text";
constexpr char kHidden[] = "digits or escapes that stand for other bytes than text";
constexpr char kNested[] = "too many encodings around each other";
// A piece of a text, in letters and digits, of this size is taken for the text.
constexpr size_t kPieceSize = 24;
// A text with fewer letters and digits is searched for as it is.
constexpr size_t kSkeletonMin = sizeof(uint64_t);
constexpr uint64_t kMixer = 0x9e3779b97f4a7c15;  // 2^64 by the golden ratio.
constexpr int kBeginsShift = 64 - 16;            // To an index of SentWatch::begins_.
// Encodings around each other are undone until together they are so many times what was sent; of
// less than the second, more often.
constexpr size_t kLayersMax = 8;
constexpr size_t kLayersBytesMin = size_t{64} << 10;
// The bytes at the end of a piece of a body that are looked at again: a text in three encodings.
constexpr size_t kKept = 4096;
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

std::string Without(char dropped, std::string_view text) {
  std::string rest(text);
  std::erase(rest, dropped);
  return rest;
}

// Returns the end of what was seen of a body, as far as it may be the beginning of a text: long
// runs of blanks do not belong to one.
std::string EndOf(std::string_view seen) {
  std::string end;
  size_t blanks = 0;
  for (size_t at = seen.size(); at > 0 && end.size() < kKept; --at) {
    const char c = seen[at - 1];
    blanks = c == ' ' || c == '\t' || c == '\r' || c == '\n' ? blanks + 1 : 0;
    if (blanks <= 2) end += c;
  }
  return {end.rbegin(), end.rend()};
}

record::Notice NewFinding(const char* type, std::string title, const Authority& server) {
  record::Notice notice = record::Notice::Seen(type, std::move(title));
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
    watch_.Look(to_, letters_.append(in));  // However far its letters are from each other.
    letters_ = Skeleton(letters_);
    letters_.erase(0, letters_.size() - std::min(letters_.size(), 2 * kPieceSize));
    seen_.append(in);
    watch_.LookAtBody(to_, seen_, !cut_);
    std::string kept = EndOf(seen_);
    cut_ = cut_ || kept.size() < seen_.size();
    seen_ = std::move(kept);
    return std::nullopt;
  }
  bool keeps_length() const override { return true; }

 private:
  SentWatch& watch_;
  To to_;
  std::string seen_;
  std::string letters_;  // The last ones.
  bool cut_ = false;     // `seen_` no longer begins where the body does.
};

SentWatch::SentWatch(std::vector<std::string> texts, std::vector<Authority> models,
                     std::function<void(const record::Notice&)> record)
    : texts_(std::move(texts)), models_(std::move(models)), record_(std::move(record)) {
  constexpr size_t kShared = SIZE_MAX;
  for (size_t i = 0; i < texts_.size(); ++i) {
    const std::string form = Skeleton(texts_[i]);
    if (form.size() < kSkeletonMin) {
      if (!texts_[i].empty()) forms_.push_back({i, texts_[i], true});
      continue;
    }
    forms_.push_back({i, form, false});
    forms_.push_back({i, Backwards(form), false});
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
    if (!form.exact) continue;
    const bool found = bytes.find(form.bytes) != std::string_view::npos ||
                       codec::FormDecode(bytes).find(form.bytes) != std::string::npos;
    if (found) NoteSent(to, form.text);
  }
  const std::string skeleton = Skeleton(bytes);
  LookForNeedles(to, skeleton);
  // Blanks and dashes beyond ASCII may be between its letters.
  const std::string letters = Skeleton(skeleton, false);
  if (letters.size() < skeleton.size()) LookForNeedles(to, letters);
}

void SentWatch::LookForNeedles(const To& to, std::string_view skeleton) {
  for (size_t at = 0; at + kSkeletonMin <= skeleton.size(); ++at) {
    const uint64_t head = HeadOf(skeleton, at);
    if (!begins_[head * kMixer >> kBeginsShift]) continue;
    const auto [first, last] = needles_.equal_range(head);
    for (auto needle = first; needle != last; ++needle) {
      if (skeleton.substr(at).starts_with(needle->second.bytes)) NoteSent(to, needle->second.text);
    }
  }
}

void SentWatch::NoteSent(const To& to, size_t text) {
  if (sent_.size() >= kServersMax * texts_.size()) {
    NoteUnread(to.server, "more servers than are remembered");
    return;
  }
  if (!sent_.emplace(text, to.server.host, to.model).second) return;
  record::Notice notice = NewFinding("watch.sent", "a server was sent a watched text", to.server);
  notice.counts.emplace_back("text", static_cast<int64_t>(text) + 1);
  notice.counts.emplace_back("model", to.model ? 1 : 0);
  record_(notice);
}

void SentWatch::LookInto(const To& to, std::string_view bytes, bool reports_hidden) {
  if (!IsReadable(bytes)) {
    Look(to, bytes);
    return NoteUnread(to.server, kNotText);
  }
  struct Layer {
    std::string text;
    bool counts;  // What it seems to hide may be numbers.
  };
  size_t left = kLayersBytesMin + kLayersMax * bytes.size();
  std::unordered_set<size_t> seen;                              // The same often comes in two ways.
  std::vector<Layer> layers = {{Without('\0', bytes), false}};  // UTF-16's.
  bool hides = false;
  while (!layers.empty()) {
    const auto [layer, counts] = std::move(layers.back());
    layers.pop_back();
    const auto add = [&, counts = counts](std::string_view text, bool numbers = false) {
      if (text.size() >= kSkeletonMin) layers.push_back({Without('\0', text), counts || numbers});
    };
    if (!seen.insert(std::hash<std::string>()(layer) + size_t{counts}).second) continue;
    if (layer.size() > left) {
      NoteUnread(to.server, kNested);
      break;
    }
    left -= layer.size();
    Look(to, WithoutPlaces(layer));
    const Values values = JoinValues(layer);
    for (const std::string_view text : {std::string_view(layer), std::string_view(values.all),
                                        std::string_view(values.by_name)}) {
      if (text.size() < kSkeletonMin) continue;
      Look(to, text);
      for (const DecodedText& decoded : UndoDigits(text)) add(decoded.text, decoded.counts);
      const Numbers numbers = UndoNumbers(text);
      for (const std::string& undone : numbers.texts) add(undone);
      if (!counts) hides = hides || numbers.hide || (reports_hidden && HidesBytes(text));
    }
    for (const DecodedText& decoded : UndoDigits(Backwards(layer))) {
      add(decoded.text, decoded.counts);
    }
    for (const Undone& undone : UndoText(layer)) {
      hides = hides || (undone.hides && !counts);
      add(undone.text);
    }
  }
  if (hides && reports_hidden) NoteUnread(to.server, kHidden);
}

void SentWatch::LookAtBody(const To& to, std::string_view body, bool from_beginning) {
  if (from_beginning && LooksCompressed(body)) NoteUnread(to.server, kCompressedBody);
  LookInto(to, body, !to.model);
}

void SentWatch::LookAtName(const std::string& host) {
  if (!watches()) return;
  LookInto({{host, 0}}, host, true);
  LookInto({{host, 0}}, Without('.', host), true);  // It may be split over its labels.
}

void SentWatch::LookAtRequest(const To& to, const OutgoingRequest& request,
                              const codec::HttpFields* own) {
  if (!watches()) return;
  LookInto(to, request.method, !to.model);
  LookInto(to, request.target, !to.model);
  LookInto(to, Without('/', request.target), !to.model);  // It may be split over directories.
  LookAtFields(to, request.fields, own);
  if (!codec::CodingsOf(request.fields).empty() ||
      !codec::CodingsOf(request.fields, "grpc-encoding").empty()) {
    NoteUnread(to.server, kCompressedBody);
  }
  LookAtBody(to, request.body, true);
}

void SentWatch::LookAtFields(const To& to, const codec::HttpFields& fields,
                             const codec::HttpFields* own) {
  if (!watches()) return;
  std::string names;  // A text may be split over them, as over the values.
  const auto lines = [](const codec::HttpFields& of) {
    SecretString all;
    for (const codec::HttpField& field : of) all += field.name + ": " + field.value + "\n";
    return all;
  };
  for (const codec::HttpField& field : fields) {
    const bool usual = field.name.starts_with("X-") || field.name.starts_with("x-");
    names += field.name.substr(usual ? 2 : 0);
  }
  Look(to, names);
  const SecretString sent = lines(fields);
  if (own == nullptr) return LookInto(to, sent, !to.model);
  LookInto(to, lines(*own), !to.model);
  LookInto(to, sent, false);
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
