// SPDX-License-Identifier: Apache-2.0
// A selection table as a file: what `auto` takes, by collective, ranks, buffers and size. `tutti tune` and `tutti
// simulate` write it. The text is CSV without quotes; lines that begin with '#' are remarks. The first line that is no
// remark names the columns, which are found by name:
//
//   collective   any name that parse_collective reads
//   place        host (ranks of one host, on cores), hosts (of several), device (thread blocks)
//   crowded      yes (more ranks than cores), no, any
//   buffers      private, shared, any
//   ranks_from   1 to ranks_to
//   ranks_to     a number, or any
//   bytes_from   of one rank's larger buffer, 0 to bytes_to
//   bytes_to     a number, or any
//   algorithm    a name of `tutti list`
//   segment      bytes of a block in a segment; 0: the largest that fits
//   stores       tried, plain, streamed, single_copy (schedule/tuning.h)
//   source       measured, formula, or `simulated NAME`, NAME of a machine
//
// The columns default, gain, gain_low, gain_high, time_us and record say how a row was found. They are text, and may be
// left out; the others may not. The first row that fits is taken. Where none fits, what is built in holds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "impl/algorithms/algorithm.h"
#include "impl/communicator/selection.h"
#include "impl/schedule/bind.h"
#include "impl/schedule/tuning.h"
#include "impl/types/status.h"

namespace tutti {

inline constexpr std::size_t kMostInTable = std::size_t{1} << 20;  ///< bytes
inline constexpr std::size_t kMostTableRows = 4096;
inline constexpr std::string_view kSimulatedSource = "simulated ";  ///< and the name of a machine

struct TableRow {
  Collective collective = Collective::barrier;
  RanksPlace place = RanksPlace::one_host;
  std::optional<bool> is_crowded = {};  ///< nothing: both
  std::optional<Buffers> buffers = {};  ///< nothing: both
  int least_ranks = 1;
  int most_ranks = 0;  ///< 0: any
  std::int64_t least_bytes = 0;
  std::int64_t most_bytes = -1;  ///< -1: any
  const Algorithm* algorithm = nullptr;
  Tuning tuning = {};
  std::string source = "measured";
  // How it was found; empty: not told.
  std::string otherwise = {};  ///< what is taken without the row
  std::string gain = {};       ///< time of that / time of this row's choice, and its interval
  std::string gain_low = {};
  std::string gain_high = {};
  std::string time_us = {};
  std::string record = {};
};

class SelectionTable {
 public:
  /// `name`: how messages and records call it. Errors: invalid_argument naming the line and the column, what stands
  /// there and the nearest right value; too many bytes or rows.
  [[nodiscard]] static Result<SelectionTable> parse(std::string name, std::string text);
  /// The one that is built in, which `tutti tune` has written (shipped_table.csv).
  [[nodiscard]] static const SelectionTable& shipped();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Of all of its bytes: 16 digits of base 16.
  [[nodiscard]] const std::string& hash() const { return hash_; }
  /// "mine.csv:0123456789abcdef", as records have it.
  [[nodiscard]] std::string id() const { return name_ + ":" + hash_; }
  [[nodiscard]] const std::vector<TableRow>& rows() const { return rows_; }
  /// The table that holds where the user names none is the shipped one.
  [[nodiscard]] static const SelectionTable& of(const SelectionTable* users) {
    return users != nullptr ? *users : shipped();
  }
  /// Null where none fits.
  [[nodiscard]] const TableRow* find(const ChoiceOf& of) const;

 private:
  std::string name_;
  std::string text_;
  std::string hash_;
  std::vector<TableRow> rows_;
};

/// Sets the bytes of a row that was found at `sizes[at]`, of rising sizes that something was found at: they end half
/// way to the next one, on a scale of logarithms. Those of the first begin at 0, and those of the last have no end.
void cover_bytes(TableRow& row, std::span<const std::int64_t> sizes, std::size_t at);
/// Sets the ranks of a row that was found on `ranks` of a rising list: they begin after the next fewer.
void cover_ranks(TableRow& row, std::span<const int> all, int ranks);

/// What parse reads. `remarks`: lines without their '#'.
[[nodiscard]] std::string table_text(const std::vector<TableRow>& rows, const std::vector<std::string>& remarks);

}  // namespace tutti
