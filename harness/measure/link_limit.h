// SPDX-License-Identifier: Apache-2.0
// The limit between machines: how long the bytes take that have to leave each of them, whatever carries them. The first
// rank of each machine sends them to that of the next one, all at once, over a TCP connection of its own. Of two
// machines that is a stream, or an exchange where both have something to send. Nothing is copied, reduced or waited for
// besides.
//
// Both ends know what number the call has. The stream's first and last bytes are that number, and what has come is
// compared with it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/backends/system.h"
#include "harness/measure/limit.h"
#include "harness/measure/runner.h"
#include "harness/measure/variant.h"
#include "impl/tcp/secret.h"
#include "impl/transports/hosts.h"
#include "impl/types/descriptor.h"

namespace tutti::harness::measure {

/// Bytes that have to leave each machine in the least movements of a cell, by machine. What is reduced crosses once.
[[nodiscard]] std::vector<std::int64_t> leaving_bytes(const Cell& cell, const Hosts& machines);

class LinkLimit final : public Backend {
 public:
  struct Place {
    Hosts machines;
    std::string interface;  ///< the address at which this machine listens
    tcp::Secret key;        ///< of the job
  };
  /// All runners, which are a rank each, call it. Errors: those of the runner and of connect_to_runners.
  [[nodiscard]] static Result<std::unique_ptr<LinkLimit>> open(Runner& runner, const Place& place);

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] std::string describe() const override { return "{}"; }
  [[nodiscard]] Status supports(const Case& /*one*/) const override { return {}; }
  [[nodiscard]] std::string algorithm_of(const Case& /*one*/) const override { return std::string(kNone); }
  /// What is sent is of the cell of begin_cell.
  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(const Case& one,
                                                          std::span<const RankBuffers> buffers) override;

  void begin_cell(const Cell& cell) { leaving_ = leaving_bytes(cell, machines_); }
  [[nodiscard]] bool has_something_to_send() const {
    return std::ranges::any_of(leaving_, [](std::int64_t bytes) { return bytes > 0; });
  }

 private:
  class Streams;

  LinkLimit(Hosts machines, int rank) : machines_(std::move(machines)), rank_(rank) {}
  [[nodiscard]] int machine_after(int steps) const {
    const int all = machines_.count();
    return (machines_.host_of(rank_) + steps + all) % all;
  }
  [[nodiscard]] int first_of(int machine) const { return machines_.ranks_on(machine).front(); }
  [[nodiscard]] bool is_first() const { return first_of(machine_after(0)) == rank_; }

  Hosts machines_;
  int rank_;
  Descriptor next_, previous_;  ///< of two machines the connection is the same: `previous_` is not open
  std::string name_{kLinkLimitName};
  std::vector<std::int64_t> leaving_;
};

/// The variant of a cell's limit between machines; nullopt where the cell has none, or nothing has to cross. All
/// runners call it. Errors: those of the runner.
[[nodiscard]] Result<std::optional<Variant>> make_link_limit(Runner& runner, LinkLimit& backend,
                                                             const MemorySource& memory, const Variant::Request& like);

}  // namespace tutti::harness::measure
