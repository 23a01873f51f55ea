// SPDX-License-Identifier: Apache-2.0
#include "session/steps.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "session/test_steps.h"

namespace session {

const char* Name(On kind) {
  constexpr const char* kNames[] = {
      "asked",     "status", "commit", "reset",  "delete",  "cancel",  "left",
      "shell",     "helped", "output", "memory", "drained", "timer",   "next",
      "abandoned", "killed", "told",   "begun",  "started", "renewed", "placed"};
  return kNames[static_cast<size_t>(kind)];
}

const char* Name(Do kind) {
  constexpr const char* kNames[] = {
      "fault",          "done",       "state",    "snapshot",   "result",    "ready",       "close",
      "look",           "begin",      "terminal", "start help", "stop help", "omit",        "kill",
      "kill shell too", "kill shell", "memory?",  "forgive",    "renew",     "put in place"};
  return kNames[static_cast<size_t>(kind)];
}

std::string Render(const std::vector<Action>& actions) {
  std::string text;
  for (const Action& action : actions) {
    text += std::string(text.empty() ? "" : "; ") + Name(action.kind);
    if (action.client == 0) continue;
    text += " " + std::to_string(action.client) + "/" + std::to_string(action.job);
  }
  return text;
}

size_t Count(const std::vector<Action>& actions, Do kind) {
  return static_cast<size_t>(std::count_if(actions.begin(), actions.end(),
                                           [&](const Action& one) { return one.kind == kind; }));
}

void World::Happen(Event event) {
  for (std::optional<Event> next = std::move(event); next && broken_.empty();) {
    next->shell = facts();
    const Event now = *std::exchange(next, {});
    const State before = state_;
    const std::vector<Action> actions = step_(state_, now, now_);
    seen_.push_back({now_, now, actions});
    for (const Action& action : actions) {
      std::optional<Event> result = Carry(action);
      Rule(!result || !next, "two results in one list");
      if (result) next = std::move(result);
    }
    Judge(before, now, actions);
  }
}

namespace {

// Returns the number of games until a rule is broken; 0 if none is.
uint64_t GamesUntilBroken(const StepFunction& step) {
  for (uint64_t seed = 1; seed <= kGames; ++seed) {
    if (!World(seed, step).Play().empty()) return seed;
  }
  return 0;
}

TEST_CASE("An action that is left out, or done twice, breaks a rule") {
  for (Do kind : {Do::kFault, Do::kDone, Do::kSendState, Do::kSendSnapshot, Do::kSendResult,
                  Do::kLook, Do::kBegin, Do::kBeginTerminal, Do::kStartHelper, Do::kStopHelper,
                  Do::kKill, Do::kKillWithShell, Do::kKillShell, Do::kRenew, Do::kPutInPlace}) {
    INFO(Name(kind));
    CHECK(GamesUntilBroken([kind](State& state, const Event& event, TimePoint now) {
            std::vector<Action> actions = Step(state, event, now);
            std::erase_if(actions, [&](const Action& action) { return action.kind == kind; });
            return actions;
          }) > 0);
    if (kind == Do::kKill || kind == Do::kKillWithShell || kind == Do::kKillShell) continue;
    CHECK(GamesUntilBroken([kind](State& state, const Event& event, TimePoint now) {
            std::vector<Action> actions = Step(state, event, now);
            for (size_t i = 0; i < actions.size(); ++i) {
              if (actions[i].kind == kind)
                return actions.insert(actions.begin() + i, actions[i]), actions;
            }
            return actions;
          }) > 0);
  }
}

struct Wrong {
  const char* what;
  std::function<void(State&, Event&)> before;
  std::function<void(State&, const Event&)> after;
};

TEST_CASE("A state that is wrong breaks a rule") {
  const Wrong wrongs[] = {
      {"the newest job begins",
       [](State& state, Event&) { std::reverse(state.jobs.begin(), state.jobs.end()); },
       [](State& state, const Event&) { std::reverse(state.jobs.begin(), state.jobs.end()); }},
      {"anyone commits",
       [](State& state, Event& event) {
         if (event.kind == On::kCommit && state.help) event.client = state.help->job.client;
       },
       {}},
      {"a killed shell's successor is not awaited",
       {},
       [](State& state, const Event&) {
         if (state.command) state.command->killed_generation.reset();
       }},
      {"a terminal is any command",
       [](State& state, Event&) {
         if (state.command) state.command->terminal = true;
       },
       {}},
      {"a command has no time limit",
       {},
       [](State& state, const Event&) {
         if (state.command) state.command->ends = TimePoint::max();
       }},
      {"a helper has no time limit",
       {},
       [](State& state, const Event&) {
         if (state.help) state.help->ends = TimePoint::max();
       }},
      {"a shell is given up early",
       {},
       [](State& state, const Event&) { state.lost = state.lost || state.shell_due; }},
      {"a shell is never given up", [](State& state, Event&) { state.shell_due.reset(); }, {}},
      {"a command outlives its client",
       [](State& state, Event& event) {
         if (event.kind == On::kLeft && state.command) event.client = 0;
       },
       {}},
      {"what is cancelled goes on",
       [](State&, Event& event) {
         if (event.kind == On::kCancel) event.client = 0;
       },
       {}},
      {"anyone cancels",
       [](State& state, Event& event) {
         if (event.kind == On::kCancel && state.command) event.client = state.command->job.client;
       },
       {}},
      {"a new tree is ready at once",
       {},
       [](State& state, const Event& event) {
         if (event.kind == On::kRenewed) state.ready = true;
       }},
      {"a shell that ran a script waits for the next",
       [](State&, Event& event) { event.shell.idle = true; },
       {}},
  };
  for (const Wrong& wrong : wrongs) {
    INFO(wrong.what);
    CHECK(GamesUntilBroken([&wrong](State& state, Event event, TimePoint now) {
            if (wrong.before) wrong.before(state, event);
            std::vector<Action> actions = Step(state, event, now);
            if (wrong.after) wrong.after(state, event);
            return actions;
          }) > 0);
  }
}

// One row of a table: what happens so many milliseconds later, and what is to be done.
struct Row {
  Event event;
  std::string_view actions;
  int later_ms = 0;
};

Event Asks(ClientId client, JobId job, MessageKind kind, bool waits = true) {
  return {On::kAsked, client, {job, client, kind, waits}};
}

Event Says(bool idle, int generation, bool ended = false) {
  return {.kind = On::kShell, .flag = ended, .shell = {idle, generation, generation, true}};
}

// Plays the rows, and returns the state in the end. The shell is as it last said, until a command
// begins.
State Play(const std::vector<Row>& rows) {
  State state{.command_timeout = kLimit};
  TimePoint now{std::chrono::hours(1)};
  ShellFacts shell;
  for (const auto& [told, actions, later_ms] : rows) {
    now += milliseconds(later_ms);
    Event event = told;
    if (event.kind == On::kShell) shell = event.shell;
    event.shell = shell;
    const std::vector<Action> done = Step(state, event, now);
    INFO("row " << &told - &rows[0].event << ": " << Name(event.kind));
    CHECK(Render(done) == actions);
    if (Count(done, Do::kBegin) + Count(done, Do::kBeginTerminal) != 0) shell.idle = false;
  }
  return state;
}

// A terminal of client 1 that runs, and a put of client 2 that a helper works on.
std::vector<Row> TerminalAndPut(const std::vector<Row>& then) {
  std::vector<Row> rows = {{Says(true, 1), "ready"},
                           {Asks(1, 1, MessageKind::kTerminal, false), ""},
                           {{On::kNext}, "start help 1/1"},
                           {{On::kHelped}, "stop help; terminal 1/1; done 1/1"},
                           {Asks(3, 2, MessageKind::kExec), ""},
                           {Asks(2, 3, MessageKind::kPut), ""},
                           {{On::kNext}, "start help 2/3"}};
  rows.insert(rows.end(), then.begin(), then.end());
  return rows;
}

TEST_CASE("A terminal whose client leaves ends once the helper beside it has") {
  State state = Play(TerminalAndPut({{{On::kLeft, 1}, ""},
                                     {{On::kTimer}, ""},
                                     {{On::kHelped}, "stop help; kill shell too; omit; done 2/3"},
                                     {{On::kTimer}, "kill"},
                                     {Says(true, 2, true), ""},
                                     {{On::kTimer}, "kill"},
                                     {{On::kDrained}, "result"},
                                     {{On::kTold}, "begin 3/2"}}));
  CHECK(state.command->job.id == 2);
  state = Play(TerminalAndPut({{{On::kLeft, 2}, "stop help"}, {{On::kTimer}, ""}}));
  CHECK(state.command->stage == Stage::kRunning);
  CHECK_FALSE(state.help);
}

TEST_CASE("A command does not wait for a shell that hangs in place of its own") {
  Event begins = Says(false, 1);
  begins.shell.ready = false;
  const State state = Play({{Says(true, 1), "ready"},
                            {Asks(1, 1, MessageKind::kExec), ""},
                            {{On::kNext}, "begin 1/1"},
                            {begins, ""},
                            {{On::kTimer}, ""},
                            {{On::kTimer}, "", 9'999},
                            {{On::kTimer}, "kill shell", 1}});
  CHECK(state.command->stage == Stage::kRunning);
}

TEST_CASE("A terminal that ends beside a helper is drained once the helper has ended") {
  Play(TerminalAndPut({{Says(true, 1, true), ""},
                       {{On::kTimer}, ""},
                       {{On::kNext}, ""},
                       {{On::kHelped}, "stop help; memory?; omit; done 2/3"},
                       {{On::kDrained}, "result"},
                       {{On::kTold}, "begin 3/2"}}));
}

TEST_CASE("Memory that is reached ends the helper and the command, and nothing without a command") {
  const TimePoint later{std::chrono::hours(2)};
  State state = Play(TerminalAndPut(
      {{{On::kMemory}, "fault 2/3; stop help; kill shell too; forgive"}, {{On::kMemory}, ""}}));
  CHECK(state.absorbs(TimePoint{std::chrono::hours(1)}));
  CHECK_FALSE(state.absorbs(later));
  // The client of the terminal had left: it is not ended for its memory.
  state = Play(TerminalAndPut(
      {{{On::kLeft, 1}, ""}, {{On::kMemory}, "fault 2/3; stop help; kill shell too"}}));
  CHECK_FALSE(state.absorbs(TimePoint{std::chrono::hours(1)}));
  state = Play({{Says(true, 1), "ready"},
                {Asks(1, 1, MessageKind::kPut), ""},
                {{On::kNext}, "start help 1/1"},
                {{On::kMemory}, ""}});
  CHECK(state.help);
}

TEST_CASE(
    "A shell that told its end just before it was killed is followed before the next command") {
  Play({{Says(true, 1), "ready"},
        {Asks(1, 1, MessageKind::kExec), ""},
        {Asks(2, 2, MessageKind::kExec), ""},
        {{On::kNext}, "begin 1/1"},
        {{On::kTimer}, "kill shell too", 30'000},
        {Says(false, 1, true), ""},
        {{On::kTimer}, "kill", 5},
        {{On::kNext}, ""},
        {Says(false, 1), ""},
        {{On::kTimer}, "kill", 2500},
        {Says(true, 2), ""},
        {{On::kTimer}, "kill", 5},
        {{On::kDrained}, "result"},
        {{On::kTold}, "begin 2/2"}});
}

TEST_CASE("A command that had ended before its client left costs no shell") {
  Play({{Says(true, 1), "ready"},
        {Asks(1, 1, MessageKind::kExec), ""},
        {{On::kNext}, "begin 1/1"},
        {Says(false, 1, true), ""},
        {{On::kLeft, 1}, "kill"},
        {{On::kTimer}, "kill"},
        {{On::kDrained}, "result"}});
}

TEST_CASE("A killed shell's successor has two seconds, and the sandbox ten") {
  std::vector<Row> rows = {{Says(true, 1), "ready"},
                           {Asks(1, 1, MessageKind::kExec), ""},
                           {{On::kNext}, "begin 1/1"},
                           {{On::kOutputTooLong}, "kill shell too"}};
  rows.push_back({{On::kTimer}, "kill", 1999});
  rows.push_back({{On::kTimer}, "kill shell too", 1});
  rows.push_back({{On::kTimer}, "kill shell too", 7999});
  CHECK_FALSE(Play(rows).lost);
  rows.push_back({{On::kTimer}, "kill", 1});
  CHECK(Play(rows).lost);
}

TEST_CASE("A reset while a command is drained is told to both clients, and leaves the queue") {
  const Event renewed{On::kRenewed, 2};
  State state = Play({{Says(true, 1), "ready"},
                      {Asks(1, 1, MessageKind::kExec), ""},
                      {Asks(3, 2, MessageKind::kExec), ""},
                      {{On::kNext}, "begin 1/1"},
                      {Says(true, 1, true), ""},
                      {{On::kTimer}, "memory?"},
                      {{.kind = On::kReset, .client = 2, .flag = true}, "renew 2/0"},
                      {renewed, "fault 1/1; put in place 2/0"},
                      {{On::kPlaced, 2}, "state 2/0"}});
  State fresh{.command_timeout = kLimit, .shell = state.shell};
  fresh.jobs = {{2, 3, MessageKind::kExec}};
  CHECK(state == fresh);
}

TEST_CASE("Only the client that restored commits, and a reset ends what it restores") {
  const Event failed{.kind = On::kRenewed, .client = 2, .error = Error{Code::kIo, "no room"}};
  Play({{Says(true, 1), "ready"},
        {Asks(1, 1, MessageKind::kRestore), ""},
        {{On::kCommit, 1}, "close 1/0"},
        {{On::kNext}, "start help 1/1"},
        {{On::kCommit, 1}, "close 1/0"},
        {{On::kHelped}, "done 1/1"},
        {{On::kCommit, 2}, "close 2/0"},
        {failed, "fault 2/0"},
        {{On::kRenewed, 2}, "fault 1/1; stop help; put in place 2/0"},
        {{On::kPlaced, 2}, "state 2/0"},
        {{On::kCommit, 1}, "close 1/0"}});
  State state = Play({{Says(true, 1), "ready"},
                      {Asks(1, 1, MessageKind::kRestore), ""},
                      {{On::kNext}, "start help 1/1"},
                      {{On::kHelped}, "done 1/1"},
                      {{On::kCommit, 1}, "put in place 1/1"},
                      {{On::kPlaced, 1, {1}}, ""},
                      {Says(false, 0), ""},
                      {Says(true, 1), "ready; state 1/0"}});
  CHECK_FALSE(state.busy());
}

TEST_CASE("The next timer is due when something may be") {
  const TimePoint begin{std::chrono::hours(1)};
  auto next_ms = [&](const std::vector<Row>& rows) {
    const TimePoint next = Play(rows).next(begin);
    return next == TimePoint::max() ? -1 : (next - begin) / milliseconds(1);
  };
  std::vector<Row> rows = {{Says(true, 1), "ready"}, {Asks(1, 1, MessageKind::kExec), ""}};
  CHECK(next_ms(rows) == -1);
  rows.push_back({{On::kNext}, "begin 1/1"});
  CHECK(next_ms(rows) == 30'000);
  rows.push_back({{On::kLeft, 1}, "kill shell too"});
  CHECK(next_ms(rows) == 5);
  CHECK(next_ms(TerminalAndPut({})) == 30'000);
  CHECK(next_ms(TerminalAndPut({{{On::kLeft, 2}, "stop help"}})) == -1);
  CHECK(next_ms({{{On::kTimer}, ""}}) == 10'000);
  CHECK(next_ms({{{On::kTimer}, ""}, {{On::kTimer}, "kill shell", 10'000}}) == 60'000);
}

TEST_CASE("Each client that asked for the end is told of it, and one of them applies") {
  State state = Play({{{.kind = On::kDelete, .client = 1}, ""},
                      {{.kind = On::kDelete, .client = 2, .flag = true}, ""},
                      {{.kind = On::kDelete, .client = 3}, ""},
                      {{On::kLeft, 3}, ""}});
  CHECK((state.ended && state.apply && !state.reset));
  CHECK(state.awaits_end == std::set<ClientId>{1, 2});
  state = Play({{{.kind = On::kReset, .client = 1}, ""}});
  CHECK((state.reset && !state.ended));
  CHECK(state.awaits_end == std::set<ClientId>{1});
}

}  // namespace
}  // namespace session
