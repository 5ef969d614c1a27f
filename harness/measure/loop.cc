// SPDX-License-Identifier: Apache-2.0
// Loops of operations: Variant::run_loop.
#include <algorithm>
#include <chrono>

#include "harness/machine/clock.h"
#include "harness/measure/variant.h"

namespace tutti::harness::measure {
namespace {

/// The launcher's deadline is that of what is announced. Announcing takes some 50 ns, so short operations are announced
/// together.
constexpr std::int64_t kLongBytes = 65536;
constexpr int kShortOperationsTogether = 64;

/// Operations that are posted ahead have no milestone between them where they are known to take this part of a deadline
/// together: it would take time on the stream.
constexpr std::int64_t kPartsOfDeadline = 1000;
/// So many times what they are known to take is granted to operations without a milestone between them.
constexpr std::int64_t kTimesGranted = 100;
constexpr double kMostGrantedNs = 1e18;          ///< for ever
constexpr std::int64_t kLooksWhilePosting = 16;  ///< at the milestones, in the time of a deadline

}  // namespace

/// One loop on the ranks of this runner.
class Variant::LoopOnRunner {
 public:
  LoopOnRunner(Variant& variant, RankTimes& times, const Loop& loop)
      : variant_(variant),
        runner_(*variant.runner_),
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
    TUTTI_RETURN_IF_ERROR(reserve_instants());
    if (is_posted_ahead()) TUTTI_RETURN_IF_ERROR(reserve_milestones());
    if (loop_.launches > 0) TUTTI_RETURN_IF_ERROR(capture());
    if (loop_.start) TUTTI_RETURN_IF_ERROR(loop_.start());
    TUTTI_RETURN_IF_ERROR(variant_.mark_begin(times_));
    TUTTI_RETURN_IF_ERROR(mark());
    if (is_posted_ahead()) renew(runner_.now_ns());
    TUTTI_RETURN_IF_ERROR(loop_.launches > 0 ? launch() : post_first());
    if (are_all_posted()) TUTTI_RETURN_IF_ERROR(variant_.mark_ends());
    if (!is_posted_ahead()) deadline_.begin_anew(variant_.deadline_after(times_.enter_ns.front()));
    TUTTI_RETURN_IF_ERROR(runner_.poll([this] { return progress(); }, [this] { return look_around(); }));
    variant_.took_ns_ = longest_of(times_) / operations_in(rounds_in_all());
    TUTTI_RETURN_IF_ERROR(read_instants());
    TUTTI_RETURN_IF_ERROR(variant_.read_ends(times_));
    return variant_.prepared_->settle();
  }

 private:
  [[nodiscard]] bool has_instants() const { return !instants_.empty(); }

  Status reserve_instants() {
    if (loop_.intervals_us == nullptr) return {};
    loop_.intervals_us->clear();
    if (!variant_.prepared_->is_in_order()) return {};  // whose calls are on no stream of the buffers' memory
    const int most = (loop_.launches > 0 ? loop_.launches : loop_.operations) + 1;
    for (std::size_t i = 0; i < ended_.size(); ++i) {
      TUTTI_ASSIGN_OR_RETURN(auto instants, variant_.kind_of(i).instants(most));
      if (instants == nullptr) return {};
      instants_.push_back(std::move(instants));
    }
    return {};
  }
  Status mark() {
    for (const auto& instants : instants_) TUTTI_RETURN_IF_ERROR(instants->mark());
    return {};
  }

  /// On streams all are, unless something is to be done after each. Of a graph all launches are.
  [[nodiscard]] bool is_posted_ahead() const {
    const bool asks_each = (loop_.leaves_ns != nullptr && !has_instants()) || loop_.between || loop_.ends_each;
    return loop_.launches > 0 || (variant_.prepared_->is_in_order() && !asks_each);
  }
  /// A round is a launch, or a group of operations.
  [[nodiscard]] int rounds_in_all() const { return loop_.launches > 0 ? loop_.launches : loop_.operations; }
  [[nodiscard]] std::int64_t operations_in(std::int64_t rounds) const {
    return rounds * loop_.grouped * (loop_.launches > 0 ? loop_.operations : 1);
  }

  Status reserve_milestones() {
    const std::int64_t timeout_ns = runner_.timeout().count();
    const std::int64_t took_ns = variant_.took_ns_;
    const std::int64_t together = took_ns == 0 ? 1 : timeout_ns / kPartsOfDeadline / took_ns;
    const std::int64_t rounds = rounds_in_all();
    step_ = has_instants() ? 1 : std::clamp<std::int64_t>(together / operations_in(1), 1, rounds);
    const auto most = static_cast<int>((rounds - 1) / step_);
    for (std::size_t i = 0; !has_instants() && most > 0 && variant_.prepared_->is_in_order() && i < ended_.size();
         ++i) {
      TUTTI_ASSIGN_OR_RETURN(auto milestones, variant_.kind_of(i).instants(most));
      if (milestones == nullptr) break;
      milestones_.push_back(std::move(milestones));
    }
    const bool is_told = has_instants() || !milestones_.empty();
    const std::int64_t untold = operations_in(is_told ? step_ : rounds);
    const double most_ns = static_cast<double>(untold - 1) * static_cast<double>(timeout_ns);
    const double known_ns = static_cast<double>(untold) * static_cast<double>(kTimesGranted * took_ns);
    const double granted_ns = took_ns == 0 ? most_ns : std::min(most_ns, known_ns);
    granted_ = std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(granted_ns, kMostGrantedNs)));
    return {};
  }
  /// Behind a round, the first of which has number 0.
  Status mark_round(int number) {
    TUTTI_RETURN_IF_ERROR(mark());
    const bool has_milestone = (number + 1) % step_ == 0 && number + 1 < rounds_in_all();
    for (const auto& milestones : milestones_) {
      if (has_milestone) TUTTI_RETURN_IF_ERROR(milestones->mark());
    }
    const std::int64_t now = runner_.now_ns();
    if (now < next_look_ns_) return {};
    next_look_ns_ = now + runner_.timeout().count() / kLooksWhilePosting;
    return look_at_milestones(now);  // posting takes as long as what is under way where the stream has no room
  }
  Status look_at_milestones(std::int64_t now) {
    std::size_t passed = 0;
    for (const auto& milestones : has_instants() ? instants_ : milestones_) {
      TUTTI_ASSIGN_OR_RETURN(const std::size_t of_rank, milestones->passed());
      passed += of_rank;
    }
    if (passed == passed_) return {};
    passed_ = passed;
    renew(now);
    return {};
  }
  void renew(std::int64_t now) {
    runner_.renew(granted_);
    deadline_.begin_anew(variant_.deadline_after(now) + granted_.count());
  }

  Status read_instants() {
    for (const auto& instants : instants_) {
      TUTTI_ASSIGN_OR_RETURN(std::vector<double> intervals, instants->intervals_us());
      loop_.intervals_us->push_back(std::move(intervals));
    }
    return {};
  }

  /// All operations into a graph of each rank.
  Status capture() {
    const std::size_t count = ended_.size();
    backends::Prepared& prepared = *variant_.prepared_;
    const bool is_own = prepared.has_graphs();
    for (std::size_t i = 0; i < count; ++i) {
      TUTTI_RETURN_IF_ERROR(is_own ? prepared.begin_capture(i) : variant_.kind_of(i).begin_capture());
    }
    for (int number = 0; number < loop_.operations; ++number) TUTTI_RETURN_IF_ERROR(post_all([](std::size_t) {}));
    for (std::size_t i = 0; i < count; ++i) {
      TUTTI_ASSIGN_OR_RETURN(auto graph, is_own ? prepared.end_capture(i) : variant_.kind_of(i).end_capture());
      graphs_.push_back(std::move(graph));
    }
    return {};
  }

  /// What is tested is what was posted last, which is in the graph: it ends with the last launch.
  Status launch() {
    for (int number = 0; number < loop_.launches; ++number) {
      for (std::size_t i = 0; i < graphs_.size(); ++i) {
        if (number == 0) times_.enter_ns[i] = runner_.now_ns();
        TUTTI_RETURN_IF_ERROR(graphs_[i]->launch());
      }
      TUTTI_RETURN_IF_ERROR(mark_round(number));
    }
    note_all_posted();
    return {};
  }

  /// The first operation, or all of them.
  Status post_first() {
    TUTTI_RETURN_IF_ERROR(post_all([this](std::size_t i) { times_.enter_ns[i] = runner_.now_ns(); }));
    if (!is_posted_ahead()) return mark();
    TUTTI_RETURN_IF_ERROR(mark_round(0));
    for (int number = 1; number < loop_.operations; ++number) {
      TUTTI_RETURN_IF_ERROR(post_all([](std::size_t) {}));
      TUTTI_RETURN_IF_ERROR(mark_round(number));
    }
    note_all_posted();
    return {};
  }

  void note_all_posted() {
    ended_.assign(ended_.size(), loop_.operations - 1);  // what is tested is the last one
    rounds_ = loop_.operations - 1;
    if (loop_.posted_ns != nullptr) *loop_.posted_ns = runner_.now_ns();
  }

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

  /// An operation of every rank, or a group of them. `before` is called before the first of a rank.
  template <class Before>
  Status post_all(Before before) {
    const std::size_t count = ended_.size();
    const bool is_group = count > 1 || loop_.grouped > 1;
    if (is_group) TUTTI_RETURN_IF_ERROR(variant_.prepared_->begin_posts());
    for (int number = 0; number < loop_.grouped; ++number) {
      for (std::size_t i = 0; i < count; ++i) {
        if (number == 0) before(i);
        TUTTI_RETURN_IF_ERROR(variant_.prepared_->post(i));
      }
    }
    return is_group ? variant_.prepared_->end_posts() : Status();
  }

  /// The next operation, of all ranks where they post together.
  Status post_next(std::size_t index) {
    if (!are_together_ && loop_.grouped == 1 && variant_.ends_.empty()) return variant_.prepared_->post(index);
    TUTTI_RETURN_IF_ERROR(post_all([](std::size_t) {}));
    TUTTI_RETURN_IF_ERROR(mark());
    return are_all_posted() ? variant_.mark_ends() : Status();
  }

  /// Whether the one that is under way is the last one. Of several ranks they post together.
  [[nodiscard]] bool are_all_posted() const { return ended_.front() == loop_.operations - 1; }

  /// An operation of a rank has ended: the next one, if there is one.
  Status end(std::size_t index) {
    const int number = ++ended_[index];
    if (loop_.leaves_ns != nullptr) (*loop_.leaves_ns)[index].push_back(runner_.now_ns());
    if (number == loop_.operations) {
      times_.leave_ns[index] = runner_.now_ns();
      --left_;
      return {};
    }
    if (are_together_ && ++waiting_ < ended_.size()) return {};
    waiting_ = 0;
    ++rounds_;
    if (loop_.between) TUTTI_RETURN_IF_ERROR(loop_.between());
    if ((index == 0 || are_together_) && (number % together_ == 0 || loop_.between)) variant_.announce();
    return post_next(index);
  }

  /// The slow part of waiting: the deadline begins anew whenever an operation has ended.
  Status look_around() {
    const std::int64_t now = runner_.now_ns();
    if (is_posted_ahead()) {
      TUTTI_RETURN_IF_ERROR(look_at_milestones(now));
    } else if (ended_ != ended_before_) {
      ended_before_ = ended_;
      deadline_.begin_anew(variant_.deadline_after(now));
    }
    return deadline_.has_passed(now) ? variant_.overdue(times_) : Status();
  }

  Variant& variant_;
  Runner& runner_;
  RankTimes& times_;
  const Loop& loop_;
  int together_;
  bool are_together_ = false;                           ///< the ranks post each operation at once
  int rounds_ = 0;                                      ///< that all ranks have ended, where they post at once
  std::size_t waiting_ = 0;                             ///< ranks that have ended an operation which others have not
  std::vector<std::unique_ptr<verify::Graph>> graphs_;  ///< by index of the rank; empty: none was captured
  std::vector<std::unique_ptr<verify::Instants>> instants_;  ///< by index of the rank; empty: nobody asks for them
  /// Behind rounds that are posted ahead, by index of the rank; empty: there are instants, or nothing tells.
  std::vector<std::unique_ptr<verify::Instants>> milestones_;
  std::int64_t step_ = 1;               ///< rounds from one milestone to the next
  std::chrono::nanoseconds granted_{};  ///< beyond the timeout, from one milestone to the next
  std::size_t passed_ = 0;              ///< milestones or instants, of all ranks
  std::int64_t next_look_ns_ = 0;       ///< at them, while it is posted
  std::vector<int> ended_;              ///< operations, by index of the rank
  std::vector<int> ended_before_;
  std::size_t left_ = ended_.size();  ///< ranks that have not ended the loop
  Deadline deadline_{runner_.board(), 0};
};

Status Variant::run_loop(RankTimes& times, const Loop& loop) { return LoopOnRunner(*this, times, loop).run(); }

}  // namespace tutti::harness::measure
