// SPDX-License-Identifier: Apache-2.0
#include "session/shell.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/result.h"
#include "base/sys.h"
#include "codec/text/shell_word.h"

namespace session {
namespace {

// Everything inside can write frames: how many come and how long they are says nothing about what
// is kept. A state that is longer is not taken, and of a longer frame the rest is dropped.
constexpr size_t kStateBytesMax = size_t{4} << 20;
constexpr size_t kFrameBytesMax = kStateBytesMax + 256;
constexpr int kFailedStartsMax = 3;
constexpr size_t kCwdBytesMax = 8192;  // A message to a client has room for it.

// Frames are `\0NONCE WORD...\0`: no shell writes a NUL by accident. A shell that is killed may
// leave the beginning of one, so whatever stands between two NULs is looked at. What a dead shell
// left unread is skipped up to the line that starts the next one. What the keeper itself says is
// not shown.
constexpr char kKeeper[] = R"(exec 9<&0 8>&2 7<&3 3<&- 2>/dev/null
k=$1
s=sh a=
if command -v bash >/dev/null 2>&1; then s=bash a='--noprofile --norc'; fi
while :; do
  printf '\0%s shell %s\0' "$k" "$s" >&9
  l=
  until [ "$l" = "$k go" ]; do IFS= read -r l || exit 0; done
  $s $a 2>&8 8<&7 7<&-
  printf '\0%s exit %d\0' "$k" "$?" >&9
done)";

// The commands that print what a later shell needs to go on where this one was. In bash everything
// but jobs; in sh, which cannot print functions, everything but these and jobs.
constexpr char kBashState[] =
    R"(\builtin printf 'cd -- %q\n' "$PWD"; \builtin declare -p; \builtin trap -p; )"
    R"(\builtin umask -p; \builtin shopt -p; \builtin set +o)";
constexpr char kShState[] = R"(\command set; \command export -p; \command trap; )"
                            R"(\command printf 'umask '; \command umask; )"
                            R"(\command printf 'cd -- "$PWD" || cd -P .\n'; )"
                            R"(\command set +o)";
constexpr char kBashFunctions[] = R"(\builtin declare -F; \builtin echo; \builtin declare -f)";
// The option that reading any function's text needs; it may have been unset since.
constexpr char kBeforeFunctions[] = "shopt -s extglob\n";
// Aliases are for people, and sessions are theirs.
constexpr char kBashBeginning[] = "shopt -s expand_aliases";
// Where the directory is gone: what `declare` has set is not where the shell is.
constexpr char kBashDirectory[] = R"(\builtin test . -ef "$PWD" || \builtin cd -P .)";

// Takes the first line off `text`.
std::string_view TakeLine(std::string_view* text) {
  std::string_view line = text->substr(0, text->find('\n'));
  text->remove_prefix(std::min(line.size() + 1, text->size()));
  return line;
}

// Returns the commands that define the functions that kBashFunctions printed, each evaluated by
// itself, so that one that cannot be parsed costs no other. The names come first, in the order of
// the functions.
std::string FunctionCommands(std::string_view printed) {
  auto next_head = [](std::string_view* names) {
    std::string_view name = TakeLine(names);
    return std::string(name.substr(name.rfind(' ') + 1)) + " () ";
  };
  std::string_view names = printed.substr(0, printed.find("\n\n"));
  std::string_view text = printed.substr(names.size());
  std::string head = next_head(&names);
  std::string commands;
  std::string function;
  auto add = [&] {
    if (!function.empty()) commands += "\\eval " + codec::ShellWord(function) + "\n";
    function.clear();
  };
  while (!text.empty()) {
    std::string_view line = TakeLine(&text);
    if (line == head || line == "function " + head) {
      add();
      head = next_head(&names);
    }
    if (!line.empty() || !function.empty()) function += std::string(line) + "\n";
  }
  add();
  return commands.empty() ? "" : kBeforeFunctions + commands;
}

// Returns the commands that define the aliases that `alias` printed: in sh a name, `=` and a quoted
// value, which may have several lines.
std::string AliasCommands(std::string_view printed) {
  std::string commands;
  bool begins = true;
  char quote = 0;
  for (char c : printed) {
    if (begins) commands += "\\alias ";
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    }
    begins = quote == 0 && c == '\n';
    commands += c;
  }
  return commands;
}

}  // namespace

std::string QuoteWords(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + codec::ShellWord(word);
  return line;
}

std::vector<std::string> KeeperArguments(const std::string& key) {
  return {"sh", "-c", kKeeper, "sandbox", key};
}

std::string Shell::Printf() const {
  return kind_ == "bash" ? "\\builtin printf" : "\\command printf";
}

// The status first, while `$?` still has it. It is a line of its own, so that the end is told
// before the shell reads, byte by byte, how to tell its state. `set -x` traces nothing of this. The
// empty line is for bash, which takes the first word after a script with an open quote for part of
// that script.
std::string Shell::Epilogue() const {
  const bool bash = kind_ == "bash";
  auto frame = [&](const char* word, const char* commands) {
    return Printf() + " '\\000" + nonce_ + " " + word + " '; " + commands + "; " + Printf() +
           " '\\000'; ";
  };
  return "\n{ " + Printf() + " '\\000" + nonce_ +
         " end %s %s\\000' \"$?\" \"$PWD\"; } >&9 2>/dev/null\n{ " +
         (bash ? frame("functions", kBashFunctions) : "") +
         frame("aliases", bash ? "\\builtin alias -p" : "\\command alias") +
         frame("state", bash ? kBashState : kShState) + "} >&9 2>/dev/null\n";
}

// The script has neither end of the private stream, nor the input of others; the shell's own copies
// close when something else is executed.
std::string Shell::Begin(std::string_view script, bool input) {
  ENSURE(idle());
  nonce_ = sys::RandomHex();
  functions_.clear();
  aliases_.clear();
  script_ = script;
  input_ = input;
  begun_ = false;
  ended_ = false;
  return TextOf(script_);
}

std::string Shell::TextOf(std::string_view script) const {
  std::string text = "{ " + Printf() + " '\\000" + nonce_ + " begin\\000'; } >&9 2>/dev/null\n";
  // `$?` is the last script's; where errors end the shell, that would end it.
  bool ends_on_error = state_.find("set -o errexit\n") != std::string::npos;
  if (last_status_ != 0 && !ends_on_error) text += "(exit " + std::to_string(last_status_) + ")\n";
  // Where the evaluated text ends in a line continuation, bash loses what follows it.
  std::string whole = std::string(script) + (script.ends_with('\\') ? "\n\n" : "\n");
  text += "{ \\eval " + codec::ShellWord(whole) + "\n} <" + (input_ ? "&8" : "/dev/null") +
          " 8<&- 9>&-\n" + Epilogue();
  return text;
}

std::optional<ScriptEnd> Shell::Take(std::string_view bytes, std::string* to_shell) {
  std::optional<ScriptEnd> end;
  for (;;) {
    size_t until = bytes.find('\0');
    pending_ += bytes.substr(0, std::min(until, kFrameBytesMax - pending_.size()));
    if (until == std::string_view::npos) break;
    bytes.remove_prefix(until + 1);
    if (pending_.empty()) continue;
    std::optional<ScriptEnd> told = TakeFrame(pending_, to_shell);
    if (told) end = std::move(told);
    pending_.clear();
  }
  // Once, however many shells were announced: it is large.
  if (std::exchange(begins_, false)) *to_shell = Beginning();
  return end;
}

// The state is all that may fail in it: some variables are read-only.
std::string Shell::Beginning() {
  starting_ = sys::RandomHex();
  std::string state = state_;
  if (kind_ == "bash") state += std::string("\n") + kBashDirectory;
  return "\n" + key_ + " go\n{ \\eval " + codec::ShellWord(state) +
         "\n} >/dev/null 2>&1 </dev/null 9>&-\n" + "{ " + Printf() + " '\\000" + starting_ +
         " ready %s\\000' \"$PWD\"; } >&9 2>/dev/null\n";
}

void Shell::TakeCwd(std::string_view cwd) {
  if (cwd.size() <= kCwdBytesMax) cwd_ = cwd;
}

std::optional<ScriptEnd> Shell::TakeFrame(std::string_view frame, std::string* to_shell) {
  auto after = [&frame](const std::string& beginning) {
    bool begins = frame.starts_with(beginning);
    if (begins) frame.remove_prefix(beginning.size());
    return begins;
  };
  if (awaits_shell_ && after(key_ + " shell ")) {
    awaits_shell_ = false;
    begins_ = true;
    ++begun_shells_;
    kind_ = frame == "bash" ? "bash" : "sh";
    // Another kind of shell would misread it.
    if (!restored_kind_.empty() && restored_kind_ != kind_) state_.clear();
    restored_kind_.clear();
    if (state_.empty() && kind_ == "bash") state_ = kBashBeginning;
    return std::nullopt;
  }
  if (!starting_.empty() && after(starting_ + " ready ")) {
    TakeCwd(frame);
    starting_.clear();
    failed_starts_ = 0;
    ready_ = true;
    ++generation_;
    last_status_ = 0;
    if (!nonce_.empty()) *to_shell += TextOf(script_);  // Its shell had ended before.
    return std::exchange(lost_end_, std::nullopt);
  }
  if (after(key_ + " exit ")) {
    int status = 0;
    std::from_chars(frame.data(), frame.data() + frame.size(), status);
    ready_ = false;
    awaits_shell_ = true;
    // A trap in the state can end every shell that is given it, and what never ends is killed.
    if (!starting_.empty() && ++failed_starts_ >= kFailedStartsMax) state_.clear();
    starting_.clear();
    if (nonce_.empty() || !begun_) return std::nullopt;
    nonce_.clear();
    if (std::exchange(ended_, false)) {
      lost_ = true;
    } else {
      lost_end_ = ScriptEnd{status & 255, true};
    }
    return std::nullopt;
  }
  return nonce_.empty() || !after(nonce_ + " ") ? std::nullopt : TakeFrameOfScript(frame);
}

std::optional<ScriptEnd> Shell::TakeFrameOfScript(std::string_view frame) {
  auto after = [&frame](std::string_view beginning) {
    bool begins = frame.starts_with(beginning);
    if (begins) frame.remove_prefix(beginning.size());
    return begins;
  };
  if (after("begin")) {
    begun_ = true;
    script_.clear();
  } else if (!ended_ && after("end ")) {
    int status = 0;
    auto [rest, error] = std::from_chars(frame.data(), frame.data() + frame.size(), status);
    if (error != std::errc()) return std::nullopt;
    frame.remove_prefix(static_cast<size_t>(rest - frame.data()));
    last_status_ = status & 255;
    TakeCwd(frame.substr(frame.empty() ? 0 : 1));
    ended_ = true;
    return ScriptEnd{last_status_, std::exchange(lost_, false)};
  } else if (ended_ && after("functions ")) {
    functions_ = FunctionCommands(frame);
  } else if (ended_ && after("aliases ")) {
    aliases_ = kind_ == "bash" ? frame : AliasCommands(frame);
  } else if (ended_ && after("state ")) {
    // Aliases come last: they would change how the rest is read.
    if (functions_.size() + frame.size() + aliases_.size() <= kStateBytesMax) {
      state_ = std::exchange(functions_, {}) + std::string(frame) + std::exchange(aliases_, {});
    }
    nonce_.clear();
    ended_ = false;
  }
  return std::nullopt;
}

}  // namespace session
