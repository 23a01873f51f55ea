// SPDX-License-Identifier: Apache-2.0
#include "session/shell.h"

#include <catch2/catch.hpp>

namespace session {
namespace {

constexpr char kKey[] = "k1";

std::string Frame(const std::string& text) {
  return std::string("\0", 1) + text + std::string("\0", 1);
}

// The nonce that `sent` asks to be told with: the 32 digits before `word`.
std::string NonceBefore(const std::string& sent, const std::string& word) {
  size_t at = sent.rfind(word);
  REQUIRE(at != std::string::npos);
  REQUIRE(at >= 32);
  return sent.substr(at - 32, 32);
}

// A shell that has said that it is there and is ready.
Shell Ready(const std::string& kind = "bash") {
  Shell shell(kKey);
  std::string reply;
  CHECK_FALSE(shell.Take(Frame(std::string(kKey) + " shell " + kind), &reply));
  CHECK(reply.find("\nk1 go\n") == 0);
  CHECK_FALSE(shell.idle());
  CHECK_FALSE(shell.Take(Frame(NonceBefore(reply, " ready") + " ready /top"), &reply));
  CHECK(shell.idle());
  CHECK(shell.kind() == kind);
  CHECK(shell.cwd() == "/top");
  return shell;
}

TEST_CASE("words are quoted for any shell") {
  CHECK(QuoteWords({"echo", "a'b", ""}) == "'echo' 'a'\\''b' ''");
}

TEST_CASE("a script's end comes before its state, in pieces of any size") {
  Shell shell = Ready();
  std::string sent = shell.Begin("echo 'x'");
  CHECK(sent.find("\\eval 'echo '\\''x'\\''\n'\n") != std::string::npos);
  CHECK_FALSE(shell.idle());
  std::string nonce = NonceBefore(sent, " end ");
  std::string reply;
  auto take_bytes = [&](const std::string& told) {
    std::optional<ScriptEnd> end;
    for (size_t i = 0; i < told.size(); ++i) {
      CHECK_FALSE(end);
      end = shell.Take(told.substr(i, 1), &reply);
    }
    return end;
  };
  std::optional<ScriptEnd> end = take_bytes(Frame(nonce + " end 3 /a dir"));
  REQUIRE(end);
  CHECK(end->status == 3);
  CHECK_FALSE(end->lost);
  CHECK(shell.cwd() == "/a dir");
  CHECK_FALSE(shell.idle());
  CHECK_FALSE(shell.Take(Frame(nonce + " end 4 /"), &reply));
  CHECK_FALSE(take_bytes(Frame(nonce + " state x=1\n")));
  CHECK(shell.state() == "x=1\n");
  CHECK(shell.cwd() == "/a dir");
  CHECK(shell.idle());
  CHECK(reply.empty());
  // `$?` of the next one; where errors end the shell it is left out.
  CHECK(shell.Begin("true").find("\n(exit 3)\n") != std::string::npos);
}

TEST_CASE("a script's standard input is the agent's second input, or empty") {
  Shell shell = Ready();
  CHECK(shell.Begin("cat", true).find("} <&8 8<&- 9>&-\n") != std::string::npos);
  Shell other = Ready("sh");
  CHECK(other.Begin("cat").find("} </dev/null 8<&- 9>&-\n") != std::string::npos);
}

TEST_CASE("a shell that ends before it has told its state is told as lost with the next script") {
  Shell shell = Ready();
  std::string reply;
  std::string nonce = NonceBefore(shell.Begin("x"), " end ");
  REQUIRE(shell.Take(Frame(nonce + " begin") + Frame(nonce + " end 0 /"), &reply));
  CHECK_FALSE(shell.Take(
      Frame(std::string(kKey) + " exit 137") + Frame(std::string(kKey) + " shell bash"), &reply));
  CHECK_FALSE(shell.idle());
  CHECK_FALSE(shell.Take(Frame(NonceBefore(reply, " ready") + " ready /"), &reply));
  REQUIRE(shell.idle());
  for (bool lost : {true, false}) {
    nonce = NonceBefore(shell.Begin("y"), " end ");
    std::optional<ScriptEnd> end =
        shell.Take(Frame(nonce + " end 0 /") + Frame(nonce + " state x=1\n"), &reply);
    REQUIRE(end);
    CHECK(end->lost == lost);
  }
}

TEST_CASE("a script that ends in a line continuation does not reach what follows it") {
  for (const std::string script : {"echo a\\\n", "echo a\\"}) {
    std::string sent = Ready().Begin(script);
    CHECK(sent.find("echo a\\\n\n'\n} </dev/null") != std::string::npos);
  }
}

TEST_CASE("each function is evaluated by itself, and aliases come last") {
  Shell shell = Ready();
  std::string reply;
  std::string nonce = NonceBefore(shell.Begin("x"), " end ");
  REQUIRE(shell.Take(
      Frame(nonce + " end 0 /") +
          Frame(nonce + " functions declare -f f\ndeclare -fx g\ndeclare -f if\n\n" +
                "f () \n{ \n    g () \n}\ng () \n{ \n}\ndeclare -fx g\nfunction if () \n{ \n}\n") +
          Frame(nonce + " aliases alias a='b'\n") + Frame(nonce + " state x=1\n"),
      &reply));
  CHECK(shell.state() ==
        "shopt -s extglob\n"
        "\\eval 'f () \n{ \n    g () \n}\n'\n"
        "\\eval 'g () \n{ \n}\ndeclare -fx g\n'\n"
        "\\eval 'function if () \n{ \n}\n'\n"
        "x=1\nalias a='b'\n");
}

TEST_CASE("the aliases of sh become commands, whatever their values hold") {
  Shell shell = Ready("sh");
  std::string reply;
  std::string nonce = NonceBefore(shell.Begin("x"), " end ");
  REQUIRE(shell.Take(Frame(nonce + " end 0 /") +
                         Frame(nonce + " aliases ll='ls -l'\nq='it'\"'\"'s\ntwo'\n") +
                         Frame(nonce + " state x=1\n"),
                     &reply));
  CHECK(shell.state() == "x=1\n\\alias ll='ls -l'\n\\alias q='it'\"'\"'s\ntwo'\n");
}

TEST_CASE("what is not this script's end does not end it") {
  Shell shell = Ready();
  std::string sent = shell.Begin("true");
  std::string nonce = NonceBefore(sent, " end ");
  std::string reply;
  for (const std::string& other :
       {Frame("0123 end 0 /"), Frame(nonce + " state x=2"), Frame(nonce + " end x /"), Frame(""),
        Frame(std::string(kKey) + "x exit 0"), std::string(100'000, 'y')}) {
    CHECK_FALSE(shell.Take(other, &reply));
    CHECK_FALSE(shell.idle());
  }
  CHECK(shell.state() == "shopt -s expand_aliases");
}

TEST_CASE("a shell that ends gives the next one the state from before its script") {
  Shell shell = Ready();
  std::string reply;
  std::string nonce = NonceBefore(shell.Begin("x=1"), " end ");
  REQUIRE(shell.Take(Frame(nonce + " end 0 /") + Frame(nonce + " state x='1'"), &reply));
  int generation = shell.generation();
  nonce = NonceBefore(shell.Begin("x=2; exit 260"), " end ");
  CHECK_FALSE(shell.Take(Frame(nonce + " begin"), &reply));
  CHECK_FALSE(shell.Take(Frame(std::string(kKey) + " exit 4"), &reply));
  CHECK_FALSE(shell.idle());
  // The frames that the dead shell left unread, read by its successor, do not end it any more.
  CHECK_FALSE(shell.Take(Frame(nonce + " end 0 /") + Frame(nonce + " state x=9"), &reply));
  CHECK_FALSE(shell.Take(Frame(std::string(kKey) + " shell bash"), &reply));
  CHECK(reply.find("'x='\\''1'\\''\n") != std::string::npos);
  std::optional<ScriptEnd> end =
      shell.Take(Frame(NonceBefore(reply, " ready") + " ready /"), &reply);
  REQUIRE(end);
  CHECK(end->status == 4);
  CHECK(end->lost);
  CHECK(shell.generation() == generation + 1);
  CHECK(shell.idle());
}

TEST_CASE("a script whose shell had ended before is the next shell's") {
  for (bool repeated : {true, false}) {
    Shell shell = Ready();
    std::string reply;
    std::string sent = shell.Begin("echo here");
    if (!repeated) shell.DoNotRepeat();
    CHECK_FALSE(shell.Take(Frame(std::string(kKey) + " exit 137"), &reply));
    CHECK_FALSE(shell.Take(Frame(std::string(kKey) + " shell bash"), &reply));
    std::string ready = Frame(NonceBefore(reply, " ready") + " ready /");
    reply.clear();
    CHECK(shell.Take(ready, &reply).has_value() == !repeated);
    CHECK(reply == (repeated ? sent : ""));
    CHECK(shell.idle() == !repeated);
  }
}

TEST_CASE("a shell is announced once, and what it reads is in place of all before") {
  Shell shell = Ready();
  std::string waiting;
  std::string nonce = NonceBefore(shell.Begin("x"), " end ");
  REQUIRE(shell.Take(
      Frame(nonce + " end 0 /") + Frame(nonce + " state " + std::string(100'000, 's')), &waiting));
  shell.Begin("y");
  const std::string announced = Frame(std::string(kKey) + " shell bash");
  for (int i = 0; i < 100; ++i) CHECK_FALSE(shell.Take(announced, &waiting));
  CHECK(waiting.empty());
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE(shell.Take(Frame(std::string(kKey) + " exit 1") + announced, &waiting));
    CHECK(waiting.size() > 100'000);  // The control: it was announced.
    CHECK(waiting.size() < 101'000);
  }
}

TEST_CASE("a state that ends every shell at its beginning is dropped") {
  const std::string exits = Frame(std::string(kKey) + " exit 7");
  const std::string announced = Frame(std::string(kKey) + " shell bash");
  for (bool one_begins : {false, true}) {
    Shell shell = Ready();
    std::string reply;
    std::string nonce = NonceBefore(shell.Begin("x"), " end ");
    REQUIRE(shell.Take(Frame(nonce + " end 0 /") + Frame(nonce + " state trapped"), &reply));
    for (int i = 0; i < 3; ++i) {
      CHECK_FALSE(shell.Take(exits + announced, &reply));
      CHECK(reply.find("trapped") != std::string::npos);
      if (!one_begins || i != 1) continue;
      CHECK_FALSE(shell.Take(Frame(NonceBefore(reply, " ready") + " ready /"), &reply));
    }
    CHECK_FALSE(shell.Take(exits + announced, &reply));
    CHECK((reply.find("trapped") != std::string::npos) == one_begins);
    CHECK_FALSE(shell.Take(Frame(NonceBefore(reply, " ready") + " ready /"), &reply));
    CHECK(shell.idle());
  }
}

TEST_CASE("the beginning of a frame of a shell that was killed hides no other frame") {
  Shell shell = Ready();
  std::string nonce = NonceBefore(shell.Begin("x"), " end ");
  std::string reply;
  CHECK_FALSE(shell.Take(Frame(nonce + " begin") + std::string(1, '\0') + nonce + " end", &reply));
  CHECK_FALSE(shell.Take(Frame(std::string(kKey) + " exit 137"), &reply));
  CHECK_FALSE(shell.Take(Frame(std::string(kKey) + " shell bash"), &reply));
  std::optional<ScriptEnd> end =
      shell.Take(Frame(NonceBefore(reply, " ready") + " ready /"), &reply);
  REQUIRE(end);
  CHECK(end->status == 137);
}

TEST_CASE("a directory that is too long for a message is not taken") {
  Shell shell = Ready();
  std::string reply;
  for (size_t length : {size_t{8000}, size_t{9000}}) {
    std::string nonce = NonceBefore(shell.Begin("cd"), " end ");
    REQUIRE(shell.Take(
        Frame(nonce + " end 0 /" + std::string(length, 'd')) + Frame(nonce + " state "), &reply));
    CHECK(shell.cwd().size() == 8001);
  }
}

TEST_CASE("a state that is too long is not kept, and noise without end is dropped") {
  Shell shell = Ready("sh");
  std::string reply;
  std::string nonce = NonceBefore(shell.Begin("x"), " end ");
  REQUIRE(shell.Take(Frame(nonce + " end 0 /") +
                         Frame(nonce + " state " + std::string((size_t{4} << 20) + 1, 'z')),
                     &reply));
  CHECK(shell.state().empty());
  nonce = NonceBefore(shell.Begin("x"), " end ");
  CHECK(shell.Take(Frame(nonce + " end 0 /") + std::string(1, '\0'), &reply));
  CHECK_FALSE(shell.Take(nonce + " state ", &reply));
  for (int i = 0; i < 9; ++i) CHECK_FALSE(shell.Take(std::string(size_t{1} << 20, 'z'), &reply));
  CHECK_FALSE(shell.idle());
  CHECK_FALSE(shell.Take(std::string(1, '\0'), &reply));
  CHECK(shell.idle());
  CHECK(shell.state().empty());
  nonce = NonceBefore(shell.Begin("y"), " end ");
  CHECK_FALSE(shell.Take(std::string(1, '\0') + std::string(size_t{9} << 20, 'z'), &reply));
  CHECK(shell.Take(Frame(nonce + " end 0 /") + Frame(nonce + " state "), &reply));
}

}  // namespace
}  // namespace session
