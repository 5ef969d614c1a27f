// SPDX-License-Identifier: Apache-2.0
// What the verifier accepts and what it sees; how it names the cause is in diagnose_test.cc.
#include "harness/verify/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/verify/diagnose.h"
#include "suites/unit/harness/verify/outputs.h"

namespace tutti::harness::verify {
namespace {

using testing::HasSubstr;

TEST(VerifyOutput, AcceptsWhatIsRightForEveryDtypeAndOp) {
  for (const Operation& operation : every_all_reduce()) {
    const CheckResult result = verify(operation, 3, weighted(operation, {0}, 1));
    EXPECT_TRUE(result.is_ok()) << name_of(operation) << ": " << result.text();
    EXPECT_EQ(result.checked, 10000);
  }
  EXPECT_TRUE(verify(all_to_all(), 1, right_output(all_to_all(), 1)).is_ok());
  EXPECT_EQ(verify(all_to_all(), 1, right_output(all_to_all(), 1)).checked, 20000);
  EXPECT_TRUE(verify(broadcast(), 1, input_bytes(broadcast(), 2, 20000)).is_ok());
}

TEST(VerifyOutput, OfNoElementsChecksNone) {
  const CheckResult result = verify(all_reduce(Dtype::f32, Op::sum, 0), 0, {});
  EXPECT_TRUE(result.is_ok());
  EXPECT_EQ(result.checked, 0);
}

TEST(VerifyOutput, TextHasTheNumbers) {
  EXPECT_EQ(element_text(0x40a00000U, Dtype::f32), "5 (0x40a00000)");
  EXPECT_EQ(element_text(0xffffffffU, Dtype::i32), "-1 (0xffffffff)");
  EXPECT_EQ(element_text(0x3fc0U, Dtype::bf16), "1.5 (0x3fc0)");
  const CheckResult result{.checked = 64,
                           .wrong = 3,
                           .first_bad = 12,
                           .last_bad = 20,
                           .expected = "5",
                           .actual = "6",
                           .diagnosis = "rank 3's contribution is missing"};
  EXPECT_EQ(result.text(),
            "3 of 64 wrong, the first at 12, the last at 20: expected 5, actual 6; rank 3's contribution is missing");
}

TEST(VerifyInput, NoticesOneChangedElement) {
  const Operation operation = all_to_all();
  auto input = input_bytes(operation, 2, 80000);
  EXPECT_TRUE(verify_input_unchanged(operation, {.rank = 2, .bytes = input}).is_ok());
  EXPECT_EQ(verify_input_unchanged(operation, {.rank = 2, .bytes = input}).checked, 20000);
  EXPECT_FALSE(verify_input_unchanged(operation, {.rank = 1, .bytes = input}).is_ok());
  input[4 * 17000] ^= std::byte{1};
  const CheckResult result = verify_input_unchanged(operation, {.rank = 2, .bytes = input});
  EXPECT_EQ(result.wrong, 1);
  EXPECT_EQ(result.first_bad, 17000);
  EXPECT_THAT(result.diagnosis, HasSubstr("wrote into the input of rank 2"));
}

TEST(Barrier, HoldsWhenNobodyLeavesBeforeTheLastHasEntered) {
  EXPECT_TRUE(check_barrier({.first_leave_ns = 101, .last_enter_ns = 100}).is_ok());
  const CheckResult at_once = check_barrier({.first_leave_ns = 100, .last_enter_ns = 100});
  EXPECT_TRUE(at_once.is_ok());
  EXPECT_EQ(at_once.checked, 1);
}

TEST(Barrier, IsBrokenByOneRankThatLeavesTooEarly) {
  const CheckResult result = check_barrier({.first_leave_ns = 1499, .last_enter_ns = 1500});
  EXPECT_EQ(result.wrong, 1);
  EXPECT_EQ(result.first_bad, 0);
  EXPECT_EQ(result.diagnosis, "a rank left the barrier 1 ns before the last one had entered");
  EXPECT_EQ(result.text(),
            "1 of 1 wrong, the first at 0, the last at 0: expected no rank leaves before 1500 ns, actual left at "
            "1499 ns; a rank left the barrier 1 ns before the last one had entered");
}

}  // namespace
}  // namespace tutti::harness::verify
