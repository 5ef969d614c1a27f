// SPDX-License-Identifier: Apache-2.0
// The systems under test as one runner of a session has them open, by name: the own collectives, the job's references,
// their twins and their compositions.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/backends/composition.h"
#include "harness/backends/reference.h"
#include "harness/backends/tutti/backend.h"
#include "harness/backends/twin.h"
#include "harness/measure/runner.h"
#include "harness/measure/variant.h"
#include "harness/session/session.h"
#include "harness/verify/cuda_memory.h"
#include "impl/communicator/hooks.h"
#include "impl/device/device.h"
#include "impl/transports/domain.h"

namespace tutti::harness::session {

/// How the own collectives run in a session; `cores`: see cores_together.
[[nodiscard]] CommunicatorOptions communicator_options(const SessionSpec& spec, const Runner& runner, int cores);

/// The reference `index` of the session, which this process's rank joins. The board says meanwhile that its library's
/// own code runs. `address`: see TuttiBackendJoin. All runners call it. Errors: those of the backend.
[[nodiscard]] Result<std::unique_ptr<ReferenceBackend>> open_reference(const SessionSpec& spec,
                                                                       const Topology& topology, std::size_t index,
                                                                       Runner& runner, const std::string& address);

/// At which other machines reach this one; empty: there are none.
[[nodiscard]] inline std::string address_of(const AcrossPlace* across) {
  return across == nullptr ? std::string() : across->interface;
}

/// The own collectives' ranks of a runner: a communicator each, and where they run, if not on the host.
struct OwnRanks {
  std::vector<std::unique_ptr<Device>> devices;  ///< they outlive the communicators
  std::vector<std::unique_ptr<Communicator>> communicators;
};
/// All runners call it. Errors: those of Communicator::create and create_as_blocks; unavailable where there is no
/// device.
[[nodiscard]] Result<OwnRanks> open_own_ranks(const SessionSpec& spec, const Topology& topology, Runner& runner,
                                              Domain& domain, CommunicatorOptions options, const Hooks& hooks);

/// Ranks of one process: where they begin on its machine, and how many they are.
struct LocalRanks {
  int first = 0;
  std::size_t count = 1;
};
/// The memory that each of the ranks has its buffers in: that of a GPU of its own, as a library that is given no
/// devices takes them; thread blocks are dealt over GPUs. Errors: unavailable where there is no such GPU.
[[nodiscard]] Result<std::vector<std::unique_ptr<CudaMemory>>> open_gpu_memory(
    const SessionSpec& spec, const LocalRanks& ranks, const std::shared_ptr<const cuda::Runtime>& runtime);

class Systems {
 public:
  /// What the systems of a runner are opened with; it outlives them.
  struct Place {
    const Topology& topology;
    Runner& runner;
    Domain& domain;
    std::string address;  ///< at which other machines reach this one; empty: there are none
  };
  Systems(const SessionSpec& spec, const Place& place)
      : spec_(spec), topology_(place.topology), runner_(place.runner), domain_(place.domain), address_(place.address) {}
  Systems(const Systems&) = delete;
  Systems& operator=(const Systems&) = delete;

  /// Opens them all; the own one's calls go through `after_bind`. All runners call it. Errors: those of the backends.
  Status open(const CommunicatorOptions& options, AfterBind after_bind = {});
  /// The own one again, with ranks and memory that nothing has used. Errors: those of the backend.
  Status open_own_afresh(const CommunicatorOptions& options);
  /// From here on all systems are those of this process's group, in which its rank is `key`. Requires: processes or
  /// threads. All runners call it. Errors: those of the backends.
  Status enter_group(int colour, int key);
  /// Ends the references. Errors: theirs.
  Status close();

  [[nodiscard]] const std::map<std::string, Backend*>& by_name() const { return by_name_; }
  [[nodiscard]] Backend& named(const std::string& name) const { return *by_name_.at(name); }
  [[nodiscard]] OwnBackend& own() { return *own_; }
  /// Whether its system supports the case under the session's conditions. Errors: unavailable with the reason.
  [[nodiscard]] Status supports(const Case& one) const;

  /// For a case, of the kind that its system has (memory_kind_of).
  [[nodiscard]] MemorySource memory();
  /// Of GPUs, by rank of this runner; empty where no system has its buffers there.
  [[nodiscard]] std::vector<verify::Memory*> gpu_memory() const;
  /// What the variants of a cell have in common, its limit's too: memory, data, and the sets of buffers that calls
  /// rotate through. It refers to `backend` and `one`.
  [[nodiscard]] Variant::Request request_for(Backend& backend, const Case& one);

 private:
  /// `own_`, with ranks in `domain`.
  Status open_own(Domain& domain, const CommunicatorOptions& options, const Hooks& hooks);
  /// For ranks as teams of the host, whose buffers it fills and compares by the text that a GPU runs.
  void verify_on_teams();
  /// Opened, or skipped where ranks are no processes.
  Result<std::unique_ptr<ReferenceBackend>> reference_of(std::size_t index);
  void add_twins();
  /// Those that cases of the session name.
  void add_compositions();
  /// That of the GPUs, one for each rank of this runner, where buffers of any system lie there.
  Status open_memory();
  /// Memory of this runner's own that is there, not a page of zeros in many places. The same for all cases of a cell.
  std::span<const std::byte> filler(const Rotation& rotation);

  const SessionSpec& spec_;
  const Topology& topology_;
  Runner& runner_;
  Domain& domain_;
  std::string address_;
  std::unique_ptr<Memory> teams_memory_;  ///< verifies what teams of the host write; null: the host does
  std::vector<std::unique_ptr<CudaMemory>>
      memory_;                          ///< of GPUs, by rank of this runner; empty: no system has its buffers there
  std::unique_ptr<Domain> own_domain_;  ///< of own_, where that is not domain_
  std::vector<std::unique_ptr<Device>> devices_;  ///< of own_, where its ranks are thread blocks
  std::unique_ptr<OwnBackend> own_of_all_;        ///< where own_ is that of a group
  std::unique_ptr<OwnBackend> own_;
  std::vector<std::unique_ptr<ReferenceBackend>> references_;
  std::vector<std::unique_ptr<TwinBackend>> twins_;
  std::vector<std::unique_ptr<CompositionBackend>> compositions_;
  std::map<std::string, Backend*> by_name_;
  std::vector<std::byte> filler_;  ///< what rotating calls read
};

}  // namespace tutti::harness::session
