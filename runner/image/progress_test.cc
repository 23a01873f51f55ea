// SPDX-License-Identifier: Apache-2.0
#include "image/progress.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace image {
namespace {

struct Screen {
  int64_t now_ms = 1000;
  std::string text;
  ProgressLines::Options Options(bool terminal) {
    return {terminal, "a/b:1", [this] { return now_ms; },
            [this](std::string_view more) { text += more; }};
  }
};

TEST_CASE("ProgressLines writes a line now and then in a log, and one at the end") {
  Screen screen;
  ProgressLines lines(screen.Options(false));
  Descriptor blob;
  blob.digest = "x";
  blob.size = 4 << 20;
  screen.now_ms += 10'000;
  lines.Update({"x", 1 << 20, 4 << 20});
  lines.Finish();
  CHECK(screen.text.empty());  // Nothing is expected yet.
  screen.now_ms -= 10'000;
  lines.Expect({blob});
  lines.Update({"x", 1 << 20, 4 << 20});
  CHECK(screen.text.empty());
  screen.now_ms += 10'000;
  lines.Update({"x", 2 << 20, 4 << 20});
  CHECK(screen.text ==
        "agentic-ci: pulling a/b:1: 2.0 MiB of 4.0 MiB, 0 of 1 layers, 10.0 s, 204.8 KiB/s\n");
  screen.text.clear();
  screen.now_ms += 5'000;
  lines.Update({"x", 4 << 20, 4 << 20});
  lines.Finish();
  CHECK(screen.text == "agentic-ci: pulled a/b:1: 4.0 MiB in 15.0 s\n");
}

TEST_CASE("ProgressLines writes over its line on a terminal, and never more than fits on one") {
  Screen screen;
  ProgressLines lines(screen.Options(true));
  Descriptor blob;
  blob.digest = "x";
  blob.size = 1 << 30;
  lines.Expect({blob});
  screen.now_ms += 100;
  lines.Update({"x", 1, 1 << 30});
  CHECK(screen.text.front() == '\r');
  CHECK(screen.text.size() <= 80);
  lines.Finish();
  CHECK(screen.text.back() == '\n');
  Screen nothing;
  ProgressLines none(nothing.Options(true));
  none.Finish();
  CHECK(nothing.text.empty());
}

}  // namespace
}  // namespace image
