// SPDX-License-Identifier: Apache-2.0
#include "run/shown/programs.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>

namespace run {
namespace {

using sandbox::PathKind;
using Paths = std::vector<std::string>;

// A host that is a table: links and the heads of scripts are given, directories follow from what is
// in them.
struct FakeHost {
  std::map<std::string, std::string> files = {};  // Path to its first line.
  std::map<std::string, std::string> links = {};
  std::set<std::string> open = {};  // Directories that everybody may write to.

  PathKind Kind(const std::string& path) const {
    if (path.empty()) return PathKind::kMissing;
    if (files.contains(path)) return PathKind::kFile;
    if (links.contains(path)) return PathKind::kSymlink;
    auto within = [&](const auto& entries) {
      auto next = entries.lower_bound(path + "/");
      return next != entries.end() && next->first.starts_with(path + "/");
    };
    return path == "/" || within(files) || within(links) ? PathKind::kDirectory
                                                         : PathKind::kMissing;
  }

  sandbox::HostView View() const {
    sandbox::HostView view;
    view.home = "/home/me";
    view.kind = [this](const std::string& path) { return Kind(path); };
    view.real = [](const std::string&) { return std::string(); };
    view.link = [this](const std::string& path) {
      auto found = links.find(path);
      return found == links.end() ? std::string() : found->second;
    };
    view.head = [this](const std::string& path) {
      auto found = files.find(path);
      return found == files.end() ? std::string() : found->second;
    };
    view.mode = [this](const std::string& path) { return open.contains(path) ? 0777 : 0755; };
    view.list = [this](const std::string& top) {
      std::set<std::string> names;
      auto add = [&](const std::string& path) {
        if (!path.starts_with(top + "/")) return;
        std::string rest = path.substr(top.size() + 1);
        names.insert(rest.substr(0, rest.find('/')));
      };
      for (const auto& [path, head] : files) add(path);
      for (const auto& [path, text] : links) add(path);
      return Paths(names.begin(), names.end());
    };
    return view;
  }
};

Programs Find(const FakeHost& host, const std::string& path, const std::string& started = "",
              bool known_agent = false) {
  ProgramSearch search;
  search.search_path = path;
  search.started = started;
  search.known_agent = known_agent;
  search.checkout = "/home/me/work";
  search.shown = {"/tmp", "/srv/tools"};
  search.tool_caches = {"/opt/hostedtoolcache"};
  return FindPrograms(search, host.View());
}

TEST_CASE("Places of PATH are shown under the name they have, with what their links lead to") {
  FakeHost host;
  host.files = {{"/home/me/.local/bin/own", ""},
                {"/home/me/.local/share/uv/tools/ruff/pyvenv.cfg", ""},
                {"/home/me/.local/share/uv/tools/ruff/bin/ruff", ""},
                {"/home/me/.local/share/keyrings/login", ""},
                {"/home/me/.local/share/claude/versions/1.0", ""},
                {"/home/me/.local/lib/python3.11/x.py", ""},
                {"/data/tools/bin/x", ""},
                {"/usr/bin/sh", ""}};
  host.links = {{"/home/me/.local/bin/ruff", "../share/uv/tools/ruff/bin/ruff"},
                {"/home/me/.local/bin/claude", "/home/me/.local/share/claude/versions/1.0"},
                {"/home/me/.local/bin/shell", "/usr/bin/sh"},
                {"/home/me/tools", "/data/tools"},
                {"/home/me/.local/bin/gone", "nowhere"}};
  Programs programs = Find(host, "/home/me/.local/bin/:/usr/bin:/home/me/tools/bin:/missing");
  CHECK(programs.search_path == "/home/me/.local/bin:/usr/bin:/home/me/tools/bin");
  CHECK(programs.shown == Paths{"/home/me/.local/bin", "/home/me/.local/lib",
                                "/home/me/.local/share/claude/versions/1.0",
                                "/home/me/.local/share/uv/tools/ruff/bin",
                                "/home/me/.local/share/uv/tools/ruff", "/data/tools/bin",
                                "/home/me/tools/bin"});
  CHECK(programs.notes.empty());
}

TEST_CASE("Nothing in an agent's package says what else of the host is shown") {
  const std::string bin = "/var/cache/packages/key/node_modules/.bin";
  FakeHost host;
  host.files = {{"/var/cache/packages/key/node_modules/tool/own.js", "#!/usr/bin/env node"},
                {bin + "/names", "#!/home/me/.config/private"},
                {bin + "/asks", "#!/usr/bin/env -S -u planted sh"},
                {bin + "/planted", "#!/home/me/notes/private"},
                {bin + "/rustup", ""},
                {"/home/me/.config/private", ""},
                {"/home/me/notes/private", ""},
                {"/home/me/.rustup/x", ""},
                {"/srv/private/deploy", ""},
                {"/srv/node/bin/node", ""},
                {"/srv/node/bin/tool", "#!/home/me/notes/private"},
                {"/usr/bin/sh", ""}};
  host.links = {{bin + "/own", "../tool/own.js"},
                {bin + "/absolute", "/srv/private/deploy"},
                {bin + "/relative", "../../../../../../srv/private/deploy"},
                {bin + "/chain", "absolute"},
                {"/var/cache/packages/key/node_modules/linked", "/srv/private"}};
  auto shown = [&](const std::string& started, const std::string& package) {
    ProgramSearch search;
    search.search_path = bin + ":/srv/node/bin:/usr/bin";
    search.started = started;
    search.known_agent = true;
    search.checkout = "/home/me/work";
    search.package = package;
    Paths paths = FindPrograms(search, host.View()).shown;
    return std::set<std::string>(paths.begin(), paths.end());
  };
  const std::set<std::string> own = {bin, "/var/cache/packages/key/node_modules", "/srv/node/bin"};
  for (const char* name :
       {"own", "names", "asks", "absolute", "relative", "chain", "../linked/deploy"}) {
    INFO(name);
    std::set<std::string> seen = shown(bin + "/" + name, "/var/cache/packages/key");
    for (const std::string& path : seen) {
      CHECK((own.contains(path) || path.starts_with("/var/cache/packages/key/")));
    }
  }
  // The controls: what a person starts, and without the package's place.
  CHECK(shown("/srv/node/bin/tool", "/var/cache/packages/key").contains("/home/me/notes/private"));
  CHECK(shown(bin + "/absolute", "").contains("/srv/private"));
  CHECK(shown(bin + "/names", "").contains("/home/me/.config/private"));
}

TEST_CASE("A place of PATH that would show more than programs is left out, and said to be") {
  FakeHost host;
  host.files = {{"/home/me/x", ""},
                {"/home/you/x", ""},
                {"/root/x", ""},
                {"/opt/x", ""},
                {"/tmp/bin/x", ""},
                {"/srv/open/x", ""},
                {"/home/me/.ssh/bin/x", ""},
                {"/var/lib/docker/bin/x", ""},
                {"/home/me/ok/x", ""}};
  host.open = {"/srv/open"};
  const char* kPlaces[] = {
      "/",    "/home",    "/home/me",         "/home/you",         "/root",
      "/opt", "/tmp/bin", "/srv/open",        "/home/me/.ssh/bin", "/var/lib/docker/bin",
      ".",    "",         "node_modules/.bin"};
  for (const std::string place : kPlaces) {
    INFO(place);
    Programs programs = Find(host, place + ":/home/me/ok");
    CHECK(programs.shown == Paths{"/home/me/ok"});
    CHECK(programs.search_path == "/home/me/ok");
    CHECK(programs.notes.size() == 1);
  }
}

TEST_CASE("A CI's tool cache may be world-writable") {
  FakeHost host;
  host.files = {{"/opt/hostedtoolcache/node/20/x64/bin/node", ""},
                {"/opt/hostedtoolcache/node/20/x64/lib/node_modules/npm/cli.js", ""}};
  host.open = {"/opt/hostedtoolcache/node/20/x64/bin", "/opt/hostedtoolcache/node/20/x64/lib"};
  Programs programs = Find(host, "/opt/hostedtoolcache/node/20/x64/bin");
  CHECK(programs.shown ==
        Paths{"/opt/hostedtoolcache/node/20/x64/bin", "/opt/hostedtoolcache/node/20/x64/lib"});
}

TEST_CASE("Version managers and environments are shown as a whole, with what they are made of") {
  FakeHost host;
  host.files = {{"/home/me/.pyenv/shims/python", ""},
                {"/home/me/.pyenv/versions/3.11/bin/python3.11", ""},
                {"/home/me/envs/a/pyvenv.cfg", ""},
                {"/data/go1/pkg/tool/asm", ""},
                {"/data/go1/bin/go", ""}};
  host.links = {{"/home/me/envs/a/bin/python", "python3"},
                {"/home/me/envs/a/bin/python3", "/home/me/.pyenv/versions/3.11/bin/python3.11"}};
  CHECK(Find(host, "/home/me/.pyenv/shims").shown ==
        Paths{"/home/me/.pyenv/shims", "/home/me/.pyenv"});
  CHECK(Find(host, "/data/go1/bin").shown == Paths{"/data/go1/bin", "/data/go1"});
  CHECK(Find(host, "/home/me/envs/a/bin").shown ==
        Paths{"/home/me/envs/a/bin", "/home/me/envs/a", "/home/me/.pyenv/versions/3.11/bin"});
}

TEST_CASE("rustup's programs are told where their toolchains are") {
  FakeHost host;
  host.files = {{"/home/me/.cargo/bin/rustup", ""},
                {"/home/me/.cargo/credentials.toml", ""},
                {"/home/me/.rustup/toolchains/stable/bin/cargo", ""}};
  Programs programs = Find(host, "/home/me/.cargo/bin");
  CHECK(programs.shown == Paths{"/home/me/.cargo/bin", "/home/me/.rustup"});
  REQUIRE(programs.variables.size() == 1);
  CHECK(programs.variables[0] ==
        std::pair<std::string, std::string>{"RUSTUP_HOME", "/home/me/.rustup"});
}

TEST_CASE("A started script brings its packages and the interpreter that it names") {
  FakeHost host;
  host.files = {
      {"/home/me/.npm-global/lib/node_modules/agent/cli.js", "#!/usr/bin/env -S node -r x\n"},
      {"/home/me/.nvm/versions/node/v20/bin/node", ""},
      {"/home/me/.nvm/versions/node/v20/lib/x", ""},
      {"/home/me/run.sh", "#! /data/shell/bin/sh -e\n"},
      {"/data/shell/bin/sh", ""}};
  host.links = {{"/home/me/.npm-global/bin/agent", "../lib/node_modules/agent/cli.js"}};
  CHECK(Find(host, "/home/me/.nvm/versions/node/v20/bin", "/home/me/.npm-global/bin/agent").shown ==
        Paths{"/home/me/.nvm/versions/node/v20/bin", "/home/me/.nvm/versions/node/v20/lib",
              "/home/me/.npm-global/lib/node_modules", "/home/me/.npm-global/lib",
              "/home/me/.npm-global/bin/agent"});
  // Nothing beside it: it lies in a home.
  CHECK(Find(host, "", "/home/me/run.sh").shown == Paths{"/home/me/run.sh", "/data/shell/bin"});
  CHECK(Find(host, "", "/home/me/run.sh", true).shown ==
        Paths{"/home/me/run.sh", "/data/shell/bin"});
}

TEST_CASE("A known agent is shown with what lies beside it, even in a place of the sandbox's own") {
  FakeHost host;
  host.files = {{"/tmp/agents/claude", ""}};
  CHECK(Find(host, "", "/tmp/agents/claude", true).shown ==
        Paths{"/tmp/agents/claude", "/tmp/agents"});
  CHECK(Find(host, "", "/tmp/agents/claude").shown == Paths{"/tmp/agents/claude"});
}

TEST_CASE("The checkout does not say what of the host is shown") {
  FakeHost host;
  host.files = {{"/home/me/work/node_modules/.bin/tool", "#!/home/me/private/bin/sh\n"},
                {"/home/me/private/bin/sh", ""}};
  host.links = {{"/home/me/work/bin", "/home/me/private/bin"},
                {"/home/me/work/node_modules/.bin/link", "/home/me/private/bin/sh"},
                {"/home/me/through", "work/bin"}};
  Programs programs =
      Find(host, "/home/me/work/node_modules/.bin:/home/me/work/bin:/home/me/through",
           "/home/me/work/node_modules/.bin/tool");
  CHECK(programs.shown.empty());
  CHECK(programs.search_path == "/home/me/work/node_modules/.bin");
  CHECK(Find(host, "", "/home/me/work/node_modules/.bin/link").shown.empty());
  CHECK(Find(host, "", "/home/me/through/sh").shown.empty());
}

TEST_CASE("What the policy shows is on PATH and needs no more") {
  FakeHost host;
  host.files = {{"/srv/tools/bin/x", ""}, {"/srv/tools/lib/y", ""}};
  host.open = {"/srv/tools/bin"};
  Programs programs = Find(host, "/srv/tools/bin", "/srv/tools/bin/x");
  CHECK(programs.search_path == "/srv/tools/bin");
  CHECK(programs.shown.empty());
}

TEST_CASE("Links that lead in a circle end") {
  FakeHost host;
  host.links = {{"/home/me/a", "b"}, {"/home/me/b", "a"}};
  CHECK(Find(host, "/home/me/a/bin", "/home/me/b").shown.empty());
}

}  // namespace
}  // namespace run
