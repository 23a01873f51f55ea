// SPDX-License-Identifier: Apache-2.0
#include "run/native/lost_refs.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "base/sys.h"
#include "change/test_tree.h"

namespace run {
namespace {

const std::string kOld(40, 'a');
const std::string kNew(40, 'b');
const std::string kOther(40, 'c');

// "branch topic", each.
std::vector<std::string> Find(const change::TestTree& host, const change::TestTree& inside) {
  const Fd host_git = sys::Open(host.root(), O_RDONLY | O_DIRECTORY).value();
  const Fd inside_git = sys::Open(inside.root(), O_RDONLY | O_DIRECTORY).value();
  std::vector<std::string> found;
  for (const LostRef& ref :
       FindLostRefs({host_git.get(), inside_git.get(), "ref: refs/heads/main\n"})) {
    found.push_back(ref.kind + " " + ref.name + (ref.text.empty() ? "" : ": " + ref.text));
  }
  return found;
}

}  // namespace

TEST_CASE("Refs that were made or moved are found, loose and packed, but not the checked out one") {
  change::TestTree host;
  change::TestTree inside;
  host.Write("packed-refs", "# pack-refs with: peeled\n" + kOld + " refs/heads/kept\n^" + kOld +
                                "\n" + kOld + " refs/heads/moved\n" + kOld + " refs/heads/same\n");
  inside.Write("refs/heads/main", kNew + "\n");
  inside.Write("refs/heads/kept", kOld + "\n");
  inside.Write("refs/heads/moved", kOther + "\n");
  inside.Write("refs/heads/same", kNew + "\n");  // As what is checked out.
  inside.Write("refs/heads/deep/er", kNew + "\n");
  inside.Write("packed-refs", kNew + " refs/tags/v1\n" + kNew + " refs/remotes/origin/x\n");
  CHECK(Find(host, inside) == std::vector<std::string>{"branch deep/er", "branch moved", "tag v1"});
  inside.Write("HEAD", "ref: refs/heads/moved\n");
  CHECK(Find(host, inside) ==
        std::vector<std::string>{"branch deep/er", "branch main", "branch same", "tag v1"});
  inside.Write("HEAD", kNew + "\n");
  CHECK(Find(host, inside) ==
        std::vector<std::string>{"branch deep/er", "branch main", "branch moved", "tag v1"});
  CHECK(Find(host, host).empty());
}

TEST_CASE("Each stash is found that the host's repository does not have") {
  change::TestTree host;
  change::TestTree inside;
  const std::string old = kOld + " " + kOld + " t <t@localhost> 1 +0000\tOn main: old\n";
  const std::string first = kOld + " " + kNew + " t <t@localhost> 2 +0000\tOn main: first\n";
  const std::string second = kNew + " " + kNew + " t <t@localhost> 3 +0000\tWIP on main: x\n";
  host.Write("refs/stash", kOld + "\n");
  host.Write("logs/refs/stash", old);
  inside.Write("refs/stash", kNew + "\n");
  inside.Write("logs/refs/stash", old + first + second);
  CHECK(Find(host, inside) == std::vector<std::string>{"stash stash@{0}: WIP on main: x",
                                                       "stash stash@{1}: On main: first"});
}

TEST_CASE("A repository that is made to mislead is read like any other file") {
  change::TestTree host;
  change::TestTree inside;
  change::TestTree outside;
  outside.Write("secret", kNew + "\n");
  inside.Link("refs/heads/link", outside.At("secret"));
  inside.Link("refs/tags", outside.root());
  inside.Link("packed-refs", outside.At("secret"));
  inside.Directory("refs/stash");
  REQUIRE(::mkfifo(inside.At("refs/heads/pipe").c_str(), 0600) == 0);
  inside.Write("refs/heads/text", "not an object\n");
  inside.Write("refs/heads/large", kNew + "\n" + std::string(5000, ' '));
  inside.Write("refs/heads/good", kNew + "\n");
  inside.Write("objects/bb/" + std::string(38, 'b'), "not deflated");
  CHECK(Find(host, inside) == std::vector<std::string>{"branch good"});
}

TEST_CASE("Notes name each ref, and count what is too much to name") {
  CHECK(DescribeLostRefs({{"branch", "to\x1b[31mpic", "add ::x"}})[0].message ==
        "the agent's branch topic is not part of the patch: add ::x");
  const std::vector<report::Finding> notes =
      DescribeLostRefs(std::vector<LostRef>(25, LostRef{"tag", "v1", ""}));
  REQUIRE(notes.size() == 21);
  CHECK(notes[0].rule == "git-ref");
  CHECK_FALSE(notes[0].refuses);
  CHECK(notes[20].message ==
        "5 more branches, tags and stashes of the agent's are not part of the patch");
}

}  // namespace run
