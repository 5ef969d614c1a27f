// SPDX-License-Identifier: Apache-2.0
// The own collectives as a backend: one communicator per rank of the host.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "harness/backends/system.h"
#include "impl/communicator/hooks.h"

namespace tutti::harness::backends {

class OwnBackend final : public Backend {
 public:
  /// One communicator for each of `ranks`. The domain must outlive the backend.
  [[nodiscard]] static Result<std::unique_ptr<OwnBackend>> create(Domain& domain, const std::vector<int>& ranks,
                                                                  const CommunicatorOptions& options,
                                                                  const Hooks& hooks = {});
  /// On communicators that are there: one for each rank of the host, of `domain` or of groups of it.
  [[nodiscard]] static std::unique_ptr<OwnBackend> over(Domain& domain,
                                                        std::vector<std::unique_ptr<Communicator>> communicators);

  /// The same system among the ranks of this process's group. Collective. Requires: one rank on this host, or in this
  /// thread. This backend outlives it. Errors: those of Communicator::split.
  [[nodiscard]] Result<std::unique_ptr<OwnBackend>> in_group(int colour, int key);

  /// Where the buffers of its calls lie, and no others; on the host unless this is called. Those of thread blocks on a
  /// GPU lie there.
  void set_memory(MemoryKind memory) { memory_kind_ = memory; }

  /// Ranks on devices of several processes have no shared buffers.
  void set_without_shared() { has_shared_ = false; }

  /// Schedules that take the place of the named algorithm's: how tests put broken ones under the harness. The problem
  /// is what a schedule of the case is for.
  using Substitute = std::function<std::optional<Schedule>(const Case&, const Problem&)>;
  void set_substitute(Substitute substitute) { substitute_ = std::move(substitute); }

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] Status supports(const Case& one) const override;
  [[nodiscard]] std::string algorithm_of(const Case& one) const override;
  /// Memory of the host, private or the rank's shared heap: a MemorySource for all backends that have theirs there.
  [[nodiscard]] Allocator allocator(const Case& one, std::size_t index);
  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(const Case& one,
                                                          std::span<const RankBuffers> buffers) override;

 private:
  OwnBackend(Domain& domain, std::vector<std::unique_ptr<Communicator>> communicators)
      : domain_(domain), communicators_(std::move(communicators)) {}
  [[nodiscard]] Result<const Schedule*> schedule_for(const Case& one);

  Domain& domain_;
  std::string name_ = std::string(kOwnBackend);
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::map<std::tuple<Collective, int, std::string, int, int, int>, std::unique_ptr<Schedule>>
      schedules_;  // by collective, root, name, window, pair
  Substitute substitute_;
  MemoryKind memory_kind_ = MemoryKind::host;
  bool has_shared_ = true;
};

}  // namespace tutti::harness::backends
