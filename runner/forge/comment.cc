// SPDX-License-Identifier: Apache-2.0
#include "forge/comment.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "codec/text/hex.h"
#include "codec/text/neutral.h"

namespace forge {
namespace {

constexpr std::string_view kStampStart = "<!-- agentic-ci-run: ";
constexpr std::string_view kFoundWord = "found";

// Takes the first word, and the blank behind it, off `text`.
std::string_view TakeWord(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return word;
}

bool StartsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

// Makes comments harmless. The replacement of a '<' has none, so no new "<!--" comes about.
std::string Neutralise(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) continue;
    safe += text[i];
  }
  for (size_t at = safe.find("<!--"); at != std::string::npos; at = safe.find("<!--", at)) {
    safe.replace(at, 1, "&lt;");
  }
  return safe;
}

size_t CountCharacters(std::string_view text) {
  size_t count = 0;
  for (char c : text) count += StartsCharacter(c) ? 1 : 0;
  return count;
}

// The longest prefix of whole lines with at most `characters_max` characters; of whole characters,
// when not even one line fits.
std::string_view Cut(std::string_view text, size_t characters_max) {
  size_t end = 0;
  size_t count = 0;
  while (end < text.size()) {
    if (StartsCharacter(text[end]) && ++count > characters_max) break;
    ++end;
  }
  if (end == text.size()) return text;
  size_t line_end = text.substr(0, end).rfind('\n');
  return text.substr(0, line_end == std::string_view::npos ? end : line_end + 1);
}

}  // namespace

std::string RenderMarker(std::string_view marker_key) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:";
  std::string encoded;
  for (size_t i = 0; i < marker_key.size(); ++i) {
    char c = marker_key[i];
    // A hyphen is plain, but "--" ends an HTML comment.
    bool lone_hyphen = c == '-' && i > 0 && marker_key[i - 1] != '-' && i + 1 < marker_key.size();
    if (kPlain.find(c) != std::string_view::npos || lone_hyphen) {
      encoded += c;
      continue;
    }
    auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kDigits[byte >> 4];
    encoded += kDigits[byte & 0xf];
  }
  return "<!-- agentic-ci:" + encoded + " -->";
}

bool CarriesMarker(std::string_view text, std::string_view marker) {
  if (text.substr(0, marker.size()) != marker) return false;
  text.remove_prefix(marker.size());
  return text.empty() || text.front() == '\n' || text.front() == '\r';
}

std::optional<CommentStamp> ReadStamp(std::string_view text) {
  size_t start = text.find('\n');
  if (start == std::string_view::npos || !text.substr(start + 1).starts_with(kStampStart))
    return {};
  text.remove_prefix(start + 1 + kStampStart.size());
  CommentStamp stamp;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), stamp.started_ms);
  if (error != std::errc()) return {};
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (!text.starts_with(' ')) return {};
  text = text.substr(1, text.find('\n') - 1);
  const std::string_view head = TakeWord(text);
  if (codec::IsObjectId(head)) stamp.head_sha = std::string(head);
  if (TakeWord(text) != kFoundWord) return stamp;
  stamp.findings.emplace();
  for (std::string_view word = TakeWord(text); codec::IsHex(word); word = TakeWord(text)) {
    stamp.findings->emplace_back(word);
  }
  return stamp;
}

CommentText RenderComment(std::string_view marker_key, std::string_view body,
                          std::string_view full_text_at, const std::optional<CommentStamp>& stamp) {
  std::string marker = RenderMarker(marker_key) + "\n";
  if (stamp) {
    ((marker += kStampStart) += std::to_string(stamp->started_ms)) += ' ';
    marker += codec::IsObjectId(stamp->head_sha) ? stamp->head_sha : "-";
    if (stamp->findings) {
      (marker += ' ') += kFoundWord;
      for (const std::string& word : *stamp->findings) (marker += ' ') += word;
    }
    marker += " -->\n";
  }
  std::string safe = Neutralise(codec::ValidUtf8(body));
  if (CountCharacters(marker) + CountCharacters(safe) <= kCommentCharactersMax) {
    return {marker + safe, false};
  }
  // The note's own text is ours, but for the place, which is bounded so that the body keeps its
  // room.
  std::string place = Neutralise(codec::ValidUtf8(full_text_at.substr(0, 1000)));
  std::replace(place.begin(), place.end(), '\n', ' ');  // It stays in the quotation.
  std::string note = "> [!NOTE]\n> This comment was shortened to fit. The full text is in " +
                     (place.empty() ? "the report directory's `summary.md`" : place) + ".\n\n";
  size_t room = kCommentCharactersMax - CountCharacters(marker) - CountCharacters(note);
  return {marker + note + std::string(Cut(safe, room)), true};
}

}  // namespace forge
