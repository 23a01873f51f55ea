// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstdlib>

#include "session/test_steps.h"

namespace session {

// Returns the last steps, one a line: milliseconds, the event, client/job, and the actions.
std::string Render(const std::vector<Seen>& all) {
  std::string text;
  for (size_t i = all.size() - std::min<size_t>(all.size(), 60); i < all.size(); ++i) {
    const auto& [at, event, actions] = all[i];
    text += "\n" + std::to_string((at - all[0].at) / milliseconds(1)) + " " + Name(event.kind) +
            (event.flag ? "!" : "") + (event.error ? " failed " : " ") +
            std::to_string(event.client) + "/" + std::to_string(event.job.id) + ": " +
            Render(actions);
  }
  return text;
}

void World::Judge(const State& before, const Event& event, const std::vector<Action>& actions) {
  const auto& command = state_.command;
  Rule(command.has_value() == running_.has_value() || Count(actions, Do::kSendResult) != 0 ||
           Count(actions, Do::kBegin) != 0,
       "the state's command is the one that runs");
  Rule(state_.help.has_value() == help_.has_value() || Count(actions, Do::kStartHelper) != 0,
       "the state's help is the one that works");
  const bool ends = command && command->stage == Stage::kEnding;
  if (ends && running_ && !running_->ending) {
    running_->ending = now_;
    Rule(Count(actions, running_->told ? Do::kKill : Do::kKillWithShell) == 1,
         "what is to end is killed at once, and no line of its script runs after that");
    Rule(command->reason != EndReason::kTimeout || now_ >= running_->limit, "no early limit");
  }
  std::deque<JobId> queue;
  for (const Job& job : state_.jobs) queue.push_back(job.id);
  Rule(queue == waiting_, "the queue has those that wait, in their order");
  if (event.kind == On::kAsked) {
    const bool refused = before.busy() || !before.jobs.empty();
    const bool faulted = Count(actions, Do::kFault) == 1;
    Rule(faulted == (refused && !event.job.waits), "only a client that does not wait is told busy");
  }
  if (event.kind == On::kTimer && ends && before.command &&
      before.command->stage == Stage::kEnding) {
    Rule(Count(actions, Do::kKill) + Count(actions, Do::kKillWithShell) == 1,
         "what starts while a command is ended is killed too");
  }
  if (event.kind == On::kLeft) {
    Rule(!running_ || help_ || jobs_.at(running_->job).job.client != event.client ||
             before.drains() || command->stage != Stage::kRunning,
         "a command ends with its client");
    Rule(!help_ || jobs_.at(help_->job).job.client != event.client, "help ends with its client");
  }
  if (event.kind == On::kCancel) {
    const auto own = [&](const Job& job) { return job.client == event.client; };
    Rule(std::none_of(state_.jobs.begin(), state_.jobs.end(), own),
         "what is cancelled does not begin");
    Rule(!running_ || help_ || !own(jobs_.at(running_->job).job) || before.drains() ||
             command->stage != Stage::kRunning,
         "a command ends when its client cancels it");
    Rule(!command || before.command->reason || !command->reason ||
             (command->reason == EndReason::kCancelled && own(command->job)),
         "a client cancels its own command alone");
  }
  if (event.kind == On::kNext && !state_.busy() && event.shell.idle &&
      Count(actions, Do::kLook) == 0) {
    Rule(waiting_.empty(), "a job begins when nothing else runs");
  }
  if (event.kind == On::kKilledForMemory) {
    Rule(command->reason == EndReason::kMemory && Count(actions, Do::kKill) == 1,
         "what the kernel left of a command is killed");
  }
  Rule(before.apply <= state_.apply && before.lost <= state_.lost, "an end is for good");
  JudgeTimes(event);
  JudgeTrees(before, event, actions);
}

void World::JudgeTimes(const Event& event) {
  const bool ended_late =
      running_ && running_->ending && now_ >= *running_->ending + milliseconds(10'000);
  const bool shell_late = no_shell_ && now_ >= no_shell_->since + milliseconds(60'000);
  Rule(!state_.lost || ended_late || shell_late, "lost only after its bound");
  if (event.kind != On::kTimer) return;
  const bool begun = state_.command && state_.command->stage == Stage::kRunning;
  const bool waits = running_ || help_ ? begun && !help_ && !facts().ready : !facts().idle;
  if (!waits) {
    no_shell_.reset();
  } else if (!no_shell_ || no_shell_->begun != event.shell.begun) {
    no_shell_ = {no_shell_ ? no_shell_->since : now_, now_ + milliseconds(10'000),
                 event.shell.begun};
  }
  Rule(!no_shell_ || now_ < no_shell_->killed_by, "a shell that is late is killed");
  const bool unended = state_.command && state_.command->stage == Stage::kEnding && ended_late;
  Rule(state_.lost || !(unended || (no_shell_ && shell_late)), "lost after its bound");
  Rule(!help_ || now_ < help_->began + kLimit, "help has a time limit");
  Rule(!running_ || running_->terminal || !state_.command ||
           state_.command->stage != Stage::kRunning || now_ < running_->limit,
       "a command has a time limit");
  Rule(state_.next(now_) > now_ || state_.drains() || state_.lost || (help_ && running_),
       "what is due was done");
}

// A tree is replaced as a whole, or not at all.
void World::JudgeTrees(const State& before, const Event& event,
                       const std::vector<Action>& actions) {
  const bool placed = Count(actions, Do::kPutInPlace) == 1;
  if (event.kind == On::kRenewed && event.error) {
    State same = before;
    same.shell = state_.shell;
    Rule(same == state_ && actions.size() == 1 && actions[0].kind == Do::kFault,
         "a reset that fails changes nothing");
  } else if (event.kind == On::kRenewed) {
    Rule(placed, "a reset puts the second tree in place");
    Rule(Count(actions, Do::kStopHelper) == (before.help ? 1 : 0), "a reset stops a helper");
  } else {
    const bool commits = before.help && before.help->restored &&
                         before.help->job.client == event.client && event.kind == On::kCommit;
    Rule(placed == commits, "its own client commits what was restored");
  }
  if (placed) {
    Rule(!state_.busy() && !state_.ready && !state_.shell_due, "another tree begins anew");
    Rule(state_.jobs == before.jobs, "another tree leaves the queue as it was");
  }
}

Event ResultOf(On kind, const Action& action, const std::string& failed = "") {
  Event event{.kind = kind, .client = action.client, .job = {.id = action.job}};
  if (!failed.empty()) event.error = Error{Code::kIo, failed};
  return event;
}

std::optional<Event> World::Carry(const Action& action) {
  const bool known = action.client == 0 || clients_.contains(action.client);
  Rule(known, "nothing is for a client that has left");
  switch (action.kind) {
    case Do::kFault:
      if (action.job != 0)
        TakeAnswer(action, true);
      else
        Rule(known && std::exchange(clients_[action.client].resets, false),
             "a fault was asked for");
      break;
    case Do::kDone: {
      const MessageKind kind = jobs_[action.job].job.kind;
      TakeAnswer(action, kind != MessageKind::kTerminal && kind != MessageKind::kRestore);
      break;
    }
    case Do::kSendState: {
      Client& client = clients_[action.client];
      Rule(std::exchange(client.resets, false) || std::exchange(client.awaits_state, false),
           "a state was asked for");
      break;
    }
    case Do::kSendSnapshot:
      Rule(jobs_[action.job].job.kind == MessageKind::kSnapshot, "a snapshot was asked for");
      TakeAnswer(action, true);
      break;
    case Do::kSendResult: {
      Rule(running_ && running_->told, "a result is told after the end");
      if (!running_) break;
      Rule(running_->killed_generation < generation_, "a killed shell's successor is awaited");
      const Job job = jobs_[running_->job].job;
      if (clients_.contains(job.client)) TakeAnswer({Do::kSendResult, job.client, job.id}, true);
      running_.reset();
      return Event{On::kTold};
    }
    case Do::kReportReady:
      Rule(generation_ > 0, "ready when a shell was");
      if (begun_ == 1 && Chance(1)) return Event{On::kAbandoned};
      break;
    case Do::kClose:  // The client's leaving follows by chance, as any client's.
    case Do::kOmitPut:
      break;
    case Do::kKill:
      Rule(running_ && state_.command && state_.command->reason, "what is killed is to end");
      break;
    case Do::kKillWithShell:
      Rule(running_ && !running_->told && state_.command && state_.command->reason,
           "only a shell whose script is to end is killed with it");
      if (running_) running_->killed_generation = generation_;
      KillShell();
      break;
    case Do::kKillShell:
      Rule(no_shell_ && now_ >= no_shell_->killed_by, "only a shell that is late is killed");
      if (no_shell_) no_shell_->killed_by = TimePoint::max();
      KillShell();
      break;
    case Do::kCheckMemory:
      if (Chance(10)) return Event{On::kKilledForMemory};
      break;
    case Do::kForgiveMemory:
      Rule(state_.absorbs(now_), "memory is forgiven to what is being ended");
      break;
    default:
      return CarryHelp(action);
  }
  return std::nullopt;
}

std::optional<Event> World::CarryHelp(const Action& action) {
  switch (action.kind) {
    case Do::kLook:
      Start(action);
      TakeAnswer(action, true);
      return Event{On::kNext};
    case Do::kBegin:
      Start(action);
      Rule(!help_, "a command does not begin beside a helper");
      if (Chance(5)) return ResultOf(On::kBegun, action, "hiding");
      Begin(action.job, false);
      return ResultOf(On::kBegun, action);
    case Do::kBeginTerminal:
      Rule(jobs_[action.job].fate == Fate::kStarted && !help_, "a terminal begins once it is open");
      Begin(action.job, true);
      break;
    case Do::kStartHelper:
      Start(action);
      Rule(!help_, "one helper at a time");
      help_ = {action.job, now_};
      return ResultOf(On::kStarted, action, Chance(10) ? "starting" : "");
    case Do::kStopHelper:
      Rule(help_.has_value(), "only a helper is stopped");
      help_.reset();
      break;
    case Do::kRenew:
      fresh_ = Chance(80);
      return ResultOf(On::kRenewed, action, fresh_ ? "" : "renewing");
    case Do::kPutInPlace:
      return PutInPlace(action);
    default:
      break;
  }
  return std::nullopt;
}

std::optional<Event> World::PutInPlace(const Action& action) {
  const bool restores = action.job != 0;
  Rule(restores ? help_ && help_->restored && help_->job == action.job : !help_ && fresh_,
       "a whole tree is put in place");
  if (running_) {
    const Asked& asked = jobs_[running_->job];
    Rule(asked.fate == Fate::kAnswered || !clients_.contains(asked.job.client),
         "a command that a new tree ends is told so");
  }
  running_.reset();
  help_.reset();
  no_shell_.reset();
  fresh_ = pending_end_ = lost_end_ = hung_ = false;
  phase_ = Phase::kNone;
  generation_ = begun_ = 0;
  if (Chance(10)) return ResultOf(On::kPlaced, action, "placing");
  if (restores) {
    Rule(jobs_[action.job].fate == Fate::kDone, "what is committed was restored");
    jobs_[action.job].fate = Fate::kAnswered;
    clients_[action.client].awaits_state = true;
  }
  return ResultOf(On::kPlaced, action);
}

void World::TakeAnswer(const Action& action, bool last) {
  auto asked = jobs_.find(action.job);
  if (asked == jobs_.end()) return Break("an answer is about a job");
  Rule(asked->second.job.client == action.client, "an answer is for who asked");
  Rule(asked->second.fate < (last ? Fate::kAnswered : Fate::kDone), "one answer to each job");
  asked->second.fate = last ? Fate::kAnswered : Fate::kDone;
  std::erase(waiting_, action.job);  // Told "busy".
  if (!last && help_ && help_->job == action.job) help_->restored = true;
}

// A job leaves the queue.
void World::Start(const Action& action) {
  Asked& asked = jobs_[action.job];
  Rule(asked.fate == Fate::kWaits && clients_.contains(asked.job.client) &&
           asked.job.client == action.client,
       "what begins waits, and its client is there");
  asked.fate = Fate::kStarted;
  auto first = std::find_if(waiting_.begin(), waiting_.end(), [&](JobId job) {
    return !running_ || jobs_[job].job.kind != MessageKind::kExec;
  });
  Rule(first != waiting_.end() && *first == action.job, "the oldest begins");
  Rule(!help_, "nothing begins beside a helper");
  const MessageKind kind = asked.job.kind;
  Rule(!running_ ||
           (running_->terminal && kind != MessageKind::kExec && kind != MessageKind::kTerminal),
       "only what works with files begins beside a terminal");
  Rule(running_ || facts().idle, "a job begins when the shell is ready");
  std::erase(waiting_, action.job);
}

void World::Begin(JobId job, bool terminal) {
  Rule(!running_, "one command at a time");
  Rule(facts().idle, "a command begins when the shell waits for it");
  const milliseconds limit = jobs_[job].job.limit;
  running_ = {job, now_ + (limit > milliseconds(0) ? limit : kLimit), terminal};
  phase_ = Phase::kScript;
  hung_ = Chance(15);
}

void World::KillShell() {
  if (phase_ == Phase::kScript) (Chance(30) ? pending_end_ : lost_end_) = true;
  phase_ = Phase::kNone;
  hung_ = false;
}

// Returns false if the shell does nothing now. In a world that works, all that can go on does.
bool World::MoveShell(bool works) {
  const bool dies = !works && Chance(3);
  Event says{On::kShell};
  if (std::exchange(pending_end_, false)) {
    says.flag = true;
  } else if (phase_ == Phase::kNone) {
    if (gone_) return false;
    phase_ = Phase::kStarts;
    hung_ = !works && Chance(5);
    ++begun_;
  } else if (dies) {
    if (phase_ == Phase::kScript) lost_end_ = true;
    phase_ = Phase::kNone;
  } else if (hung_ || phase_ == Phase::kIdle) {
    return false;
  } else if (phase_ == Phase::kStarts) {
    phase_ = Phase::kIdle;
    ++generation_;
    says.flag = std::exchange(lost_end_, false);
  } else if (phase_ == Phase::kScript) {
    if (!works && running_ && running_->terminal && !Chance(10)) return false;
    phase_ = Chance(50) ? Phase::kTold : Phase::kIdle;
    hung_ = !works && phase_ == Phase::kTold && Chance(5);
    says.flag = true;
  } else {
    phase_ = Phase::kIdle;
  }
  if (running_ && says.flag) running_->told = true;
  Happen(says);
  return true;
}

std::optional<ClientId> World::AnyClient() {
  if (clients_.empty()) return std::nullopt;
  return std::next(clients_.begin(), static_cast<int>(Below(clients_.size())))->first;
}

void World::MoveClient() {
  if (clients_.size() < 2 || (clients_.size() < 5 && Chance(10))) clients_[++last_client_];
  const ClientId id = *AnyClient();
  Client& client = clients_[id];
  const uint64_t what = Below(100);
  if (what < 60) {
    constexpr MessageKind kKinds[] = {
        MessageKind::kExec,     MessageKind::kExec,     MessageKind::kExec,
        MessageKind::kDiff,     MessageKind::kApply,    MessageKind::kPut,
        MessageKind::kGet,      MessageKind::kSnapshot, MessageKind::kRestore,
        MessageKind::kTerminal, MessageKind::kTerminal, MessageKind::kRestore};
    Job job{++last_job_, id, kKinds[Below(std::size(kKinds))]};
    job.waits = job.kind != MessageKind::kTerminal && Chance(85);
    if (Chance(50)) job.limit = milliseconds(7000);
    jobs_[job.id] = {job};
    waiting_.push_back(job.id);
    Happen({On::kAsked, id, job});
  } else if (what < 70) {
    if (!std::exchange(client.awaits_state, true)) Happen({On::kStatus, id});
  } else if (what < 76) {
    const bool own = help_ && help_->restored && Chance(70);
    const ClientId who = own ? jobs_[help_->job].job.client : id;
    if (!clients_[who].awaits_state) Happen({On::kCommit, who});
  } else if (what < 79 && !client.resets) {
    client.resets = true;
    Happen({.kind = On::kReset, .client = id, .flag = !Chance(5)});
  } else if (what < 80 && Chance(20)) {
    Happen({.kind = On::kDelete, .client = id, .flag = Chance(50)});
  } else if (what >= 95) {
    Happen({On::kCancel, id});
  } else if (what >= 90) {
    Leave(id);
  }
}

void World::Leave(ClientId id) {
  std::erase_if(waiting_, [&](JobId job) { return jobs_[job].job.client == id; });
  clients_.erase(id);
  Happen({On::kLeft, id});
}

bool World::EndHelp(bool works) {
  if (!help_ || !std::exchange(help_->works, false)) return false;
  Event helped{On::kHelped};
  if (!works && Chance(25)) helped.error = Error{Code::kIo, "helping"};
  Happen(helped);
  return true;
}

// One random event.
void World::Turn() {
  const uint64_t what = Below(100);
  if (what < 25) return MoveClient();
  if (what < 50) return (void)MoveShell(false);
  if (what < 58) return (void)EndHelp(false);
  if (what < 60 && running_ && !running_->terminal) return Happen({On::kOutputTooLong});
  if (what < 62) return Happen({On::kMemory});
  if (what < 70 && state_.drains()) return Happen({On::kDrained});
  if (what < 80) {
    constexpr int kSpans[] = {1, 5, 60, 300, 2000, 2000, 12'000, 31'000};
    now_ += milliseconds(Below(static_cast<uint64_t>(kSpans[Below(std::size(kSpans))])));
    return Happen({On::kTimer});
  }
  Happen({what < 88 ? On::kTimer : On::kNext});
}

// The world works, and no client asks any more: all comes to an end.
void World::Rest() {
  for (int turns = 0; turns < 500 && broken_.empty() && !concluded(); ++turns) {
    if (running_ && running_->terminal && !running_->ending)
      hung_ = false;  // The person leaves it.
    const bool moved = MoveShell(true) || EndHelp(true);
    if (help_ && help_->restored && !clients_[jobs_[help_->job].job.client].awaits_state) {
      Happen({On::kCommit, jobs_[help_->job].job.client});
    }
    Happen({On::kTimer});
    Happen({On::kNext});
    const bool drains = state_.drains();
    if (drains) Happen({On::kDrained});
    if (moved || drains) continue;
    const TimePoint next = state_.next(now_);
    if (next == TimePoint::max()) {
      // A person leaves a terminal on which nothing comes any more.
      if (!gone_ || !running_ || !running_->terminal) break;
      Leave(jobs_[running_->job].job.client);
      continue;
    }
    now_ = std::max(now_, next) + milliseconds(Below(500));
  }
  if (!broken_.empty() || concluded()) return;
  Rule(!gone_ || facts().idle, "a sandbox without a shell is lost");
  Rule(!state_.busy() && state_.jobs.empty() && facts().idle && !state_.shell_due,
       "in the end, nothing runs or waits");
  for (const auto& [id, job] : jobs_) {
    Rule(job.fate == Fate::kAnswered || !clients_.contains(job.job.client),
         "in the end, each job is answered");
  }
  for (const auto& [id, client] : clients_) {
    Rule(!client.awaits_state && !client.resets, "in the end, each state is told");
  }
}

std::string World::Play() {
  gone_ = false;
  const uint64_t turns = 20 + Below(80);
  for (uint64_t turn = 0; turn < turns && broken_.empty() && !concluded(); ++turn) Turn();
  if (Chance(3)) gone_ = true;
  if (broken_.empty() && !concluded()) Rest();
  return broken_.empty() ? "" : broken_ + Render(seen_);
}

TEST_CASE("No order of events breaks a rule") {
  const char* chosen = std::getenv("AGENTIC_CI_SEED");
  const uint64_t first = chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : 1;
  const uint64_t last = chosen != nullptr ? first : kGames;
  std::map<Do, int> done;
  for (uint64_t seed = first; seed <= last; ++seed) {
    World world(seed, Step);
    const std::string broken = world.Play();
    if (!broken.empty()) FAIL("AGENTIC_CI_SEED=" << seed << ": " << broken);
    for (const Seen& seen : world.seen()) {
      for (const Action& action : seen.actions) ++done[action.kind];
    }
  }
  for (int kind = 0; chosen == nullptr && kind <= static_cast<int>(Do::kPutInPlace); ++kind) {
    INFO(Name(Do{kind}));
    CHECK(done[Do{kind}] > 100);
  }
}

}  // namespace session
