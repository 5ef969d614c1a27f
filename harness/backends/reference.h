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
  /// Loads the shared object. Errors: those of LoadedBackend::load.
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

  explicit ReferenceBackend(LoadedBackend library) : library_(std::move(library)), name_(library_->name()) {}
  explicit ReferenceBackend(std::string name) : name_(std::move(name)) {}

  std::optional<LoadedBackend> library_;
  std::string name_;
  bool is_open_ = false;
  MemoryKind memory_kind_ = MemoryKind::host;
  int rank_ = 0;
  int local_ranks_ = 1;
  int ranks_ = 1;
};

}  // namespace tutti::harness::backends
