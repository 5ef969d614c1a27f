// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "harness/machine/flush.h"
#include "harness/verify/buffers.h"
#include "harness/verify/check.h"
#include "harness/verify/inputs.h"

namespace tutti::harness::verify {
namespace {

constexpr std::size_t kPartBytes = std::size_t{1}
                                   << 20U;  // of a buffer that the host fills: a multiple of all elements
constexpr std::size_t kPageOfHost = 4096;

/// Everything in place: what the host can reach needs no copies.
class HostMemory final : public Memory {
 public:
  [[nodiscard]] MemoryKind kind() const override { return MemoryKind::host; }

  [[nodiscard]] Result<void*> allocate(std::size_t bytes) override {
    const std::size_t whole_pages = (bytes + kPageOfHost - 1) / kPageOfHost * kPageOfHost;
    if (void* pointer = std::aligned_alloc(kPageOfHost, std::max(whole_pages, kPageOfHost))) return pointer;
    return error(Code::resource, "no memory for a buffer of {} bytes", bytes);
  }
  void release(void* pointer) override { std::free(pointer); }

  void write(std::byte* there, std::span<const std::byte> here) override {
    if (!here.empty()) std::memcpy(there, here.data(), here.size());
  }
  void read(std::span<std::byte> here, const std::byte* there) const override {
    if (!here.empty()) std::memcpy(here.data(), there, here.size());
  }
  [[nodiscard]] HostView view(std::span<const std::byte> there) const override { return HostView(there); }

  void fill_input(std::span<std::byte> there, const InputSpec& spec) override { verify::fill_input(there, spec); }
  void fill_poison(std::span<const std::span<std::byte>> parts, std::uint64_t salt) override {
    for (const std::span<std::byte>& part : parts) verify::fill_poison(part, salt);
  }
  void flush(std::span<const std::byte> there) const override { machine::flush(there); }
};

}  // namespace

std::string_view to_string(MemoryKind kind) { return kind == MemoryKind::cuda ? "gpu" : "host"; }

Memory& host_memory() {
  static HostMemory memory;
  return memory;
}

Allocator Memory::allocator() {
  return {.allocate = [this](std::size_t bytes) { return allocate(bytes); },
          .release = [this](void* pointer) { release(pointer); },
          .kind = this};
}

Status Memory::begin_capture() { return error(Code::unavailable, "this memory has no stream that could be captured"); }
Result<std::unique_ptr<Graph>> Memory::end_capture() { return begin_capture(); }
Result<std::unique_ptr<Instants>> Memory::instants(int /*most*/) { return std::unique_ptr<Instants>(); }

Status Memory::start_copy(std::byte* /*to*/, const std::byte* /*from*/, std::size_t /*bytes*/) {
  return error(Code::unavailable, "this memory has no stream for copies");
}
Status Memory::start_triad(const TriadWork& /*work*/) {
  return error(Code::unavailable, "nothing here computes on the device of this memory");
}
Result<bool> Memory::is_idle() { return error(Code::unavailable, "this memory has no stream that could be idle"); }

std::string_view Memory::verified_by() const {
  if (verifier() == nullptr) return "host";
  return kind() == MemoryKind::host ? "teams" : "device";
}

HostView Memory::view(std::span<const std::byte> there) const {
  std::vector<std::byte> copy(there.size());
  read(copy, there.data());
  return HostView(std::move(copy));
}

void Memory::fill_input(std::span<std::byte> there, const InputSpec& spec) {
  std::vector<std::byte> here(std::min(there.size(), kPartBytes));
  for (std::size_t done = 0; done < there.size(); done += here.size()) {
    const std::span part = std::span(here).first(std::min(here.size(), there.size() - done));
    verify::fill_input(part, spec, static_cast<Count>(done / size_of(spec.dtype)));
    write(there.data() + done, part);
  }
}

void Memory::fill_poison(std::span<const std::span<std::byte>> parts, std::uint64_t salt) {
  std::vector<std::byte> here;
  for (const std::span<std::byte>& there : parts) {
    if (here.size() < std::min(there.size(), kPartBytes)) {
      here.resize(std::min(there.size(), kPartBytes));
      verify::fill_poison(here, salt);
    }
    for (std::size_t done = 0; done < there.size(); done += kPartBytes) {
      write(there.data() + done, std::span(here).first(std::min(kPartBytes, there.size() - done)));
    }
  }
}

void Memory::fill_guards(std::span<const GuardZone> zones) {
  for (const GuardZone& zone : zones) {
    std::vector<std::byte> here(zone.there.size());
    fill_guard(here, zone.offset);
    write(zone.there.data(), here);
  }
}

std::optional<std::size_t> Memory::guard_damage(std::span<const GuardZone> zones) const {
  for (const GuardZone& zone : zones) {
    const HostView here = view(zone.there);
    if (const auto damage = verify::guard_damage(here.bytes(), zone.offset)) return damage;
  }
  return std::nullopt;
}

std::vector<CheckResult> Memory::verify_outputs(Oracle& oracle, std::span<const RankBuffer> there) const {
  std::vector<CheckResult> results;
  for (const RankBuffer& output : there) {
    const HostView here = view(output.bytes);
    results.push_back(verify::verify_output(oracle, {.rank = output.rank, .bytes = here.bytes()}));
  }
  return results;
}

CheckResult Memory::verify_output(Oracle& oracle, const RankBuffer& there) const {
  return verify_outputs(oracle, std::span(&there, 1)).front();
}

CheckResult Memory::verify_gaps(const Operation& operation, const RankBuffer& there, bool hold_input) const {
  const HostView here = view(there.bytes);
  return verify::verify_gaps(operation, {.rank = there.rank, .bytes = here.bytes()}, hold_input);
}

CheckResult Memory::verify_input_unchanged(const Operation& operation, const RankBuffer& there) const {
  const HostView here = view(there.bytes);
  return verify::verify_input_unchanged(operation, {.rank = there.rank, .bytes = here.bytes()});
}

}  // namespace tutti::harness::verify
