// SPDX-License-Identifier: Apache-2.0
#include "suites/perf/traffic.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "harness/cases/counts_name.h"
#include "harness/text/counted.h"
#include "harness/text/read_file.h"
#include "suites/perf/programs.h"

namespace tutti::perf {
namespace {

constexpr double kMostBytes = static_cast<double>(harness::kMostCount);

std::int64_t whole_chunks(double bytes) { return static_cast<std::int64_t>(bytes) / kChunkBytes * kChunkBytes; }

/// A number from 0 to `most`, all of the text.
std::optional<double> number_in(const std::string& text, double most) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stop != end || !std::isfinite(value) || value < 0 || value > most) return {};
  return value;
}

/// Sets what the variable says, where it is there.
Status read_number(const char* name, double most, double& target) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return {};
  const std::optional<double> value = number_in(text, most);
  if (!value) {
    return error(Code::invalid_argument, "{} is '{}': it must be a number from 0 to {:.0f}, such as {}", name, text,
                 most, target);
  }
  target = *value;
  return {};
}

/// The rows of the file that have numbers. Errors: invalid_argument naming the line.
Result<std::vector<std::vector<double>>> rows_of(const std::string& file) {
  auto text = harness::read_file(file, harness::kMostInList);
  if (!text.is_ok()) return error(Code::invalid_argument, "the matrix: {}", text.status().message());
  std::istringstream stream(std::move(text).value());
  std::vector<std::vector<double>> rows;
  int number = 1;
  for (std::string line; std::getline(stream, line); ++number) {
    std::vector<double> row;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      const std::optional<double> value = number_in(word, kMostBytes);
      if (!value) {
        return error(Code::invalid_argument,
                     "the matrix '{}', line {}: '{}' must be a number of bytes from 0 to {:.0f}", file, number, word,
                     kMostBytes);
      }
      row.push_back(*value);
    }
    if (row.empty()) continue;
    if (!rows.empty() && row.size() != rows.front().size()) {
      return error(Code::invalid_argument, "the matrix '{}', line {}: {} numbers, where the first row has {}", file,
                   number, row.size(), rows.front().size());
    }
    rows.push_back(std::move(row));
  }
  if (stream.bad() || rows.empty()) {
    return error(Code::invalid_argument, "the matrix '{}' has no numbers: one row for each rank, with one for each",
                 file);
  }
  return rows;
}

}  // namespace

Result<Traffic> Traffic::from_environment(int ranks) {
  Traffic traffic;
  traffic.ranks_ = ranks;
  TUTTI_RETURN_IF_ERROR(read_number("NCCL_TESTS_ALLTOALLV_SPREAD", 1, traffic.spread_));
  TUTTI_RETURN_IF_ERROR(read_number("NCCL_TESTS_ALLTOALLV_MATRIX_SCALE", kMostBytes, traffic.scale_));
  double summary = 0;
  TUTTI_RETURN_IF_ERROR(read_number("NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY", 1, summary));
  traffic.has_summary_ = summary > 0;
  const char* const file = std::getenv("NCCL_TESTS_ALLTOALLV_MATRIX_FILE");
  if (file != nullptr) TUTTI_RETURN_IF_ERROR(traffic.read_matrix(file));
  return traffic;
}

Status Traffic::read_matrix(const std::string& file) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::vector<double>> rows, rows_of(file));
  const auto ranks = static_cast<std::size_t>(ranks_);
  if (rows.size() != rows.front().size()) {
    return error(Code::invalid_argument, "the matrix '{}' has {} of {}: it must be square", file,
                 harness::counted(rows.size(), "row"), harness::counted(rows.front().size(), "number"));
  }
  if (rows.size() < ranks) {
    return error(Code::invalid_argument, "the matrix '{}' is one of {} ranks, these are {}", file, rows.size(), ranks_);
  }
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t to = 0; to < ranks; ++to) {
      const double scaled = rows[from][to] * scale_;
      if (scaled > kMostBytes) {
        return error(Code::invalid_argument, "the matrix '{}': {} times {} is more than {:.0f} bytes", file,
                     rows[from][to], scale_, kMostBytes);
      }
      matrix_.push_back(whole_chunks(scaled));
    }
  }
  return {};
}

std::int64_t Traffic::most_of_matrix() const {
  std::int64_t most = 0;
  for (int rank = 0; has_matrix() && rank < ranks_; ++rank) most = std::max({most, sent(rank, 0), received(rank, 0)});
  return most;
}

std::string Traffic::name() const {
  if (!has_matrix()) return fmt::format("by distance, spread {}", spread_);
  return fmt::format("a matrix, scale {}, bytes {}", scale_, harness::counts_name_of(matrix_));
}

std::int64_t Traffic::bytes(int from, int to, std::int64_t total) const {
  if (has_matrix())
    return matrix_[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(to)];
  const auto all = static_cast<double>(total);
  if (ranks_ == 1) return whole_chunks(all);
  const double distance = (to - from + ranks_) % ranks_;
  const double distances = static_cast<double>(ranks_) * (ranks_ - 1) / 2;
  return whole_chunks((1 - spread_) * (all / ranks_) + spread_ * (distance * all / distances));
}

std::int64_t Traffic::sent(int rank, std::int64_t total) const {
  std::int64_t sum = 0;
  for (int to = 0; to < ranks_; ++to) sum += bytes(rank, to, total);
  return sum;
}

std::int64_t Traffic::received(int rank, std::int64_t total) const {
  std::int64_t sum = 0;
  for (int from = 0; from < ranks_; ++from) sum += bytes(from, rank, total);
  return sum;
}

harness::Counts Traffic::counts(Dtype dtype, std::int64_t total, bool is_in_place) const {
  harness::Counts counts{.pattern = harness::Pattern::file, .name = {}, .numbers = {}};
  for (int from = 0; from < ranks_; ++from) {
    for (int to = 0; to < ranks_; ++to) {
      // The mean of two multiples of 16 bytes is whole elements of any dtype.
      const std::int64_t forth = bytes(from, to, total);
      const std::int64_t moved = is_in_place ? (forth + bytes(to, from, total)) / 2 : forth;
      counts.numbers.push_back(moved / static_cast<std::int64_t>(size_of(dtype)));
    }
  }
  counts.name = harness::counts_name_of(counts.numbers);
  return counts;
}

std::vector<std::string> Traffic::summary(std::int64_t total, double time_us) const {
  if (!has_summary_) return {};
  std::vector<std::string> lines{
      fmt::format("NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY: mode={} nranks={} {}={:.3f} time_usec={:.2f}",
                  has_matrix() ? "matrix" : "generated", ranks_, has_matrix() ? "scale" : "spread",
                  has_matrix() ? scale_ : spread_, time_us)};
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::int64_t out = sent(rank, total), in = received(rank, total);
    constexpr double kBytesPerMicrosecond = 1e-3;
    const double rate = time_us > 0 ? static_cast<double>(std::max(out, in)) / time_us * kBytesPerMicrosecond : 0;
    lines.push_back(fmt::format("  rank={} send_bytes={} recv_bytes={} alg_bw={:.2f} bus_bw={:.2f}", rank, out, in,
                                rate, rate * (ranks_ - 1) / ranks_));
  }
  return lines;
}

}  // namespace tutti::perf
