// SPDX-License-Identifier: Apache-2.0
// The shell of a sandbox that lasts, driven over one private stream: scripts go in as text that any
// POSIX shell reads, and what they ended with comes back in frames that carry a nonce. The sandbox
// can end its own shell or confuse it; that harms its own results only, and never what reads them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace session {

// Returns a command line of those words, each quoted.
std::string QuoteWords(const std::vector<std::string>& words);

// Returns the program of the sandbox's agent: keeps a shell running, bash where the sandbox has
// one, else sh, on its standard input. A shell that ended is followed by another one.
std::vector<std::string> KeeperArguments(const std::string& key);

// The end of one script, as its shell reports it.
struct ScriptEnd {
  int status = 0;  // The status as in `$?`: 128 + N after signal N.
  // True if the shell ended with it, or just before it; a new one has the state from before.
  bool lost = false;
};

class Shell {
 public:
  explicit Shell(std::string key) : key_(std::move(key)) {}
  // Goes on where a shell of that kind was.
  Shell(std::string key, std::string kind, std::string state)
      : key_(std::move(key)), state_(std::move(state)), restored_kind_(std::move(kind)) {}

  // Returns the bytes that run `script`; call Take() until it has ended. Only while idle(), which
  // follows its end once the shell has told its state. With `input`, the script's standard input is
  // the agent's second one; otherwise it is empty.
  std::string Begin(std::string_view script, bool input = false);
  // Takes what the stream said. `to_shell` is what waits to be written there: appends to it, or
  // where a shell begins, replaces it by what that shell is to read. A script's end comes once.
  std::optional<ScriptEnd> Take(std::string_view bytes, std::string* to_shell);

  // Keeps the next shell from beginning a script that its shell has not begun.
  void DoNotRepeat() { begun_ = true; }

  // True if a shell is there that has read its state.
  bool ready() const { return ready_; }
  // True if a shell waits for a script.
  bool idle() const { return ready_ && nonce_.empty(); }
  // Returns the kind of the shell: "bash" or "sh"; empty until a shell was ready.
  const std::string& kind() const { return kind_; }
  // Returns how many shells were ready so far.
  int generation() const { return generation_; }
  // Returns how many shells were begun so far.
  int begun_shells() const { return begun_shells_; }
  // Returns the directory that the shell was last in.
  const std::string& cwd() const { return cwd_; }
  // Returns what a new shell is given: variables, functions, options, traps and the directory.
  const std::string& state() const { return state_; }

 private:
  std::optional<ScriptEnd> TakeFrame(std::string_view frame, std::string* to_shell);
  // Takes what the script that runs has told, without its nonce.
  std::optional<ScriptEnd> TakeFrameOfScript(std::string_view frame);
  std::string Beginning();
  void TakeCwd(std::string_view cwd);
  std::string TextOf(std::string_view script) const;
  std::string Epilogue() const;
  std::string Printf() const;

  std::string key_;
  std::string kind_;
  std::string cwd_;
  std::string state_;
  std::string restored_kind_;  // The kind of the shell that state_ is of; empty for this one.
  std::string nonce_;          // The nonce of the script that runs,
  std::string script_;         // and that script, until its shell has begun it.
  std::string functions_;      // What it told of its state so far, as commands.
  std::string aliases_;
  bool input_ = false;
  bool begun_ = false;
  bool awaits_shell_ = true;  // True if none was announced, or the last one has ended.
  bool begins_ = false;       // True if one was announced just now.
  std::string starting_;      // The nonce of the shell that is being started.
  int failed_starts_ = 0;     // The shells that ended before they were ready, one after another.
  bool ready_ = false;
  int begun_shells_ = 0;
  int generation_ = 0;
  int last_status_ = 0;
  bool ended_ = false;  // Its end was told, and its state is still to come.
  bool lost_ = false;   // Its shell ended meanwhile: told with the next script's end.
  std::optional<ScriptEnd> lost_end_;  // Its shell ended with it: told when the next one is ready.
  std::string pending_;
};

}  // namespace session
