// SPDX-License-Identifier: Apache-2.0
// The machine's limit, which rows show as `limit`: the least data movement that does what a collective means. As many
// ranks do it as the cell has, without any synchronisation. LimitBackend runs it beside the systems under test.
//
// Every input block that some rank needs is read once, reduced with its likes, and written to all the places where it
// belongs. The movements are divided evenly among the ranks. Each byte that a rank writes depends only on inputs and on
// what it has written itself. So no rank waits for another, and when all are done the outputs are right. The limit is
// measured, interleaved and verified as any backend is.
//
// Its buffers are shared memory, whatever the cell's are. A rank reads another's private memory through a copy or
// through the kernel, and what a system spends on that is what the limit is to show. Two kinds of stores are tried,
// through the cache and past it; the faster one is the cell's limit.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/backends/system.h"
#include "harness/measure/runner.h"
#include "harness/measure/variant.h"
#include "impl/device/teams.h"
#include "impl/reduce/kernels.h"
#include "impl/transports/domain.h"

namespace tutti::harness::measure {

/// Bytes of one rank's input or output.
struct Piece {
  int rank = 0;
  bool is_output = false;
  std::int64_t offset = 0;

  bool operator==(const Piece&) const = default;
};

/// `bytes` of each destination <- the sources, reduced in rank order where there are several.
struct Movement {
  std::vector<Piece> sources;
  std::vector<Piece> destinations;
  std::int64_t bytes = 0;
};

/// All that has to be moved for a cell. No two movements write to one place.
[[nodiscard]] std::vector<Movement> least_movements(const Cell& cell);
/// The part of it that one rank moves: whole movements where every rank gets as many, else a slice of each.
[[nodiscard]] std::vector<Movement> share_of(const Cell& cell, int rank);

// In the place of a backend's.
inline constexpr std::string_view kLimitName = "limit";
inline constexpr std::string_view kDeviceLimitName = "device_limit";  ///< device_limit.h
inline constexpr std::string_view kLinkLimitName = "link_limit";      ///< link_limit.h
[[nodiscard]] constexpr bool is_limit(std::string_view name) {
  return name == kLimitName || name == kDeviceLimitName || name == kLinkLimitName;
}
inline constexpr std::string_view kMovements = "movements";  ///< how it is measured, as rows say it
inline constexpr std::string_view kStream = "stream";        ///< and how between machines
/// The case that measures a cell's limit, or nullopt where the cell has no limit. It has none where nothing is moved
/// (barrier), or ranks take turns (pingpong and every collective that has a window). It has none either where what is
/// read is overwritten meanwhile (all_to_all, sendrecv and exscan in place).
[[nodiscard]] std::optional<Case> limit_of(const Cell& cell);
/// A case of `backend` whose buffers have no elements: what its limit moves is in memory of its own.
[[nodiscard]] Case without_elements(Case one, std::string_view backend);
/// `cell` and its limit, where it has one.
[[nodiscard]] std::vector<Case> with_limit(std::vector<Case> cell);

class LimitBackend final : public Backend {
 public:
  /// `domain` has the memory of the buffers, and must outlive the backend.
  LimitBackend(Domain& domain, std::vector<int> ranks) : domain_(domain), ranks_(std::move(ranks)) {}
  /// The ranks of one runner are moved for by teams of its threads, so many for each: as ranks that are thread blocks
  /// run.
  LimitBackend(Domain& domain, std::vector<int> ranks, int teams_of_rank)
      : domain_(domain), ranks_(std::move(ranks)), teams_of_rank_(teams_of_rank), teams_(make_host_teams()) {}

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] std::string describe() const override { return "{}"; }
  [[nodiscard]] Status supports(const Case& one) const override;
  [[nodiscard]] std::string algorithm_of(const Case& /*one*/) const override { return std::string(kNone); }
  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(const Case& one,
                                                          std::span<const RankBuffers> buffers) override;

  /// Tells the runners where each other's buffers of what was prepared since the last time are; before it is run. All
  /// runners call it.
  Status connect(Runner& runner);
  /// What was prepared and not connected is not to be.
  void forget() { unconnected_.clear(); }
  /// How what is prepared stores: in the ways of kernels, or as the C library copies, where a copy is all there is to
  /// do.
  enum class Stores { in_cache, past_cache, of_library };
  static constexpr int kWays = 3;  ///< of Stores
  void set_stores(Stores stores) { stores_ = stores; }

 private:
  class PreparedShares;

  Domain& domain_;
  std::vector<int> ranks_;
  std::string name_{kLimitName};
  Stores stores_ = Stores::in_cache;
  int teams_of_rank_ = 0;  ///< 0: the thread that calls moves
  std::unique_ptr<HostTeams> teams_;
  std::vector<PreparedShares*> unconnected_;
};

/// A trial of the ways in which a limit can be measured.
struct LimitTrial {
  std::uint64_t seed = 1;
  std::int64_t end_ns = 0;  ///< CLOCK_MONOTONIC, the same on all runners
};
/// The fastest of `ways` ways, from 0 on; `choose` takes the one that comes next. All runners call it. Errors: those of
/// the runner and the variant.
[[nodiscard]] Result<int> fastest_way(Runner& runner, Variant& variant, const LimitTrial& trial, int ways,
                                      const std::function<void(int way)>& choose);

/// The variant of a cell's limit; nullopt where the cell has no limit. A trial that ends by `end_ns` (CLOCK_MONOTONIC,
/// the same on all runners) chooses the fastest of Stores. All runners call it.
/// Errors: those of the runner.
[[nodiscard]] Result<std::optional<Variant>> make_limit(Runner& runner, LimitBackend& backend,
                                                        const Variant::Request& like, std::int64_t end_ns);

}  // namespace tutti::harness::measure
