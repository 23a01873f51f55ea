// SPDX-License-Identifier: Apache-2.0
// `agentic-ci watch`: what a person follows.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "cli/error_text.h"
#include "cli/output.h"
#include "cli/sandbox_command.h"
#include "watch/lines.h"
#include "watch/screen.h"
#include "watch/watch.h"

namespace cli {
namespace {

constexpr std::string_view kDoc =
    "Follow a run by its report directory, or a sandbox by its name, until it ends: each different "
    "request when it is judged, with the line of a policy that would allow a refused one; for a "
    "sandbox, files of the checkout as they change, and limits as they fill. On a terminal, this "
    "is "
    "a screen that keys move through; `q` leaves it, and what is watched goes on. Otherwise, or "
    "with `--lines`, each is a line, limits when half, three quarters and nine tenths are used. At "
    "the end, how it ended is printed. The exit status is 0 even if the run failed.";

}  // namespace

Command WatchCommandSpec() {
  return {.name = "watch",
          .operands = "REPORT-DIR|NAME",
          .doc = kDoc,
          .options = {{.name = "lines",
                       .value = {},
                       .fallback = {},
                       .doc = "Print lines on a terminal, too."}},
          .variables = {{"TERM", "The kind of terminal. If it is not known, lines are printed."},
                        {"NO_COLOR", "If set, the screen has no colours."}}};
}

Result<int> WatchCommand(const Arguments& arguments) {
  if (arguments.operands.size() != 1) {
    return Usage("watch takes a report directory or the name of a sandbox",
                 "agentic-ci watch agentic-ci-report");
  }
  constexpr std::chrono::milliseconds kStateTime{300};
  auto state = [&](const std::string& name) -> Result<session::SandboxState> {
    std::unique_ptr<backend::Backend> backend = TRY(BackendOf(name));
    return backend->State(name, Deadline::After(kStateTime));
  };
  const std::string& what = arguments.operands.front();
  watch::Watch followed = TRY(watch::Watch::Find(what, state));
  std::unique_ptr<watch::Screen> screen;
  if (!arguments.Has("lines")) screen = watch::Screen::Open(what);
  watch::Lines lines;
  auto read = [&](watch::Look look, std::chrono::milliseconds rest) -> Result<bool> {
    if (screen) {
      screen->Take(std::move(look));
      return screen->Serve(rest);
    }
    std::string text = lines.Render(look);
    if (!text.empty()) TRY(Print(text));
    std::this_thread::sleep_for(rest);
    return true;
  };
  bool ended = TRY(followed.Follow(read));
  screen.reset();
  if (!ended) return watch::Screen::signal() == 0 ? 0 : 128 + watch::Screen::signal();
  std::string end = TRY(followed.RenderEnd());
  TRY(Print(end));
  return 0;
}

}  // namespace cli
