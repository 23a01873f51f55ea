// SPDX-License-Identifier: Apache-2.0
#include "sandbox/limit/container_cgroup.h"

#include <catch2/catch.hpp>

#include "sandbox/limit/delegated_cgroup.h"

namespace sandbox {
namespace {

constexpr ContainerCounts kBefore{
    .tasks = 6, .most_tasks = 9, .refused_forks = 2, .memory_kills = 1};

TEST_CASE("A container's counts that did not change say nothing") {
  ContainerWatch watch(kBefore);
  CHECK(watch.Judge(kBefore, 6, 64, false) == std::nullopt);
}

TEST_CASE("A process of the container that was killed for memory is the limit of memory") {
  ContainerWatch watch(kBefore);
  ContainerCounts now = kBefore;
  now.memory_kills = 2;
  CHECK(watch.Judge(now, 6, 0, false) == LimitName::kMemory);
}

TEST_CASE("A fork that the container's own limit refused is the limit of processes") {
  ContainerWatch watch(kBefore);
  ContainerCounts now = kBefore;
  now.refused_forks = 3;
  CHECK(watch.Judge(now, 6, 0, false) == LimitName::kPids);
}

TEST_CASE("The most tasks there were, without the others, are compared with the run's limit") {
  ContainerCounts now = kBefore;
  now.most_tasks = 6 + 56;  // Seven eighths of 64.
  CHECK(ContainerWatch(kBefore).Judge(now, 6, 64, false) == LimitName::kPids);
  CHECK(ContainerWatch(kBefore).Judge(now, 6, 0, false) == std::nullopt);
  now.most_tasks = 6 + 55;
  CHECK(ContainerWatch(kBefore).Judge(now, 6, 64, false) == std::nullopt);
}

TEST_CASE("Others of the container that were seen once are not the agent's later either") {
  ContainerWatch watch(kBefore);
  ContainerCounts now = kBefore;
  now.most_tasks = 70;
  CHECK(watch.Judge(now, 30, 64, false) == std::nullopt);
  CHECK(watch.Judge(now, 6, 64, false) == std::nullopt);
}

TEST_CASE("What changed while another run was there, or until it had ended, is not this run's") {
  ContainerWatch watch(kBefore);
  ContainerCounts now = kBefore;
  now.memory_kills = 2;
  CHECK(watch.Judge(now, 6, 64, true) == std::nullopt);
  now.memory_kills = 3;
  CHECK(watch.Judge(now, 6, 64, false) == std::nullopt);  // It ended since the last look.
  now.memory_kills = 4;
  CHECK(watch.Judge(now, 6, 64, false) == LimitName::kMemory);
}

TEST_CASE("A group is named as its mount shows it, and another one is not there") {
  const sys::Mount mount{"0:30", "/kubepods/a", "/sys/fs/cgroup"};
  CHECK(GroupIn(mount, "/kubepods/a") == "/");
  CHECK(GroupIn(mount, "/kubepods/a/b") == "/b");
  CHECK(GroupIn(mount, "/kubepods/ab") == std::nullopt);
  CHECK(GroupIn({"0:30", "/", "/sys/fs/cgroup"}, "/kubepods") == "/kubepods");
}

}  // namespace
}  // namespace sandbox
