// SPDX-License-Identifier: Apache-2.0
// all_reduce (float, sum) between two threads with shared buffers: tutti's public blocking call against the fastest
// hand-written exchange, in one process and within one state of the machine.
//
// A block is four batches, ABBA or BAAB, between two probes of the round trip of a cache line. Blocks in which that
// changed by more than 1.5x, or in which it was another one than in most blocks, are dropped. Batches, because one
// operation of 8 B is shorter than the clock's tick. Every operation of a batch works on the same unmodified buffers,
// so both sides find them in cache. Blocks take turns at several places in memory: at 8 B one place differs from
// another. Results are verified before and after; Google Benchmark's own rows, of the first place, come first.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/text/output_file.h"
#include "suites/micro/duo.h"

namespace tutti::micro {
namespace {

struct Size {
  std::size_t bytes;
  int operations;  ///< per batch: about 50 us
  double goal;     ///< of tutti / hand-written
};
constexpr Size kSizes[] = {{8, 1000, 1.5}, {4096, 500, 1.3}, {256 * 1024, 20, 1.3}};
constexpr std::size_t kCapacity = 256 * 1024 / sizeof(float);
constexpr int kRoundTrips = 100;
constexpr double kSameState = 1.5;

struct Block {
  std::size_t place = 0;
  double tutti_ns = 0;  ///< mean of its two batches
  double handwritten_ns = 0;
  double line_before_ns = 0;
  double line_after_ns = 0;
};

struct Row {
  Size size;
  std::string algorithm;
  std::vector<Block> kept;
  std::size_t dropped = 0;
};

/// Ends the program where a batch failed or a result is wrong: no number may be printed then.
void require(const Status& status) {
  if (status.is_ok()) return;
  fmt::print(stderr, "micro_all_reduce: {}\n", status.message());
  std::exit(status.code() == Code::mismatch ? 1 : status.code() == Code::unavailable ? 3 : 5);
}

double time_of(Duo& duo, const Batch& batch) {
  Result<double> nanoseconds = duo.run(batch);
  require(nanoseconds.status());
  return nanoseconds.value();
}

Batch batch_of(Side side, const Size& size, std::size_t place) {
  return {.side = side, .place = place, .count = size.bytes / sizeof(float), .operations = size.operations};
}

void verify_all(Duo& duo) {
  for (std::size_t place = 0; place < duo.places(); ++place) {
    for (const Size& size : kSizes) {
      for (const Side side : {Side::tutti, Side::handwritten}) {
        Batch batch = batch_of(side, size, place);
        batch.operations = 50;
        batch.is_checked = true;
        require(duo.run(batch).status());
      }
    }
  }
}

/// Each side is the first one at each place in every other round.
Block measure_block(Duo& duo, const Size& size, std::size_t number) {
  const Batch probe{.side = Side::line, .operations = kRoundTrips};
  const std::size_t place = number % duo.places();
  const bool is_swapped = number / duo.places() % 2 != 0;
  const Side a = is_swapped ? Side::handwritten : Side::tutti;
  const Side b = is_swapped ? Side::tutti : Side::handwritten;
  Block block{.place = place};
  block.line_before_ns = time_of(duo, probe);
  for (const Side side : {a, b, b, a}) {
    (side == Side::tutti ? block.tutti_ns : block.handwritten_ns) += time_of(duo, batch_of(side, size, place)) / 2;
  }
  block.line_after_ns = time_of(duo, probe);
  return block;
}

/// NaN where no block was kept: the machine changed in each of a few.
double quantile(std::vector<double> values, double fraction) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(fraction * static_cast<double>(values.size() - 1) + 0.5)];
}

/// `fraction` of the blocks have at most this much of what `get` says.
template <class Get>
double quantile_of(const std::vector<Block>& blocks, double fraction, Get get) {
  std::vector<double> values;
  for (const Block& block : blocks) values.push_back(get(block));
  return quantile(std::move(values), fraction);
}

bool is_same_state(double a, double b) { return std::max(a, b) <= kSameState * std::min(a, b); }

Row measure(Duo& duo, const Size& size, std::size_t blocks) {
  std::vector<Block> all;
  for (std::size_t i = 0; i < blocks; ++i) all.push_back(measure_block(duo, size, i));
  const double usual_ns = quantile_of(all, 0.5, [](const Block& block) { return block.line_before_ns; });
  Row row{.size = size, .algorithm = duo.algorithm(size.bytes / sizeof(float)), .kept = {}};
  for (const Block& block : all) {
    const bool is_kept =
        is_same_state(block.line_before_ns, block.line_after_ns) && is_same_state(block.line_before_ns, usual_ns);
    if (is_kept) row.kept.push_back(block);
  }
  row.dropped = all.size() - row.kept.size();
  return row;
}

double tutti_median_of(const std::vector<Block>& blocks) {
  return quantile_of(blocks, 0.5, [](const Block& block) { return block.tutti_ns; });
}

double handwritten_median_of(const std::vector<Block>& blocks) {
  return quantile_of(blocks, 0.5, [](const Block& block) { return block.handwritten_ns; });
}

double ratio_of(const std::vector<Block>& blocks) { return tutti_median_of(blocks) / handwritten_median_of(blocks); }

/// The ratio at each place that has a block.
std::vector<double> ratios_of_places(const std::vector<Block>& blocks, std::size_t places) {
  std::vector<double> ratios;
  for (std::size_t place = 0; place < places; ++place) {
    std::vector<Block> there;
    std::ranges::copy_if(blocks, std::back_inserter(there), [&](const Block& block) { return block.place == place; });
    if (!there.empty()) ratios.push_back(ratio_of(there));
  }
  return ratios;
}

nlohmann::ordered_json summary_of(const Row& row, std::size_t places) {
  const auto ratio = [](const Block& block) { return block.tutti_ns / block.handwritten_ns; };
  const auto line_ns = [](const Block& block) { return block.line_before_ns; };
  return {{"bytes", row.size.bytes},
          {"algorithm", row.algorithm},
          {"tutti_ns", tutti_median_of(row.kept)},
          {"handwritten_ns", handwritten_median_of(row.kept)},
          {"ratio", ratio_of(row.kept)},
          {"ratio_p25", quantile_of(row.kept, 0.25, ratio)},
          {"ratio_p75", quantile_of(row.kept, 0.75, ratio)},
          {"ratios_of_places", ratios_of_places(row.kept, places)},
          {"goal", row.size.goal},
          {"line_ns", quantile_of(row.kept, 0.5, line_ns)},
          {"blocks", row.kept.size()},
          {"dropped", row.dropped},
          {"operations_per_batch", row.size.operations}};
}

/// "0.98 - 1.10"; "nan - nan" where there is nothing.
std::string range_of(const std::vector<double>& values) {
  return fmt::format("{:.2f} - {:.2f}", quantile(values, 0), quantile(values, 1));
}

void print(const nlohmann::ordered_json& rows, std::size_t places) {
  fmt::print("\nall_reduce, float sum, 2 threads, shared buffers: tutti / hand-written, medians of ABBA blocks");
  fmt::print(" at {} places in memory\n", places);
  fmt::print("{:>8}  {:<10}{:>10}{:>16}{:>8}{:>16}{:>16}{:>7}{:>9}{:>8}{:>9}\n", "bytes", "algorithm", "tutti ns",
             "hand-written ns", "ratio", "half of blocks", "all places", "goal", "line ns", "blocks", "dropped");
  for (const auto& row : rows) {
    const std::string half = range_of({row["ratio_p25"].get<double>(), row["ratio_p75"].get<double>()});
    fmt::print("{:>8}  {:<10}{:>10.1f}{:>16.1f}{:>8.2f}{:>16}{:>16}{:>7.1f}{:>9.0f}{:>8}{:>9}\n",
               row["bytes"].get<std::size_t>(), row["algorithm"].get<std::string>(), row["tutti_ns"].get<double>(),
               row["handwritten_ns"].get<double>(), row["ratio"].get<double>(), half,
               range_of(row["ratios_of_places"].get<std::vector<double>>()), row["goal"].get<double>(),
               row["line_ns"].get<double>(), row["blocks"].get<std::size_t>(), row["dropped"].get<std::size_t>());
  }
}

void register_rows(Duo& duo) {
  for (const Size& size : kSizes) {
    for (const Side side : {Side::tutti, Side::handwritten}) {
      const std::string name =
          fmt::format("BM_AllReduce{}/{}", side == Side::tutti ? "Tutti" : "Handwritten", size.bytes);
      const auto run = [&duo, side, size](benchmark::State& state) {
        while (state.KeepRunningBatch(size.operations)) {
          state.SetIterationTime(time_of(duo, batch_of(side, size, 0)) * size.operations * 1e-9);
        }
      };
      benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime();
    }
  }
}

int complain(const Status& status) {
  fmt::print(stderr, "micro_all_reduce: --json: {}\n", status.message());
  return 2;
}

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);  // takes its own flags away
  CLI::App app{
      "all_reduce between two threads: tutti against a hand-written exchange. Also takes --benchmark_* flags."};
  std::size_t blocks = 400;
  std::size_t places = 16;
  std::string json_path;
  app.add_option("--blocks", blocks, "ABBA blocks per size")->check(CLI::Range(1, 1000000))->capture_default_str();
  app.add_option("--places", places, "places in memory, which blocks take in turn; each has 2.2 MiB of buffers")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--json", json_path, "writes the ratios here");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  }
  harness::OutputFiles files;
  if (const Status status = files.open(json_path); !status.is_ok()) return complain(status);

  Result<std::unique_ptr<Duo>> duo = Duo::create(kCapacity, places);
  require(duo.status());
  verify_all(*duo.value());
  register_rows(*duo.value());
  benchmark::RunSpecifiedBenchmarks();

  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Size& size : kSizes) rows.push_back(summary_of(measure(*duo.value(), size, blocks), places));
  verify_all(*duo.value());
  print(rows, places);
  const nlohmann::ordered_json document{
      {"collective", "all_reduce"}, {"dtype", "float"},    {"op", "sum"}, {"ranks", 2},
      {"ranks_as", "threads"},      {"buffers", "shared"}, {"rows", rows}};
  const Status written = files.replace(json_path, document.dump(2) + "\n");
  return written.is_ok() ? 0 : complain(written);
}

}  // namespace
}  // namespace tutti::micro

int main(int argc, char** argv) { return tutti::micro::run(argc, argv); }
