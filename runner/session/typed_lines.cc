// SPDX-License-Identifier: Apache-2.0
#include "session/typed_lines.h"

#include <algorithm>
#include <utility>

namespace session {
namespace {

constexpr char kInterrupt = 0x03;
constexpr char kSuspend = 0x1a;
constexpr char kQuit = 0x1c;
constexpr char kBackspace = 0x08;
constexpr char kEraseLine = 0x15;
constexpr char kDelete = 0x7f;
constexpr std::string_view kPasteBegins = "\x1b[200~";
constexpr std::string_view kPasteEnds = "\x1b[201~";
constexpr size_t kLineBytesMax = 512;
constexpr size_t kAnswerBytesMax = 64;

bool EndsLine(char key) { return key == '\r' || key == '\n'; }

// The shell's line is empty behind these: signals discard what was typed.
bool LeavesLineEmpty(char key) {
  return EndsLine(key) || key == kInterrupt || key == kSuspend || key == kQuit;
}

// "\x1b[24;10R": where the cursor is, which busybox's shell asks at each prompt. Such answers, and
// what a terminal says of itself or of its window, are not typed.
bool BeginsAnswer(std::string_view keys) {
  constexpr std::string_view kBeginning = "\x1b[";
  size_t most = std::min(keys.size(), kBeginning.size());
  return !keys.empty() && keys.size() < kAnswerBytesMax &&
         keys.substr(0, most) == kBeginning.substr(0, most) &&
         keys.substr(most).find_first_not_of("0123456789;?>") == std::string_view::npos;
}

bool IsAnswer(std::string_view keys) {
  constexpr std::string_view kEnds = "RcnIO";
  return keys.size() > 2 && BeginsAnswer(keys.substr(0, keys.size() - 1)) &&
         kEnds.find(keys.back()) != std::string_view::npos;
}

std::string Erased(size_t columns) {
  std::string out;
  for (; columns > 0; --columns) out += "\b \b";
  return out;
}

}  // namespace

TypedLines::Typed TypedLines::Take(std::string_view keys, KeyReader reader) {
  Typed typed;
  for (size_t at = 0; at < keys.size(); ++at) {
    if (!held_.empty()) {
      TakeHeld(keys[at], &typed);
    } else if (keys[at] == '%' && line_begins_ && !pasting_ && typed.for_shell.empty() &&
               reader == KeyReader::kShell) {
      held_ = "%";
      typed.for_screen += '%';
    } else {
      Pass(keys[at], &typed);
      line_begins_ = line_begins_ || reader == KeyReader::kProgram;
    }
    if (typed.command) {
      typed.rest = keys.substr(at + 1);
      break;
    }
  }
  return typed;
}

void TypedLines::TakeHeld(char key, Typed* typed) {
  bool printable = key >= ' ' && key < kDelete;
  if (EndsLine(key) && IsCommand(held_)) {
    typed->for_screen += "\r\n";
    typed->command = std::exchange(held_, {});
  } else if (key == kDelete || key == kBackspace) {
    held_.pop_back();
    typed->for_screen += Erased(1);
  } else if (key == kEraseLine || key == kInterrupt) {
    typed->for_screen += Erased(std::exchange(held_, {}).size());
    if (key == kInterrupt) Pass(key, typed);
  } else if (printable && held_.size() < kLineBytesMax && MayBecomeCommand(held_ + key)) {
    held_ += key;
    typed->for_screen += key;
  } else {
    GiveUp(typed);
    Pass(key, typed);
  }
}

// It was meant for the shell, which echoes it again: `%1` is one of its jobs.
void TypedLines::GiveUp(Typed* typed) {
  typed->for_screen += Erased(held_.size());
  for (char key : std::exchange(held_, {})) Pass(key, typed);
}

void TypedLines::Pass(char key, Typed* typed) {
  typed->for_shell += key;
  if (line_begins_ || !answer_.empty()) answer_ += key;
  line_begins_ = LeavesLineEmpty(key) || IsAnswer(answer_);
  if (!BeginsAnswer(answer_)) answer_.clear();
  last_ += key;
  if (last_.size() > kPasteBegins.size()) last_.erase(0, 1);
  if (last_ == kPasteBegins) pasting_ = true;
  if (last_ == kPasteEnds) pasting_ = false;
}

bool TypedLines::MayBecomeCommand(std::string_view text) const {
  if (text.find(' ') != std::string_view::npos) return IsCommand(text);
  return std::any_of(names_.begin(), names_.end(),
                     [&](const std::string& name) { return name.starts_with(text); });
}

bool TypedLines::IsCommand(std::string_view text) const {
  return std::find(names_.begin(), names_.end(), text.substr(0, text.find(' '))) != names_.end();
}

}  // namespace session
