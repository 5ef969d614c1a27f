// SPDX-License-Identifier: Apache-2.0
// Where the verifier's text (device_text.h) runs: on a GPU, or on teams of host threads that stand for one. Everything
// but the addresses of buffers is memory of the host, and is copied to the device as far as it needs it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/verify/device_work.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"
#include "impl/types/status.h"

namespace tutti::harness::verify {

/// What inputs and results are of. `table`: the bytes of the SpecialTable, where values are special.
struct DeviceElements {
  Dtype dtype = Dtype::f32;
  Op op = Op::none;
  std::span<const std::byte> table = {};
};

/// A comparison; the pointers of `work` are set by who runs it.
struct Comparing {
  CompareWork work;
  std::vector<ComparePiece> pieces;
  std::vector<CompareSource> sources;
  std::vector<CompareMember> members;
  std::vector<Stream> streams;
};

/// Used by any thread. Every call but start_triad is complete when it returns. Errors: io where the device has failed;
/// resource.
class DeviceRunner {
 public:
  virtual ~DeviceRunner() = default;
  virtual Status fill(const DeviceElements& elements, FillWork work) = 0;
  virtual Status fill_poison(std::span<const PoisonPart> parts, std::uint16_t word) = 0;
  virtual Status write_guards(GuardWork work) = 0;
  /// The least offset that is damaged, or GuardWork::kNone.
  [[nodiscard]] virtual Result<std::uint64_t> find_damage(GuardWork work) = 0;
  /// Alone of all calls it may go on after it has returned: it is put on `stream`, a CUDA stream of the device, which
  /// is null where the runner has no such.
  virtual Status start_triad(TriadWork work, void* stream) = 0;
  /// Adds to the records, one for each rank.
  virtual Status compare(const DeviceElements& elements, Comparing& comparing, std::span<CompareRecord> records) = 0;
};

struct RunnerTeams {
  int teams = 1;
  int threads = 1;  ///< of a team
};
/// On teams of host threads, which reach whatever the host does. One team of one thread is the caller's.
[[nodiscard]] std::unique_ptr<DeviceRunner> make_teams_runner(const RunnerTeams& shape);

}  // namespace tutti::harness::verify
