// SPDX-License-Identifier: Apache-2.0
// Is the machine's limit one? Beside it, in the same cell, runs a copy test that shares no code with it. Every rank
// copies as many bytes from its own input to its own output with memcpy. The limit of all_to_all moves the same bytes
// between ranks; its bandwidth should be at least 0.9 of the copy test's. Ranks are threads, each bound to a core.
//
//   build/bin/micro_limit [--least RATIO] [RANKS [BYTES...]]
//
// With --least 0.9 the exit code is 1 where a ratio of 64 KiB or more is smaller.
#include "harness/measure/limit.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "harness/board/binding.h"
#include "harness/machine/allowed_cores.h"
#include "harness/machine/clock.h"
#include "harness/measure/cell.h"
#include "impl/transports/local/domain.h"
#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/measure/plain_backend.h"

namespace tutti::harness {
namespace {

/// As a system under test; that its results are no all_to_all's is nobody's concern here.
class CopyTest final : public PlainBackend {
 public:
  CopyTest() : PlainBackend("copy") {}
  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(const Case& one,
                                                          std::span<const RankBuffers> buffers) override {
    return std::unique_ptr<Prepared>(new Copy(buffers.front(), static_cast<std::size_t>(one.bytes)));
  }

 private:
  class Copy final : public Prepared {
   public:
    Copy(RankBuffers buffers, std::size_t bytes) : buffers_(buffers), bytes_(bytes) {}
    Status post(std::size_t /*index*/) override {
      std::memcpy(buffers_.output, buffers_.input, bytes_);
      return {};
    }
    Result<bool> test(std::size_t /*index*/) override { return true; }

   private:
    RankBuffers buffers_;
    std::size_t bytes_;
  };
};

/// Both in one cell, as one rank sees it; the row is runner 0's.
std::vector<Row> measure_on(Runner& runner, Domain& domain, std::int64_t bytes) {
  CopyTest copy;
  LimitBackend limit(domain, runner.ranks());
  Case one;
  one.collective = Collective::all_to_all;
  one.backend = copy.name();
  one.transport = "local";
  one.ranks = runner.job_ranks();
  one.ranks_as = RanksAs::threads;
  set_bytes(one, bytes);
  const auto plain = [](const Case&, std::size_t) { return plain_memory(); };
  std::vector<Variant> variants;
  variants.push_back(Variant::create(runner, {.backend = copy, .memory = plain, .instance = one}).value());
  const std::int64_t trial_end_ns = runner.agree(monotonic_ns() + 100'000'000).value();
  variants.push_back(
      *make_limit(runner, limit, {.backend = limit, .memory = plain, .instance = one}, trial_end_ns).value());
  return measure_cell(runner, variants, {.limits = {"movements"}}).value();
}

/// The copy test's row, with its share of the limit.
Row measure(int ranks, std::int64_t bytes) {
  const auto domain = local::open_domain(local::shape_for(ranks)).value();
  const BoardMemory memory(ranks);
  const auto masks = masks_for(std::nullopt, ranks, places_here()).value();
  std::vector<std::thread> threads;
  Row row;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      (void)bind_this_thread(masks[static_cast<std::size_t>(rank)]);
      RunnerOptions options = runner_options(rank, ranks);
      options.yields = is_crowded(masks);
      Runner runner(memory.board(), options);
      const std::vector<Row> rows = measure_on(runner, *domain, bytes);
      if (rank == 0) row = rows.front();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return row;
}

constexpr std::int64_t kLeastJudged = std::int64_t{64} << 10;  // bytes; below, other things than copying cost as much

int run(double least, int ranks, const std::vector<std::int64_t>& sizes) {
  int code = EXIT_SUCCESS;
  fmt::print("# all_to_all, P={} threads: the limit's bandwidth / that of memcpy from own input to own output\n",
             ranks);
  fmt::print("#{:>11} {:>12} {:>12} {:>8}\n", "size (B)", "limit (us)", "copy (us)", "ratio");
  for (const std::int64_t bytes : sizes) {
    const Row row = measure(ranks, bytes);
    if (!row.limit_time) {
      fmt::print(stderr, "micro_limit: the limit's result is wrong at {} bytes\n", bytes);
      return EXIT_FAILURE;
    }
    const double ratio = 1 / *row.limit_fraction;
    fmt::print(" {:>11} {:>12.3f} {:>12.3f} {:>8.2f}\n", row.bytes, *row.limit_time, *row.time_median, ratio);
    if (row.bytes < kLeastJudged || ratio >= least) continue;
    fmt::print(stderr, "micro_limit: at {} bytes the limit has {:.2f} of the copy test's bandwidth, below {}\n",
               row.bytes, ratio, least);
    code = EXIT_FAILURE;
  }
  return code;
}

}  // namespace
}  // namespace tutti::harness

int main(int argc, char** argv) {
  std::vector<std::string_view> words(argv + 1, argv + argc);
  const bool judges = words.size() > 1 && words[0] == "--least";
  const double least = judges ? std::atof(words[1].data()) : 0;
  if (judges) words.erase(words.begin(), words.begin() + 2);
  const auto ranks = words.empty() ? 2 : std::atoi(words[0].data());
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 1; i < words.size(); ++i) sizes.push_back(std::atoll(words[i].data()));
  if (sizes.empty()) sizes = {4096, 65536, 1 << 20, 16 << 20, 64 << 20};
  if (ranks < 1 || (judges && least <= 0) || *std::ranges::min_element(sizes) < 1) {
    fmt::print(stderr, "micro_limit [--least RATIO] [RANKS [BYTES...]]: all are numbers above 0\n");
    return 2;
  }
  return tutti::harness::run(least, ranks, sizes);
}
