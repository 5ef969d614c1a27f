// SPDX-License-Identifier: Apache-2.0
// Fills and compares where the buffers lie. What a device is asked, and what is made of its answer, is here; who runs
// it is a DeviceRunner. Verdicts are those of check.h, word by word.
//
// Outputs of all ranks of a device are compared in one pass. Where one is wrong, the host fetches the first wrong
// elements, and as much of the output as a diagnosis asks for.
//
// Through the host go, output by output: results that are rounded (rounding.h: the bound is of double-double, whose
// products are fused), and what is wrong where any NaN is right or where blocks lie in no order.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "harness/verify/check.h"
#include "harness/verify/device_runner.h"
#include "harness/verify/memory.h"

namespace tutti::harness::verify {

class DeviceVerifier {
 public:
  explicit DeviceVerifier(std::unique_ptr<DeviceRunner> runner) : runner_(std::move(runner)) {}

  /// As the functions of Memory, which is the buffers'. A device that fails ends the program: nothing on it can be
  /// verified.
  void fill_input(std::span<std::byte> there, const InputSpec& spec) const;
  void fill_poison(std::span<const std::span<std::byte>> parts, std::uint64_t salt) const;
  void fill_guards(std::span<const GuardZone> zones) const;
  [[nodiscard]] std::optional<std::size_t> guard_damage(std::span<const GuardZone> zones) const;
  [[nodiscard]] std::vector<CheckResult> verify_outputs(Oracle& oracle, std::span<const RankBuffer> there,
                                                        const Memory& memory) const;
  [[nodiscard]] CheckResult verify_gaps(const Operation& operation, const RankBuffer& there, bool hold_input,
                                        const Memory& memory) const;
  [[nodiscard]] CheckResult verify_input_unchanged(const Operation& operation, const RankBuffer& there,
                                                   const Memory& memory) const;
  /// As Memory::start_triad.
  Status start_triad(const TriadWork& work, void* stream) const { return runner_->start_triad(work, stream); }

 private:
  std::unique_ptr<DeviceRunner> runner_;
};

/// Memory whose device fills and compares where it has a verifier, and else the host.
class VerifiedMemory : public Memory {
 public:
  /// Null: the host fills and compares.
  void set_verifier(std::shared_ptr<const DeviceVerifier> verifier) { verifier_ = std::move(verifier); }

  void fill_input(std::span<std::byte> there, const InputSpec& spec) override;
  using Memory::fill_poison;
  void fill_poison(std::span<const std::span<std::byte>> parts, std::uint64_t salt) override;
  void fill_guards(std::span<const GuardZone> zones) override;
  Status start_triad(const TriadWork& work) override;
  [[nodiscard]] std::optional<std::size_t> guard_damage(std::span<const GuardZone> zones) const override;
  [[nodiscard]] const DeviceVerifier* verifier() const override { return verifier_.get(); }
  [[nodiscard]] std::vector<CheckResult> verify_outputs(Oracle& oracle,
                                                        std::span<const RankBuffer> there) const override;
  [[nodiscard]] CheckResult verify_gaps(const Operation& operation, const RankBuffer& there,
                                        bool hold_input) const override;
  [[nodiscard]] CheckResult verify_input_unchanged(const Operation& operation, const RankBuffer& there) const override;

 private:
  std::shared_ptr<const DeviceVerifier> verifier_;
};

/// Memory of the host whose buffers a verifier's device fills and compares: how what a GPU does is tried without one.
[[nodiscard]] std::unique_ptr<Memory> verified_host_memory(std::shared_ptr<const DeviceVerifier> verifier);

}  // namespace tutti::harness::verify
