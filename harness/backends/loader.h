// SPDX-License-Identifier: Apache-2.0
// Finds and loads the shared objects behind `--backends`: libtutti_backend_<name>.so in the directories of
// $TUTTI_BACKENDS, then beside the program. backend.h is the interface; here its messages become Statuses.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/backends/backend.h"
#include "harness/cases/case.h"
#include "impl/types/status.h"

namespace tutti::harness::backends {

/// Where to look, in order: the directories of `variable` (the value of $TUTTI_BACKENDS: separated by colons, possibly
/// empty), then `program_directory`.
[[nodiscard]] std::vector<std::string> backend_directories(std::string_view variable,
                                                           std::string_view program_directory);
/// The same of this process: those that the environment's `variable` names, then that of its program.
[[nodiscard]] std::vector<std::string> directories_named_by(const char* variable);

/// Names of the shared objects in `directories`, sorted, each once. Opens none of them.
[[nodiscard]] std::vector<std::string> list_backends(std::span<const std::string> directories);

/// The path of that backend in the first directory that has one; it is not opened. Errors: invalid_argument naming the
/// nearest right name.
[[nodiscard]] Result<std::string> find_backend(std::string_view name, std::span<const std::string> directories);

/// A loaded backend. Copyable; the object stays loaded until the process ends (an MPI does not survive being unloaded).
class LoadedBackend {
 public:
  /// A prepared call; see backend.h.
  using Handle = void*;

  /// The backend of that name in the first directory that has one. Its library is then part of this process for ever,
  /// so two MPIs are never loaded by one. Errors: those of find_backend; unavailable where it cannot be loaded (the
  /// system's reason) or has another ABI number (both numbers).
  [[nodiscard]] static Result<LoadedBackend> load(std::string_view name, std::span<const std::string> directories);

  /// One whose table is a part of this program and outlives it. Requires: TUTTI_BACKEND_ABI.
  [[nodiscard]] static LoadedBackend of(const TuttiBackend& table);

  [[nodiscard]] std::string_view name() const { return api_->name; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The text of a JSON object. Errors: unavailable.
  [[nodiscard]] Result<std::string> describe() const;

  /// The text of a JSON object: how ranks of it are started (backend.h); empty where nothing but tutti is needed.
  /// Errors: unavailable.
  [[nodiscard]] Result<std::string> start_command() const;

  /// Errors: unavailable, naming both numbers where the library's world is not the launcher's.
  Status open(const TuttiBackendGroup& world, const TuttiBackendJoin& join) const;
  /// `parent`: the handle of a group, null for the world. Errors: io.
  [[nodiscard]] Result<TuttiBackendGroup> split(void* parent, int colour, int key) const;
  /// Errors: io.
  Status free_group(const TuttiBackendGroup& group) const;
  /// Errors: unavailable with the reason for a `skipped` row.
  [[nodiscard]] Status supports(const TuttiBackendCall& call) const;
  /// Errors: those of supports.
  [[nodiscard]] Result<Handle> prepare(const TuttiBackendCall& call) const;
  /// Errors: io.
  Status run(Handle handle) const;
  Status post(Handle handle) const;
  [[nodiscard]] Result<bool> test(Handle handle) const;
  Status wait(Handle handle) const;
  void release(Handle handle) const { api_->release(handle); }
  /// Errors: io.
  Status close() const;

  /// What a backend need not have; where it has not, nothing happens. `local`: a rank of this process.
  /// Errors: io.
  Status begin_group() const;
  Status end_group() const;
  [[nodiscard]] bool can_register() const { return api_->register_buffer != nullptr; }
  /// The handle is null where the backend cannot. Errors: io.
  [[nodiscard]] Result<Handle> register_buffer(void* group, int local, std::span<const std::byte> memory,
                                               Buffers kind) const;
  Status forget_buffer(int local, Handle registered) const;
  /// Errors: io with what the library found of its own accord.
  [[nodiscard]] Status poll_error(int local) const;
  Status abort(int local) const;
  /// Memory of the library's own. Errors: resource with the library's reason; unavailable where it has none.
  [[nodiscard]] Result<void*> allocate(int local, std::size_t bytes) const;
  Status give_back(int local, void* memory) const;

 private:
  LoadedBackend(const TuttiBackend* api, std::string path) : api_(api), path_(std::move(path)) {}

  const TuttiBackend* api_;
  std::string path_;
};

}  // namespace tutti::harness::backends
