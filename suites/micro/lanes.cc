// SPDX-License-Identifier: Apache-2.0
// What a lane for each peer would bring. all_to_all over channels runs in one cell in two ways. The algorithm `linear`
// is one program with sends and receives that take turns, slice by slice. The other way is a send and a receive for
// each peer. Each of them is a lane of its own that goes on as soon as its channel lets it. Slots are of the same
// number and size. Ranks are threads with private buffers, each bound to a core where there are enough. With a number
// of microseconds after `late`, another rank comes later by that in each call, and times are from its arrival on. A
// rank that is free of the order could have done more by then.
//
//   build/bin/micro_lanes [RANKS [late MICROSECONDS] [BYTES...]]
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "harness/backends/tutti/backend.h"
#include "harness/board/binding.h"
#include "harness/machine/allowed_cores.h"
#include "harness/measure/cell.h"
#include "impl/transports/local/domain.h"
#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/measure/plain_backend.h"

namespace tutti::harness {
namespace {

/// all_to_all of a send and a receive per peer.
class LanePerPeer final : public PlainBackend {
 public:
  LanePerPeer(Domain& domain, int rank, const CommunicatorOptions& options)
      : PlainBackend("lanes"), communicator_(Communicator::create(domain, rank, options).value()) {}
  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(const Case& one,
                                                          std::span<const RankBuffers> buffers) override {
    return std::unique_ptr<Prepared>(new Lanes(*communicator_, one.count, buffers.front()));
  }

 private:
  class Lanes final : public Prepared {
   public:
    Lanes(Communicator& communicator, Count count, RankBuffers buffers)
        : communicator_(communicator), count_(count), buffers_(buffers) {}
    Status post(std::size_t /*index*/) override {
      const int ranks = communicator_.ranks(), rank = communicator_.rank();
      under_way_.clear();
      std::memcpy(static_cast<float*>(buffers_.output) + rank * count_,
                  static_cast<const float*>(buffers_.input) + rank * count_, sizeof(float) * count_);
      for (int distance = 1; distance < ranks; ++distance) {
        const int to = (rank + distance) % ranks, from = (rank + ranks - distance) % ranks;
        const float* const sent = static_cast<const float*>(buffers_.input) + to * count_;
        TUTTI_ASSIGN_OR_RETURN(Work send, communicator_.post_send(sent, count_, Dtype::f32, to));
        float* const received = static_cast<float*>(buffers_.output) + from * count_;
        TUTTI_ASSIGN_OR_RETURN(Work receive, communicator_.post_recv(received, count_, Dtype::f32, from));
        under_way_.insert(under_way_.end(), {send, receive});
      }
      return {};
    }
    Result<bool> test(std::size_t /*index*/) override {
      while (!under_way_.empty()) {  // testing the last one makes progress with all
        TUTTI_ASSIGN_OR_RETURN(const bool is_complete, under_way_.back().test());
        if (!is_complete) return false;
        under_way_.pop_back();
      }
      return true;
    }

   private:
    Communicator& communicator_;
    Count count_;
    RankBuffers buffers_;
    std::vector<Work> under_way_;
  };
  std::unique_ptr<Communicator> communicator_;
};

struct Question {
  int ranks = 4;
  std::chrono::nanoseconds late{};
  std::vector<std::int64_t> sizes;
};

Case case_of(int ranks, std::int64_t bytes) {
  Case one;
  one.collective = Collective::all_to_all;
  one.algorithm = "linear";
  one.transport = "local";
  one.ranks = ranks;
  one.ranks_as = RanksAs::threads;
  set_bytes(one, bytes);
  return one;
}

/// Both ways in one cell, as one rank sees it; the rows are runner 0's.
std::vector<Row> measure_on(Runner& runner, Domain& domain, const Question& question, std::int64_t bytes,
                            bool is_crowded) {
  const CommunicatorOptions options{.waiting = is_crowded ? Waiting::yield : Waiting::spin};
  const auto turns = OwnBackend::create(domain, runner.ranks(), options).value();
  LanePerPeer lanes(domain, runner.ranks().front(), options);
  const auto plain = [](const Case&, std::size_t) { return plain_memory(); };
  Case one = case_of(question.ranks, bytes);
  std::vector<Variant> variants;
  variants.push_back(Variant::create(runner, {.backend = *turns, .memory = plain, .instance = one}).value());
  one.backend = lanes.name();
  one.algorithm = kNone;
  variants.push_back(Variant::create(runner, {.backend = lanes, .memory = plain, .instance = one}).value());
  return measure_cell(runner, variants, {.conditions = {.skew = question.late}}).value();
}

std::vector<Row> measure(const Question& question, std::int64_t bytes) {
  DomainShape shape = local::shape_for(question.ranks);
  shape.pair_slots = shape.slots;
  shape.pair_slot_bytes = shape.slot_bytes;
  const auto domain = local::open_domain(shape).value();
  const BoardMemory memory(question.ranks);
  const auto masks = masks_for(std::nullopt, question.ranks, places_here()).value();
  const bool crowded = is_crowded(masks);
  std::vector<std::thread> threads;
  std::vector<Row> result;
  for (int rank = 0; rank < question.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      (void)bind_this_thread(masks[static_cast<std::size_t>(rank)]);
      RunnerOptions options = runner_options(rank, question.ranks);
      options.yields = crowded;
      Runner runner(memory.board(), options);
      std::vector<Row> rows = measure_on(runner, *domain, question, bytes, crowded);
      if (rank == 0) result = std::move(rows);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return result;
}

int run(const Question& question) {
  fmt::print("# all_to_all, P={} threads, private buffers, another rank late by {} us in each call\n", question.ranks,
             question.late.count() / 1000);
  fmt::print("#{:>11} {:>12} {:>12} {:>14}\n", "size (B)", "turns (us)", "lanes (us)", "turns / lanes");
  for (const std::int64_t bytes : question.sizes) {
    const std::vector<Row> rows = measure(question, bytes);
    for (const Row& row : rows) {
      if (row.verdict == Verdict::ok) continue;
      fmt::print(stderr, "micro_lanes: {}: {}\n", row.case_id, row.reason);
      return EXIT_FAILURE;
    }
    fmt::print(" {:>11} {:>12.3f} {:>12.3f} {:>14.2f}\n", rows[0].bytes, *rows[0].time_median, *rows[1].time_median,
               *rows[0].time_median / *rows[1].time_median);
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace tutti::harness

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  tutti::harness::Question question;
  if (!words.empty()) question.ranks = std::atoi(words[0].data());
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "late" && i + 1 < words.size()) {
      question.late = std::chrono::microseconds(std::atoll(words[++i].data()));
    } else {
      question.sizes.push_back(std::atoll(words[i].data()));
    }
  }
  if (question.sizes.empty()) question.sizes = {4096, 65536, 1 << 20, 16 << 20};
  if (question.ranks < 2 || question.late.count() < 0 || *std::ranges::min_element(question.sizes) < 1) {
    fmt::print(stderr, "micro_lanes [RANKS [late MICROSECONDS] [BYTES...]]: 2 ranks or more, bytes above 0\n");
    return 2;
  }
  return tutti::harness::run(question);
}
