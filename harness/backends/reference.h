// SPDX-License-Identifier: Apache-2.0
// A reference library behind the harness's interface: a loaded shared object (loader.h). Its process has one rank, or
// several where the library allows that.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "harness/backends/loader.h"
#include "harness/backends/reference_group.h"
#include "harness/backends/system.h"

namespace tutti::harness::backends {

class ReferenceBackend final : public Backend {
 public:
  /// Loads the shared object of a backend, whose settings its process was started with. Errors: those of LoadedBackend::load.
  [[nodiscard]] static Result<std::unique_ptr<ReferenceBackend>> create(const std::string& name,
                                                                        std::span<const std::string> directories);

  /// On a library that is there.
  [[nodiscard]] static std::unique_ptr<ReferenceBackend> over(LoadedBackend library);

  /// Stands for a reference whose ranks are not processes: nothing is loaded, and every case is skipped.
  [[nodiscard]] static std::unique_ptr<ReferenceBackend> skipped(std::string name);

  /// A world that was not closed has failed: what the library still does for it ends.
  ~ReferenceBackend() override;

  /// Joins the library's world; `rank`: the first one of this process. Requires: create.
  Status open(int ranks, int rank, const TuttiBackendJoin& join);
  /// Where the buffers of its calls lie; on the host unless this is called.
  void set_memory(MemoryKind memory) { memory_kind_ = memory; }
  /// From here on cases with shared buffers are registered as symmetric windows, for which the buffers come from
  /// `allocate`. Requires: TUTTI_MEMORY_CUDA.
  void use_windows() { has_windows_ = true; }
  /// Memory of the library's own for a buffer of the case, on all ranks of the same size, as windows are. Errors: those
  /// of the library.
  [[nodiscard]] Result<void*> allocate(const Case& one, int local, std::size_t bytes) const;
  Status give_back(int local, void* memory) const { return library_->give_back(local, memory); }
  /// From here on its ranks are those of this process's group. Collective. Errors: those of the library.
  Status enter_group(int colour, int key);
  Status close();
  /// All its ranks, for asynchronous calls. Requires: open.
  [[nodiscard]] std::unique_ptr<Group> world(GroupMemory memory) const;

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] Status supports(const Case& one) const override;
  [[nodiscard]] std::string algorithm_of(const Case& /*one*/) const override { return std::string(kNone); }
  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(const Case& one,
                                                          std::span<const RankBuffers> buffers) override;
  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare_asynchronous(const Case& one,
                                                                       std::span<const RankBuffers> buffers) override;

 private:
  class BlockingCall;
  class NonblockingCalls;
  class CallOfRank;
  /// Requires: one of this process's ranks.
  [[nodiscard]] Result<std::unique_ptr<CallOfRank>> prepare_one(const Case& one, const RankBuffers& buffers,
                                                                bool is_asynchronous) const;
  /// Makes the buffers of all ranks of this process known to the library, where that is asked for.
  Status register_buffers(const Case& one, std::span<const RankBuffers> buffers,
                          std::span<const std::unique_ptr<CallOfRank>> calls) const;

  explicit ReferenceBackend(LoadedBackend library) : library_(std::move(library)), name_(library_->name()) {}
  explicit ReferenceBackend(std::string name) : name_(std::move(name)) {}

  std::optional<LoadedBackend> library_;
  std::string name_;
  bool is_open_ = false;
  bool has_windows_ = false;
  TuttiBackendGroup group_{};  ///< that was entered; its handle is null for the world
  MemoryKind memory_kind_ = MemoryKind::host;
  int rank_ = 0;
  int local_ranks_ = 1;
  int ranks_ = 1;
};

}  // namespace tutti::harness::backends
