// SPDX-License-Identifier: Apache-2.0
#include "starter/repository_facts.h"

#include <dirent.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include "base/ascii.h"
#include "base/sys.h"

namespace starter {
namespace {

constexpr int kDepthMax = 2;
constexpr size_t kNamesMax = 10000;

struct Manifest {
  std::string_view file;  // "*.EXT": any name that ends so.
  std::string_view ecosystem;
};

constexpr auto kManifests = std::to_array<Manifest>({
    {"package.json", "node"},  {"pyproject.toml", "python"},   {"setup.py", "python"},
    {"setup.cfg", "python"},   {"requirements.txt", "python"}, {"Pipfile", "python"},
    {"go.mod", "go"},          {"Cargo.toml", "rust"},         {"pom.xml", "java"},
    {"build.gradle", "java"},  {"build.gradle.kts", "java"},   {"uv.lock", "python"},
    {"poetry.lock", "python"}, {"tox.ini", "python"},          {"Gemfile", "ruby"},
    {"*.gemspec", "ruby"},     {"*.csproj", "dotnet"},         {"*.fsproj", "dotnet"},
    {"*.sln", "dotnet"},
});

constexpr std::string_view kInstallBun = "npm install -g bun && bun install --frozen-lockfile";
constexpr std::string_view kInstallPytest =
    "python3 -m pip install --break-system-packages pytest .";
constexpr std::string_view kInstallGems =
    "bundle config set --local path vendor/bundle && bundle install";

struct Test {
  std::string_view file;  // The name of a file at the top.
  std::vector<std::string> command;
  std::string_view install;  // What a job does before, outside of the sandbox; for a shell.
};

// The first that fits: what says more than a manifest stands before it.
const std::vector<Test>& Tests() {
  static const std::vector<Test> kTests = {
      {"pnpm-lock.yaml", {"pnpm", "test"}, "corepack enable && pnpm install --frozen-lockfile"},
      {"yarn.lock", {"yarn", "test"}, "corepack enable && yarn install --frozen-lockfile"},
      {"bun.lock", {"bun", "test"}, kInstallBun},
      {"bun.lockb", {"bun", "test"}, kInstallBun},
      {"package-lock.json", {"npm", "test"}, "npm ci"},
      {"package.json", {"npm", "test"}, "npm install --no-package-lock"},
      {"Cargo.toml", {"cargo", "test"}, "cargo fetch"},
      {"go.mod", {"go", "test", "./..."}, "go mod download"},
      {"mvnw", {"./mvnw", "-B", "test"}, ""},
      {"pom.xml", {"mvn", "-B", "test"}, ""},
      {"gradlew", {"./gradlew", "test"}, ""},
      {"build.gradle", {"gradle", "test"}, ""},
      {"build.gradle.kts", {"gradle", "test"}, ""},
      {"uv.lock", {"uv", "run", "pytest"}, "pipx install uv && uv sync --locked"},
      {"poetry.lock", {"poetry", "run", "pytest"}, "pipx install poetry && poetry install"},
      {"tox.ini", {"tox"}, "pipx install tox"},
      {"pyproject.toml", {"python3", "-m", "pytest"}, kInstallPytest},
      {"setup.py", {"python3", "-m", "pytest"}, kInstallPytest},
      {"Gemfile", {"bundle", "exec", "rake"}, kInstallGems},
      {"composer.json", {"vendor/bin/phpunit"}, "composer install --no-interaction"},
      {"mix.exs", {"mix", "test"}, ""},
      {"*.sln", {"dotnet", "test"}, "dotnet restore"},
      {"MODULE.bazel", {"bazel", "test", "//..."}, ""},
      {"WORKSPACE", {"bazel", "test", "//..."}, ""},
      {"justfile", {"just", "test"}, ""},
      {"Makefile", {"make", "test"}, ""},
      {"CMakeLists.txt", {"ctest", "--test-dir", "build"}, "cmake -B build && cmake --build build"},
  };
  return kTests;
}

bool Fits(std::string_view pattern, std::string_view name) {
  if (!pattern.starts_with('*')) return pattern == name;
  return name.size() >= pattern.size() && name.ends_with(pattern.substr(1));
}

// Returns whether the directory holds other people's manifests.
bool IsForeign(std::string_view directory) {
  return directory.starts_with('.') || directory == "node_modules" || directory == "vendor" ||
         directory == "third_party" || directory == "target" || directory == "testdata";
}

class Look {
 public:
  explicit Look(const std::string& top) : top_(top) { Visit("", 0); }

  bool HasAtTop(std::string_view pattern) const {
    return std::any_of(top_names_.begin(), top_names_.end(),
                       [&](const std::string& name) { return Fits(pattern, name); });
  }

  bool Has(std::string_view ecosystem) const { return ecosystems_.contains(ecosystem); }

 private:
  void Visit(const std::string& inside, int depth) {
    std::string path = inside.empty() ? top_ : top_ + "/" + inside;
    std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(path.c_str()), ::closedir);
    if (stream == nullptr) return;
    std::vector<std::string> directories;
    while (const dirent* entry = ::readdir(stream.get())) {
      std::string name = entry->d_name;
      if (++names_ > kNamesMax) return;
      if (depth == 0) top_names_.push_back(name);
      for (const Manifest& manifest : kManifests) {
        if (Fits(manifest.file, name)) ecosystems_.insert(manifest.ecosystem);
      }
      if (entry->d_type == DT_DIR && !IsForeign(name)) {
        directories.push_back(inside.empty() ? name : inside + "/" + name);
      }
    }
    if (depth == kDepthMax) return;
    for (const std::string& directory : directories) Visit(directory, depth + 1);
  }

  std::string top_;
  size_t names_ = 0;
  std::vector<std::string> top_names_;
  std::set<std::string_view> ecosystems_;
};

// "https://host/a/b", "git@host:a/b", "ssh://host:22/a/b" -> "host".
std::string HostOf(std::string_view origin) {
  size_t scheme = origin.find("://");
  if (scheme != std::string_view::npos) origin.remove_prefix(scheme + 3);
  origin = origin.substr(0, origin.find('/'));
  size_t user = origin.rfind('@');
  if (user != std::string_view::npos) origin.remove_prefix(user + 1);
  return ascii::LowerCase(origin.substr(0, origin.find(':')));
}

// Finds the forge by what the repository has for a CI, else by its remote's name; else it is the
// most common.
void FindForge(const std::string& top, const std::string& origin, RepositoryFacts* facts) {
  auto take = [&](const Forge& forge, std::string reason) {
    facts->forge = &forge;
    facts->forge_reason = std::move(reason);
  };
  for (const Forge& forge : Forges()) {
    if (sys::Exists(top + "/" + std::string(forge.mark))) {
      return take(forge, std::string(forge.mark));
    }
  }
  const std::string host = HostOf(origin);
  for (const Forge& forge : Forges()) {
    const bool hosted = host.find(forge.name) != std::string::npos || host == forge.host;
    if (hosted && !host.empty()) return take(forge, "remote " + host);
  }
  take(Forges().back(), "nothing says otherwise; --forge names another");
}

}  // namespace

RepositoryFacts LookAt(const std::string& top, const std::string& origin) {
  Look look(top);
  RepositoryFacts facts;
  for (std::string_view name : {"node", "python", "go", "rust", "java", "ruby", "dotnet"}) {
    if (look.Has(name)) facts.ecosystems.emplace_back(name);
  }
  const std::vector<Test>& tests = Tests();
  auto test = std::find_if(tests.begin(), tests.end(),
                           [&](const Test& one) { return look.HasAtTop(one.file); });
  if (test != tests.end()) {
    facts.test_command = test->command;
    facts.install_command = test->install;
  }
  FindForge(top, origin, &facts);
  return facts;
}

}  // namespace starter
