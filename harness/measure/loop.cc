// SPDX-License-Identifier: Apache-2.0
// Loops of operations: Variant::run_loop.
#include <algorithm>

#include "harness/machine/clock.h"
#include "harness/measure/variant.h"

namespace tutti::harness::measure {
namespace {

/// The launcher's deadline is that of what is announced. Announcing takes some 50 ns, so short operations are announced
/// together.
constexpr std::int64_t kLongBytes = 65536;
constexpr int kShortOperationsTogether = 64;

}  // namespace

/// One loop on the ranks of this host.
class Variant::LoopOnHost {
 public:
  LoopOnHost(Variant& variant, RankTimes& times, const Loop& loop)
      : variant_(variant),
        host_(*variant.host_),
        times_(times),
        loop_(loop),
        together_(variant.case_.bytes >= kLongBytes ? 1 : kShortOperationsTogether),
        ended_(variant.memory_.size(), 0) {}

  Status run() {
    const std::size_t count = ended_.size();
    times_.enter_ns.assign(count, 0);
    times_.leave_ns.assign(count, 0);
    if (loop_.leaves_ns != nullptr) loop_.leaves_ns->assign(count, {});
    are_together_ = variant_.prepared_->is_posted_together();
    TUTTI_RETURN_IF_ERROR(post_all([this](std::size_t i) { times_.enter_ns[i] = host_.now_ns(); }));
    const bool asks_each = loop_.leaves_ns != nullptr || loop_.between;
    if (variant_.prepared_->is_in_order() && !asks_each) {
      for (int number = 1; number < loop_.operations; ++number) TUTTI_RETURN_IF_ERROR(post_all([](std::size_t) {}));
      ended_.assign(count, loop_.operations - 1);  // what is tested is the last one
      rounds_ = loop_.operations - 1;
    }
    deadline_ns_ = variant_.deadline_after(times_.enter_ns.front());
    TUTTI_RETURN_IF_ERROR(host_.poll([this] { return progress(); }, [this] { return look_around(); }));
    return variant_.prepared_->settle();
  }

 private:
  /// Tests every rank once; busy where an operation ended.
  Result<Turn> progress() {
    Turn turn = Turn::idle;
    for (std::size_t i = 0; i < ended_.size(); ++i) {
      if (times_.leave_ns[i] != 0 || (are_together_ && ended_[i] > rounds_)) continue;
      TUTTI_ASSIGN_OR_RETURN(const bool is_done, variant_.prepared_->test(i));
      if (!is_done) continue;
      turn = Turn::busy;
      TUTTI_RETURN_IF_ERROR(end(i));
    }
    return left_ == 0 ? Turn::done : turn;
  }

  template <class Before>
  Status post_all(Before before) {
    const std::size_t count = ended_.size();
    if (count > 1) TUTTI_RETURN_IF_ERROR(variant_.prepared_->begin_posts());
    for (std::size_t i = 0; i < count; ++i) {
      before(i);
      TUTTI_RETURN_IF_ERROR(variant_.prepared_->post(i));
    }
    return count > 1 ? variant_.prepared_->end_posts() : Status();
  }

  /// An operation of a rank has ended: the next one, if there is one.
  Status end(std::size_t index) {
    const int number = ++ended_[index];
    if (loop_.leaves_ns != nullptr) (*loop_.leaves_ns)[index].push_back(host_.now_ns());
    if (number == loop_.operations) {
      times_.leave_ns[index] = host_.now_ns();
      --left_;
      return {};
    }
    if (are_together_ && ++waiting_ < ended_.size()) return {};
    waiting_ = 0;
    ++rounds_;
    if (loop_.between) TUTTI_RETURN_IF_ERROR(loop_.between());
    if ((index == 0 || are_together_) && (number % together_ == 0 || loop_.between)) variant_.announce();
    return are_together_ ? post_all([](std::size_t) {}) : variant_.prepared_->post(index);
  }

  /// The slow part of waiting: the deadline begins anew whenever an operation has ended.
  Status look_around() {
    const std::int64_t now = host_.now_ns();
    if (ended_ != ended_before_) {
      ended_before_ = ended_;
      deadline_ns_ = variant_.deadline_after(now);
    }
    return now < deadline_ns_ ? Status() : variant_.overdue(times_);
  }

  Variant& variant_;
  Host& host_;
  RankTimes& times_;
  const Loop& loop_;
  int together_;
  bool are_together_ = false;  ///< the ranks post each operation at once
  int rounds_ = 0;             ///< that all ranks have ended, where they post at once
  std::size_t waiting_ = 0;    ///< ranks that have ended an operation which others have not
  std::vector<int> ended_;  ///< operations, by index of the rank
  std::vector<int> ended_before_;
  std::size_t left_ = ended_.size();  ///< ranks that have not ended the loop
  std::int64_t deadline_ns_ = 0;
};

Status Variant::run_loop(RankTimes& times, const Loop& loop) { return LoopOnHost(*this, times, loop).run(); }

}  // namespace tutti::harness::measure
