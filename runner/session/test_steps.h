// SPDX-License-Identifier: Apache-2.0
// For tests of steps.h: steps as text, and a World that plays random orders of events and judges
// each step by rules of its own. With AGENTIC_CI_SEED=N, only the game of that seed is played.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "session/steps.h"

namespace session {

using std::chrono::milliseconds;
using On = Event::Kind;
using Do = Action::Kind;
using Stage = State::Stage;
using StepFunction = std::function<std::vector<Action>(State&, const Event&, TimePoint)>;

constexpr milliseconds kLimit{30'000};  // Of a command and of a helper.
constexpr uint64_t kGames = 10'000;

const char* Name(On kind);
const char* Name(Do kind);
size_t Count(const std::vector<Action>& actions, Do kind);
// Returns the actions as "what client/job; ...".
std::string Render(const std::vector<Action>& actions);

// One step that was taken.
struct Seen {
  TimePoint at;
  Event event;
  std::vector<Action> actions;
};

// A sandbox and its clients, which play a random order of events by `step`, carry out what it says,
// and judge that by rules of their own. What is random follows from the seed alone.
class World {
 public:
  World(uint64_t seed, StepFunction step) : random_(seed), step_(std::move(step)) {
    state_.command_timeout = kLimit;
  }

  // Returns the first rule that was broken, and after which events; empty if none was.
  std::string Play();
  const std::vector<Seen>& seen() const { return seen_; }

 private:
  struct Client {
    bool awaits_state = false;  // From a status or a commit,
    bool resets = false;        // or a reset.
  };
  enum class Fate { kWaits, kStarted, kDone, kAnswered };  // kDone: but the last answer is to come.
  struct Asked {
    Job job;
    Fate fate = Fate::kWaits;
  };
  struct Running {
    JobId job;
    TimePoint limit;
    bool terminal;
    bool told = false;  // The shell said that it has ended.
    std::optional<TimePoint> ending = {};
    int killed_generation = -1;
  };
  struct Helping {
    JobId job;
    TimePoint began;
    bool works = true;
    bool restored = false;
  };
  // What a kTimer saw: no shell is idle, and there is nothing to wait for.
  struct NoShell {
    TimePoint since;
    TimePoint killed_by;
    int begun;
  };
  enum class Phase { kNone, kStarts, kIdle, kScript, kTold };

  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool Chance(int percent) { return Below(100) < static_cast<uint64_t>(percent); }
  void Break(const std::string& rule) {
    if (broken_.empty()) broken_ = rule;
  }
  void Rule(bool holds, const char* rule) {
    if (!holds) Break(rule);
  }
  bool concluded() const { return state_.ended || state_.lost || state_.reset; }
  ShellFacts facts() const {
    return {phase_ == Phase::kIdle, generation_, begun_,
            phase_ != Phase::kNone && phase_ != Phase::kStarts};
  }

  void Happen(Event event);
  void Judge(const State& before, const Event& event, const std::vector<Action>& actions);
  void JudgeTimes(const Event& event);
  void JudgeTrees(const State& before, const Event& event, const std::vector<Action>& actions);
  std::optional<Event> Carry(const Action& action);
  std::optional<Event> CarryHelp(const Action& action);
  std::optional<Event> PutInPlace(const Action& action);
  void TakeAnswer(const Action& action, bool last);
  void Start(const Action& action);
  void Begin(JobId job, bool terminal);
  void KillShell();
  std::optional<ClientId> AnyClient();
  bool MoveShell(bool works);
  void MoveClient();
  void Leave(ClientId id);
  bool EndHelp(bool works);
  void Turn();
  void Rest();

  std::mt19937_64 random_;
  StepFunction step_;
  State state_;
  TimePoint now_{std::chrono::hours(1)};
  std::string broken_;
  std::vector<Seen> seen_;
  std::map<ClientId, Client> clients_;  // Those that have not left.
  std::map<JobId, Asked> jobs_;
  std::deque<JobId> waiting_;
  std::optional<Running> running_;
  std::optional<Helping> help_;
  std::optional<NoShell> no_shell_;
  bool fresh_ = false;  // A second tree was made for a reset.
  ClientId last_client_ = 0;
  JobId last_job_ = 0;
  // The shell: `hung_` if only a kill of itself ends its script or its start.
  Phase phase_ = Phase::kNone;
  int generation_ = 0;
  int begun_ = 0;
  bool hung_ = false;
  bool lost_end_ = false;     // Its successor tells the end.
  bool pending_end_ = false;  // It was killed when the end was on its way.
  bool gone_ = false;         // No shell comes any more.
};

}  // namespace session
