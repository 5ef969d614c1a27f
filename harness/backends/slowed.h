// SPDX-License-Identifier: Apache-2.0
// A backend that takes longer than it must, by a given share: how the gate is shown to see what it is for.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "harness/backends/system.h"

namespace tutti::harness::backends {

struct SlowDown {
  double share = 0;                        ///< of the operation's own time on each rank
  std::optional<std::int64_t> bytes = {};  ///< of the cases that are slowed; empty: all

  bool operator==(const SlowDown&) const = default;
};
/// `10%@1M`, or `10%` for all sizes. Errors: invalid_argument naming the text and an example.
[[nodiscard]] Result<SlowDown> parse_slow_down(std::string_view text);

/// An operation of `inner` that each rank ends later by its share of the time that it took. Nobody waits within a call.
[[nodiscard]] std::unique_ptr<Prepared> slowed(std::unique_ptr<Prepared> inner, double share, std::size_t ranks);

class SlowedBackend final : public Backend {
 public:
  /// `inner` must outlive it.
  SlowedBackend(Backend& inner, SlowDown how) : inner_(inner), how_(how) {}

  [[nodiscard]] const std::string& name() const override { return inner_.name(); }
  /// As `inner` says, and by how much it is slowed: no record hides it.
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] Status supports(const Case& one) const override { return inner_.supports(one); }
  [[nodiscard]] std::string algorithm_of(const Case& one) const override { return inner_.algorithm_of(one); }
  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(const Case& one,
                                                          std::span<const RankBuffers> buffers) override;

 private:
  Backend& inner_;
  SlowDown how_;
};

}  // namespace tutti::harness::backends
