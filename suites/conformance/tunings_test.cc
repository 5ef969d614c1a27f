// SPDX-License-Identifier: Apache-2.0
// Every algorithm under every kind of tuning, again and again on the same communicators: on threads, and on ranks that
// take turns but have what processes of `tutti run` have: a mapping each, channels of many slots, scratch that moves,
// and the kernel as the way to each other's memory. Buffers have exactly their length, for sanitizers to see beyond.
#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "impl/communicator/selection.h"
#include "impl/transports/peer_memory.h"
#include "impl/types/descriptor.h"
#include "suites/conformance/ranks.h"

namespace tutti {
namespace {

constexpr std::size_t kHeapBytes = std::size_t{4} << 20U;

using Element = std::int32_t;

/// Of block `block` of rank `rank`'s input.
Element element(int rank, int block, Count i, int call) {
  return static_cast<Element>(rank * 1'000'003 + block * 10'007 + i * 31 + call * 101);
}

/// What the output has there: its origins' sum. Unsigned, for it may wrap.
Element expected(const Problem& problem, int rank, int block, Count i, int call) {
  const Origin origin = origin_of(problem, rank, block);
  std::uint32_t sum = 0;
  for (int from = origin.first; from <= origin.last; ++from)
    sum += static_cast<std::uint32_t>(element(from, origin.block, i, call));
  return static_cast<Element>(sum);
}

struct Form {
  Count count = 0;
  bool is_in_place = false;
  Buffers buffers = Buffers::private_;
  int calls = 1;
};

/// Memory of exactly so many elements, which may be none.
class Memory {
 public:
  Memory(Communicator& communicator, Count elements, Buffers buffers) : communicator_(&communicator) {
    const auto number = static_cast<std::size_t>(elements);
    if (buffers == Buffers::shared) {
      shared_ = communicator.alloc_shared(number * sizeof(Element) + 1).value();
    } else {
      own_ = std::make_unique<Element[]>(number);
    }
  }
  ~Memory() {
    if (shared_ != nullptr) communicator_->free_shared(shared_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] Element* at(Count i) const {
    return (shared_ != nullptr ? static_cast<Element*>(shared_) : own_.get()) + i;
  }

 private:
  Communicator* communicator_;
  std::unique_ptr<Element[]> own_;
  void* shared_ = nullptr;
};

/// A rank's buffers, and its calls on them.
class Seat {
 public:
  Seat(Communicator& communicator, const Schedule& schedule, const Form& form)
      : communicator_(communicator),
        schedule_(schedule),
        form_(form),
        inputs_(input_blocks(schedule.problem, communicator.rank())),
        outputs_(output_blocks(schedule.problem, communicator.rank())),
        first_(communicator, (form.is_in_place ? std::max(inputs_, outputs_) : inputs_) * form.count, form.buffers),
        second_(communicator, form.is_in_place ? 0 : outputs_ * form.count, form.buffers) {
    const Count apart = form.is_in_place ? in_place_block(schedule.problem, communicator.rank()) * form.count : 0;
    input_ = first_.at(std::max<Count>(apart, 0));
    output_ = form.is_in_place ? first_.at(std::max<Count>(-apart, 0)) : second_.at(0);
  }

  [[nodiscard]] Result<Work> post(int call) {
    for (int block = 0; block < inputs_; ++block) {
      for (Count i = 0; i < form_.count; ++i)
        input_[block * form_.count + i] = element(communicator_.rank(), block, i, call);
    }
    const Problem& problem = schedule_.problem;
    return communicator_.post({.collective = problem.collective,
                               .dtype = Dtype::i32,
                               .op = is_reducing(problem.collective) ? Op::sum : Op::none,
                               .root = problem.root,
                               .count = form_.count,
                               .input = inputs_ == 0 ? nullptr : input_,
                               .output = outputs_ == 0 ? nullptr : output_,
                               .is_in_place = form_.is_in_place,
                               .buffers = form_.buffers,
                               .schedule = &schedule_});
  }

  [[nodiscard]] bool is_right(int call) const {
    for (int block = 0; block < outputs_; ++block) {
      for (Count i = 0; i < form_.count; ++i) {
        const Element found = output_[block * form_.count + i];
        const Element wanted = expected(schedule_.problem, communicator_.rank(), block, i, call);
        if (found == wanted) continue;
        ADD_FAILURE() << "call " << call << ", rank " << communicator_.rank() << ", block " << block << ", element "
                      << i << ": " << found << " in place of " << wanted;
        return false;
      }
    }
    return true;
  }

 private:
  Communicator& communicator_;
  const Schedule& schedule_;
  Form form_;
  int inputs_, outputs_;
  Memory first_, second_;
  Element* input_;
  Element* output_;
};

/// Calls `run(form)`, until it is false, with counts below the ranks, around 512 bytes a block, up to which shared
/// inputs are staged, and of several slices and segments. The shortest comes often enough to use each slot again.
template <class Run>
void in_all_forms(const Schedule& schedule, Run run) {
  for (const Buffers buffers : {Buffers::private_, Buffers::shared}) {
    for (const bool is_in_place : {false, true}) {
      for (const Count count : {1, 128, 129, 9000}) {
        const bool is_often = count == 1 && !is_in_place && buffers == Buffers::private_;
        SCOPED_TRACE(testing::Message() << to_string(schedule.problem.collective) << " " << schedule.name
                                        << to_text(schedule.tuning) << " on " << schedule.problem.ranks << " ranks, "
                                        << count << " elements, " << to_string(buffers)
                                        << (is_in_place ? ", in place" : ""));
        if (!run({.count = count, .is_in_place = is_in_place, .buffers = buffers, .calls = is_often ? 70 : 3})) return;
      }
    }
  }
}

/// Of everything that moves data.
std::deque<Schedule> schedules_with(const std::string& tuning, int ranks) {
  std::deque<Schedule> schedules;
  for (const Algorithm* const algorithm : all_algorithms()) {
    if (!has_data(algorithm->collective)) continue;
    const Problem problem{
        .collective = algorithm->collective, .ranks = ranks, .root = is_rooted(algorithm->collective) ? ranks - 1 : 0};
    const auto tuned = find_tuned(algorithm->collective, std::string(algorithm->name) + tuning);
    EXPECT_TRUE(tuned.is_ok()) << tuned.status().message();
    schedules.push_back(schedule_of(tuned.value(), problem));
  }
  return schedules;
}

/// Ranks of this thread, each with its own mapping of their memory, which take each other for processes.
class OpenWorld {
 public:
  explicit OpenWorld(int ranks) {
    const DomainShape shape = deepened(default_shape(ranks, kHeapBytes));
    EXPECT_GT(shape.scratch_area, shape.scratch_bytes);
    memory_ = Descriptor(create_memory("tutti-test", domain_bytes(shape)).value());
    const auto processes =
        std::make_shared<const std::vector<int>>(std::vector<int>(static_cast<std::size_t>(ranks), getpid()));
    for (int rank = 0; rank < ranks; ++rank) {
      domains_.push_back(shm::open_domain(shape, memory_.get()).value());
      communicators_.push_back(
          Communicator::create(*domains_.back(), rank, {.processes = processes, .prove_plans = false}).value());
    }
  }

  bool calls_are_right(const Schedule& schedule, const Form& form) {
    std::deque<Seat> seats;
    for (const auto& one : communicators_) seats.emplace_back(*one, schedule, form);
    for (int call = 0; call < form.calls; ++call) {
      std::vector<Work> works;
      for (Seat& seat : seats) {
        auto posted = seat.post(call);
        EXPECT_TRUE(posted.is_ok()) << posted.status().message();
        if (!posted.is_ok()) return false;
        works.push_back(posted.value());
      }
      if (!are_done(works)) return false;
      if (!std::ranges::all_of(seats, [&](const Seat& seat) { return seat.is_right(call); })) return false;
    }
    return true;
  }

 private:
  static bool are_done(std::vector<Work>& works) {
    for (const auto end = Clock::now() + std::chrono::seconds(60); Clock::now() < end;) {
      std::size_t done = 0;
      for (Work& work : works) {
        const auto is_done = work.test();
        EXPECT_TRUE(is_done.is_ok()) << is_done.status().message();
        if (!is_done.is_ok()) return false;
        done += is_done.value() ? 1 : 0;
      }
      if (done == works.size()) return true;
    }
    ADD_FAILURE() << works.front().report();
    return false;
  }

  Descriptor memory_;
  std::vector<std::unique_ptr<Domain>> domains_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

class Tunings : public testing::TestWithParam<std::string> {};

TEST_P(Tunings, LeaveEveryAlgorithmRightOnRanksThatTakeTurns) {
  ASSERT_TRUE(try_memory(offer_memory()).is_ok()) << "this process cannot reach memory through the kernel";
  for (const int ranks : {2, 3, 4}) {
    const std::deque<Schedule> schedules = schedules_with(GetParam(), ranks);
    OpenWorld world(ranks);
    for (const Schedule& schedule : schedules)
      in_all_forms(schedule, [&](const Form& form) { return world.calls_are_right(schedule, form); });
  }
}

bool calls_of_rank_are_right(Communicator& communicator, const Schedule& schedule, const Form& form) {
  Seat seat(communicator, schedule, form);
  for (int call = 0; call < form.calls; ++call) {
    auto posted = seat.post(call);
    const Status status = posted.is_ok() ? posted.value().wait() : posted.status();
    EXPECT_TRUE(status.is_ok()) << status.message();
    if (!status.is_ok() || !seat.is_right(call)) return false;
  }
  return true;
}

/// One mapping for all, so that the thread sanitizer sees what they share.
TEST_P(Tunings, LeaveEveryAlgorithmRightOnThreads) {
  constexpr int kRanks = 2;
  const std::deque<Schedule> schedules = schedules_with(GetParam(), kRanks);
  const auto domain = local::open_domain(deepened(local::shape_for(kRanks)));
  ASSERT_TRUE(domain.is_ok()) << domain.status().message();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      run_rank(*domain.value(), rank, [&](Communicator& communicator) {
        for (const Schedule& schedule : schedules) {
          in_all_forms(schedule,
                       [&](const Form& form) { return calls_of_rank_are_right(communicator, schedule, form); });
        }
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Kinds, Tunings, testing::Values("", "+4K", "+1K+streamed", "+single_copy"),
                         [](const auto& one) {
                           std::string name = one.param.empty() ? "none" : one.param.substr(1);
                           for (char& c : name) c = c == '+' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace tutti
