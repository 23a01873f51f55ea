// SPDX-License-Identifier: Apache-2.0
#include "caller/identity.h"

#include <catch2/catch.hpp>

namespace caller {
namespace {

Owner SampleOwner() {
  Owner answer;
  answer.number = 0x0102030405060708;
  answer.pid = 42;
  answer.caller = {"/usr/bin/node", {"/bin/sh", "/usr/bin/env"}, {"/work/x.js"}, {"/opt/node"}};
  return answer;
}

TEST_CASE("A question is read back as it was asked") {
  Question question;
  question.number = 7;
  question.local.address[15] = 9;
  question.local.port = 65535;
  question.remote.port = 3128;
  std::string bytes = RenderQuestion(question);
  CHECK(bytes.size() == kQuestionBytes);
  Question read = ParseQuestion(bytes).value();
  CHECK(read.number == 7);
  CHECK(read.local == question.local);
  CHECK(read.remote == question.remote);
  CHECK_FALSE(ParseQuestion(bytes + "x"));
  CHECK_FALSE(ParseQuestion(bytes.substr(1)));
}

TEST_CASE("An answer is read back as it was given") {
  Owner read = ParseOwner(RenderOwner(SampleOwner())).value();
  CHECK(read.number == SampleOwner().number);
  CHECK(read.pid == 42);
  CHECK(read.caller.binary == "/usr/bin/node");
  CHECK(read.caller.ancestors == SampleOwner().caller.ancestors);
  CHECK(read.caller.cmdline == SampleOwner().caller.cmdline);
  CHECK(read.caller.links == SampleOwner().caller.links);
  CHECK(read.refusal.empty());
}

TEST_CASE("No prefix and no extension of an answer is an answer") {
  std::string bytes = RenderOwner(SampleOwner());
  for (size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE(ParseOwner(std::string_view(bytes).substr(0, size)));
  }
  CHECK_FALSE(ParseOwner(bytes + std::string(1, '\0')));
}

TEST_CASE("An answer that names nobody and gives no reason is none") {
  CHECK_FALSE(ParseOwner(RenderOwner(Owner())));
}

TEST_CASE("The largest owner fits into the largest answer") {
  Owner answer;
  answer.refusal = std::string(10000, 'r');
  answer.caller.binary = std::string(10000, 'b');
  answer.caller.ancestors = std::vector<std::string>(100, std::string(4096, 'a'));
  answer.caller.cmdline = std::vector<std::string>(1000, std::string(100, 'c'));
  answer.caller.links = std::vector<std::string>(1000, std::string(4096, 'l'));
  std::string bytes = RenderOwner(answer);
  CHECK(bytes.size() <= kOwnerBytesMax);
  Owner read = ParseOwner(bytes).value();
  CHECK(read.caller.binary.size() == 4096);
  CHECK_FALSE(read.caller.ancestors.empty());
  CHECK(read.caller.ancestors.size() < 100);
}

}  // namespace
}  // namespace caller
