// SPDX-License-Identifier: Apache-2.0
#include "run/learn.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/sys.h"

namespace run {
namespace {

report::DeniedRequest Denied(const std::string& host, const std::string& method, int64_t count) {
  report::DeniedRequest denied;
  denied.denial.host = host;
  denied.denial.port = 443;
  denied.denial.method = method;
  denied.denial.path = method.empty() ? "" : "/a";
  denied.denial.binary = "/usr/bin/curl";
  denied.denial.ancestors = {"/bin/sh"};
  denied.reason = "no rule";
  denied.count = count;
  denied.by_policy = true;
  return denied;
}

Learned Read(const std::string& text) {
  const std::string file = "/tmp/learned-test-" + std::to_string(::getpid());
  REQUIRE(sys::WriteFile(file, text).ok());
  Result<Learned> learned = ReadLearned(file);
  ::unlink(file.c_str());
  REQUIRE(learned.ok());
  return std::move(learned).value();
}

}  // namespace

TEST_CASE("Refusals of several runs add up, and their credentials' hosts come together") {
  const std::string first =
      RenderLearned({Denied("a.example", "GET", 3)}, {{"TOKEN", "api.example"}});
  const std::string second =
      RenderLearned({Denied("a.example", "GET", 2), Denied("b.example", "", 1)},
                    {{"TOKEN", "api.example"}, {"OTHER", "*.example"}});
  const Learned learned = Read(first + second);
  REQUIRE(learned.denials.size() == 2);
  CHECK(learned.denials[0].denial.count == 5);
  CHECK(learned.denials[0].denial.runs == 2);
  CHECK(learned.denials[0].denial.ancestors == std::vector<std::string>{"/bin/sh"});
  CHECK(learned.denials[1].denial.method.empty());
  CHECK(learned.denials[1].denial.runs == 1);
  REQUIRE(learned.secrets.size() == 2);
  CHECK(learned.secrets[1].host == "*.example");
  CHECK(learned.dropped == 0);
}

TEST_CASE("Operations and names are learned as they were refused") {
  report::DeniedRequest call = Denied("mcp.example", "POST", 1);
  call.denial.protocol = "mcp";
  call.denial.operations = {{"", "", {}, "", "tools/call", "x"}};
  report::DeniedRequest name = Denied("name.example", advise::kNameAsked, 1);
  name.denial.path.clear();
  name.denial.port = 53;
  const Learned learned = Read(RenderLearned({call, name}, {}));
  REQUIRE(learned.denials.size() == 2);
  CHECK(learned.denials[0].denial.operations == call.denial.operations);
  CHECK(learned.denials[0].denial.protocol == "mcp");
  CHECK(learned.denials[1].denial.method == advise::kNameAsked);
}

TEST_CASE("What something else than the policy refused is not learned") {
  report::DeniedRequest budget = Denied("a.example", "GET", 1);
  budget.by_policy = false;
  CHECK(Read(RenderLearned({budget}, {})).denials.empty());
}

TEST_CASE("A line that a killed run left unfinished costs only itself") {
  const std::string run = RenderLearned({Denied("a.example", "GET", 1)}, {});
  const Learned learned = Read(run + run.substr(0, run.size() - 20) + "\n" + run);
  REQUIRE(learned.denials.size() == 1);
  CHECK(learned.denials[0].denial.runs == 2);
  CHECK(learned.dropped == 1);
}

TEST_CASE("Neither the checkout nor a link in it leads to a file of --learn") {
  char name[] = "/tmp/learn-test.XXXXXX";
  REQUIRE(::mkdtemp(name) != nullptr);
  const std::string top = name;
  const std::string checkout = top + "/co";
  for (const char* path : {"/co/inner", "/outside/inner"}) {
    REQUIRE(sys::MakeDirectories(top + path).ok());
  }
  REQUIRE(::symlink("../outside", (checkout + "/link").c_str()) == 0);
  REQUIRE(::symlink("co", (top + "/mine").c_str()) == 0);
  for (const char* path : {"/co/l.jsonl", "/co/inner/l.jsonl", "/co/link/l.jsonl",
                           "/co/link/inner/l.jsonl", "/mine/link/l.jsonl"}) {
    CAPTURE(path);
    Result<LearnFile> opened = LearnFile::Open(top + path, checkout, {});
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.error().code == Code::kRefused);
  }
  CHECK_FALSE(sys::Exists(top + "/outside/l.jsonl"));
  for (const char* path : {"/outside/l.jsonl", "/co/../outside/l.jsonl"}) {  // The control.
    CHECK(LearnFile::Open(top + path, checkout, {}).ok());
  }
  std::filesystem::remove_all(top);
}

TEST_CASE("A file of something else is not taken for one of --learn") {
  const std::string file = "/tmp/learned-test-other-" + std::to_string(::getpid());
  REQUIRE(sys::WriteFile(file, "version: 1\n").ok());
  Result<Learned> learned = ReadLearned(file);
  ::unlink(file.c_str());
  REQUIRE_FALSE(learned.ok());
  CHECK(learned.error().code == Code::kInvalid);
}

}  // namespace run
