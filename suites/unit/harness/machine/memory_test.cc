// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/memory.h"

#include <gmock/gmock.h>

#include "suites/unit/harness/machine/machines.h"

namespace tutti::harness::machine {
namespace {

constexpr std::int64_t kMi = std::int64_t{1} << 20;

class Memory : public testing::Test {
 protected:
  Memory() { root_.write("proc/meminfo", "MemTotal:       67108864 kB\nMemAvailable:   33554432 kB"); }
  void group(const std::string& folder, std::string_view limit, std::int64_t used, std::string_view stat = "") {
    root_.write(folder + "/memory.max", limit);
    root_.write(folder + "/memory.current", std::to_string(used));
    if (!stat.empty()) root_.write(folder + "/memory.stat", stat);
  }

  FakeRoot root_;
};

TEST_F(Memory, OfTheMachineIsWhatIsAvailable) {
  const MemoryLeft left = memory_left(root_.tree());
  EXPECT_EQ(left.bytes, std::int64_t{32} << 30);
  EXPECT_EQ(left.text(), "32.0 GiB are left of the 64.0 GiB of the machine");
}

TEST_F(Memory, WithoutAnyFileHasNoEnd) {
  const FakeRoot empty;
  EXPECT_EQ(memory_left(empty.tree()).bytes, std::numeric_limits<std::int64_t>::max());
}

TEST_F(Memory, OfANestedGroupIsThatOfTheOneWithLeastLeft) {
  root_.write("proc/self/cgroup", "0::/slice/box");
  group("sys/fs/cgroup/slice/box", "1073741824", 100 * kMi);
  group("sys/fs/cgroup/slice", "2147483648", 1900 * kMi);
  group("sys/fs/cgroup", "max", 9000 * kMi);
  const MemoryLeft left = memory_left(root_.tree());
  EXPECT_EQ(left.bytes, 148 * kMi) << "the parent's: its other children have the rest";
  EXPECT_EQ(left.text(), "148 MiB are left of the 2.0 GiB of the cgroup");
}

TEST_F(Memory, OfFilesThatTheKernelGivesBackCountsAsLeft) {
  root_.write("proc/self/cgroup", "0::/box");
  group("sys/fs/cgroup/box", "1073741824", 1000 * kMi,
        "anon 52428800\ninactive_anon 1\ninactive_file 629145600\nactive_file 104857600");
  EXPECT_EQ(memory_left(root_.tree()).bytes, (24 + 600 + 100) * kMi);
}

TEST_F(Memory, OfTheFirstVersionHasTotalsOfTheGroupsBelow) {
  root_.write("proc/self/cgroup", "4:memory:/box\n2:cpu:/\n0::/");
  root_.write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "1073741824");
  root_.write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", std::to_string(1000 * kMi));
  root_.write("sys/fs/cgroup/memory/box/memory.stat",
              "inactive_file 0\nactive_file 0\ntotal_inactive_file 104857600\ntotal_active_file 0");
  root_.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  const MemoryLeft left = memory_left(root_.tree());
  EXPECT_EQ(left.bytes, 124 * kMi);
  EXPECT_TRUE(left.is_of_cgroup);
}

}  // namespace
}  // namespace tutti::harness::machine
