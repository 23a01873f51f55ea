// SPDX-License-Identifier: Apache-2.0
// Shows what is watched on a whole terminal, by ncurses: limits as they fill, requests as they are
// judged, files as they change. Moved through with the keyboard alone.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "watch/watch.h"

namespace watch {

// One at a time; ncurses knows one terminal.
class Screen {
 public:
  // Takes standard input and output, which are a terminal. `title` is text of any kind. Returns
  // null if there is no terminal, or none of a kind that is known.
  static std::unique_ptr<Screen> Open(const std::string& title);
  // Leaves the terminal as it was.
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void Take(Look look);
  // Shows what was taken and follows keys for `rest`. Returns false if its reader wants to leave.
  bool Serve(std::chrono::milliseconds rest);
  // Returns SIGINT, SIGTERM or SIGHUP if one came; otherwise 0.
  static int signal();

 private:
  class Content;
  explicit Screen(std::unique_ptr<Content> content);

  std::unique_ptr<Content> content_;
};

}  // namespace watch
