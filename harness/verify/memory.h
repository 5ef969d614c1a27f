// SPDX-License-Identifier: Apache-2.0
// Kinds of memory that buffers lie in. What the harness does with a buffer goes through its Memory: it is made, filled,
// poisoned, copied and compared there. An address of another kind than the host's is for its Memory and for the system
// under test: the host's instructions cannot follow it.
//
// A kind has to allocate and to copy. All else is made of that here, through the host. A device that fills and compares
// by itself takes these functions over. Each is called for a whole buffer, never for an element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/floors.h"
#include "harness/verify/stream.h"
#include "impl/types/status.h"

namespace tutti::harness::verify {

struct CheckResult;
struct InputSpec;
struct Operation;
struct RankBuffer;
struct TriadWork;
class DeviceVerifier;
class Memory;
class Oracle;

/// The numbers are those of TUTTI_MEMORY_... (harness/backends/backend.h).
enum class MemoryKind : std::uint8_t { host = 0, cuda = 1 };
/// As rows have it: `host`, `gpu`.
[[nodiscard]] std::string_view to_string(MemoryKind kind);

/// Memory of the host, page-aligned and private. Lives as long as the process.
[[nodiscard]] Memory& host_memory();

/// Where the memory of a buffer comes from, and what kind it is of.
struct Allocator {
  std::function<Result<void*>(std::size_t bytes)> allocate;
  std::function<void(void*)> release;
  Memory* kind = &host_memory();  ///< outlives what is allocated
};

/// What a buffer holds, as the host can read it: the buffer itself, or a copy of that moment. Movable.
class HostView {
 public:
  explicit HostView(std::span<const std::byte> bytes) : bytes_(bytes) {}
  explicit HostView(std::vector<std::byte> copy) : copy_(std::move(copy)), bytes_(copy_) {}
  HostView(HostView&&) = default;
  HostView& operator=(HostView&&) = default;
  HostView(const HostView&) = delete;
  HostView& operator=(const HostView&) = delete;
  ~HostView() = default;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> copy_;
  std::span<const std::byte> bytes_;
};

/// Part of a guard zone (buffers.h).
struct GuardZone {
  std::span<std::byte> there;
  std::size_t offset = 0;  ///< of its first byte, from that of the buffer's memory
};

/// Spans named `there` are of this kind of memory, all others of the host.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual MemoryKind kind() const = 0;
  /// What calls on this memory are posted on, as the system under test knows it; null where calls have no stream.
  [[nodiscard]] virtual void* stream() const { return nullptr; }
  /// Between them, what is put on the stream becomes a graph, and is not carried out. Errors: io with the device's
  /// reason; unavailable where there is no stream.
  virtual Status begin_capture();
  [[nodiscard]] virtual Result<std::unique_ptr<Graph>> end_capture();
  /// Room for that many instants on the stream; null where there is none. Errors: io.
  [[nodiscard]] virtual Result<std::unique_ptr<Instants>> instants(int most);

  /// Puts a copy within this memory on the stream, and returns at once. Errors: io; unavailable where there is no
  /// stream.
  virtual Status start_copy(std::byte* to, const std::byte* from, std::size_t bytes);
  /// The same of a triad. Errors: also unavailable where nothing here computes on the device; work of 0 bytes asks.
  virtual Status start_triad(const TriadWork& work);
  /// Whether all that was put on the stream is done. Errors: as start_copy.
  [[nodiscard]] virtual Result<bool> is_idle();

  /// Page-aligned. Errors: resource with the number of bytes.
  [[nodiscard]] virtual Result<void*> allocate(std::size_t bytes) = 0;
  virtual void release(void* pointer) = 0;
  /// `allocate` and `release`, for the options of a buffer.
  [[nodiscard]] Allocator allocator();

  /// Copies, done on return. `there` has as many bytes as `here`.
  virtual void write(std::byte* there, std::span<const std::byte> here) = 0;
  virtual void read(std::span<std::byte> here, const std::byte* there) const = 0;
  /// The view is valid until the buffer is written or given back.
  [[nodiscard]] virtual HostView view(std::span<const std::byte> there) const;

  /// As fill_input (inputs.h), from the input's first element on.
  virtual void fill_input(std::span<std::byte> there, const InputSpec& spec);
  /// As fill_poison (buffers.h), each part for itself.
  virtual void fill_poison(std::span<const std::span<std::byte>> parts, std::uint64_t salt);
  void fill_poison(std::span<std::byte> there, std::uint64_t salt) { fill_poison(std::span(&there, 1), salt); }
  /// `there` is then in no cache of the host, nor of the device that it lies on. Requires: of the host's memory
  /// can_flush (harness/machine/flush.h).
  virtual void flush(std::span<const std::byte> there) const = 0;

  /// Writes the guards of all zones.
  virtual void fill_guards(std::span<const GuardZone> zones);
  /// The least offset in the zones, which are in order, that does not hold its guard; nullopt: all do.
  [[nodiscard]] virtual std::optional<std::size_t> guard_damage(std::span<const GuardZone> zones) const;

  /// What fills and compares on this memory's device; null where the host does. Outputs of memories that have the same
  /// one are verified in one pass.
  [[nodiscard]] virtual const DeviceVerifier* verifier() const { return nullptr; }
  /// Who that is, as rows have it: `host`; `device`; `teams`, threads of the host that run the device's text.
  [[nodiscard]] std::string_view verified_by() const;
  /// As the functions of check.h; the bytes of the ranks' buffers are of this kind of memory, or of one with the same
  /// verifier.
  [[nodiscard]] virtual std::vector<CheckResult> verify_outputs(Oracle& oracle,
                                                                std::span<const RankBuffer> there) const;
  [[nodiscard]] CheckResult verify_output(Oracle& oracle, const RankBuffer& there) const;
  [[nodiscard]] virtual CheckResult verify_gaps(const Operation& operation, const RankBuffer& there,
                                                bool hold_input) const;
  [[nodiscard]] virtual CheckResult verify_input_unchanged(const Operation& operation, const RankBuffer& there) const;
};

}  // namespace tutti::harness::verify
