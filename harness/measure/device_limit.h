// SPDX-License-Identifier: Apache-2.0
// The limit of buffers that lie in the memory of a device: what moving as many bytes takes there. A rank cannot address
// what lies on another's device, so the least movements (limit.h) cannot be made; each device moves by itself as many
// bytes as its ranks read and write in them, all ranks at once.
//
// Two ways of moving them are tried, and the faster one is the limit: a copy, which writes a byte for each that it
// reads, and a triad, which reads two. Both work on memory of their own. After each call that is looked at, places of
// what was written are compared with what was read, and spoiled for the next one. The triad is named after STREAM's:
// McCalpin, Memory bandwidth and machine balance in current high performance computers, 1995.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/backends/system.h"
#include "harness/measure/limit.h"
#include "harness/measure/runner.h"
#include "harness/measure/variant.h"

namespace tutti::harness::measure {

/// The bytes that a rank reads and writes in the least movements of a cell.
[[nodiscard]] std::int64_t traffic_of(const Cell& cell, int rank);

class DeviceLimit final : public Backend {
 public:
  /// `memory`: of each of `ranks`, the runner's; it outlives the backend.
  DeviceLimit(std::vector<int> ranks, std::vector<verify::Memory*> memory)
      : ranks_(std::move(ranks)), memory_(std::move(memory)) {}

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] std::string describe() const override { return "{}"; }
  [[nodiscard]] Status supports(const Case& /*one*/) const override { return {}; }
  [[nodiscard]] std::string algorithm_of(const Case& /*one*/) const override { return std::string(kNone); }
  /// What is moved is of the cell of begin_cell. Errors: those of the memory.
  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(const Case& one,
                                                          std::span<const RankBuffers> buffers) override;

  void begin_cell(const Cell& cell) { cell_ = cell; }
  /// Whether what is prepared makes triads from here on.
  void set_triad(bool is_triad) { is_triad_ = is_triad; }
  /// "triad" or "copy", as rows say it.
  [[nodiscard]] std::string_view way() const { return is_triad_ ? "triad" : "copy"; }
  /// That triads can be made here. Errors: unavailable; those of the memory.
  [[nodiscard]] Status can_triad() const;
  [[nodiscard]] MemorySource memory() const;

 private:
  class Transfers;

  std::vector<int> ranks_;
  std::vector<verify::Memory*> memory_;
  std::string name_{kDeviceLimitName};
  Cell cell_;
  bool is_triad_ = false;
};

/// The variant of a cell's limit on devices; nullopt where the cell has none, or there is no memory for it. A trial
/// that ends by `end_ns` (CLOCK_MONOTONIC, the same on all runners) chooses the faster way. All runners call it.
/// Errors: those of the runner.
[[nodiscard]] Result<std::optional<Variant>> make_device_limit(Runner& runner, DeviceLimit& backend,
                                                               const Variant::Request& like, std::int64_t end_ns);

}  // namespace tutti::harness::measure
