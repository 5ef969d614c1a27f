// SPDX-License-Identifier: Apache-2.0
// The own backend, broken on purpose. Nothing of it is on the way of a backend that is not broken. Plans are broken
// when they are bound (CommunicatorOptions::after_bind), arguments when a case is made ready. A broken case has a
// schedule of its own, so that its plans are never taken for those of the right one.
//
// Two faults alone edit the output afterwards, in place of the data path. A late write runs its operation on a buffer
// of the injector, which is copied to the user's in two parts. A wrong root of reduce and gather copies its result as
// far as the buffer of a rank without output goes.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "harness/backends/tutti/backend.h"
#include "harness/faults/plan_faults.h"

namespace tutti::harness::faults {

/// One fault in one case.
struct Injection {
  Fault fault = Fault::flipped_bit;
  int rank = 0;  ///< of which rank, where it is one; wrong_root: the root that all ranks take
  int by = 1;    ///< off_by_one_count: elements more
  std::uint64_t seed = 1;
  std::uint64_t input_seed = 1;
};

/// Plans of one runner that are to be broken: shared by the injector and its backend's communicators.
class PlanBreaker {
 public:
  /// To be after_bind of the backend's communicators.
  [[nodiscard]] static AfterBind hook(std::shared_ptr<PlanBreaker> breaker);
  void arm(PlanFault fault) {
    armed_ = std::move(fault);
    broken_ = 0;
  }
  /// How many plans were broken since.
  int disarm() {
    armed_.reset();
    return broken_;
  }

 private:
  std::optional<PlanFault> armed_;
  int broken_ = 0;
};

class Injector final : public Backend {
 public:
  /// `ranks` are those of `own`, whose communicators have the hook of `breaker`.
  Injector(OwnBackend& own, std::vector<int> ranks, std::shared_ptr<PlanBreaker> breaker);

  /// For the cases that are prepared from here on.
  void arm(const Injection& injection) { injection_ = injection; }
  /// Whether the fault is in the case that was prepared last, on some rank of this runner.
  [[nodiscard]] bool is_injected() const { return is_injected_; }
  /// Of the refill that the next operation works on.
  void set_salt(std::uint64_t salt) { *salt_ = salt; }

  [[nodiscard]] const std::string& name() const override { return own_.name(); }
  [[nodiscard]] std::string describe() const override { return own_.describe(); }
  [[nodiscard]] Status supports(const Case& one) const override { return own_.supports(one); }
  [[nodiscard]] std::string algorithm_of(const Case& one) const override { return own_.algorithm_of(one); }
  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(const Case& one,
                                                          std::span<const RankBuffers> buffers) override;

 private:
  /// The call gets other buffers, or another root.
  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare_stand_ins(Case& broken, const Operation& operation,
                                                                    std::span<const RankBuffers> buffers);

  OwnBackend& own_;
  std::vector<int> ranks_;
  std::shared_ptr<PlanBreaker> breaker_;
  Injection injection_;
  bool is_injected_ = false;
  int prepared_ = 0;
  std::shared_ptr<std::uint64_t> salt_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace tutti::harness::faults
