// SPDX-License-Identifier: Apache-2.0
// A backend a second time, as a system of its own with buffers of its own. What differs between the two is the
// measurement, not the work (A/A).
#pragma once

#include <string>
#include <utility>

#include "harness/backends/system.h"

namespace tutti::harness::backends {

class TwinBackend final : public Backend {
 public:
  /// `inner` must outlive it. `name`: the twin's (is_twin).
  TwinBackend(Backend& inner, std::string name) : inner_(inner), name_(std::move(name)) {}

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] std::string describe() const override { return inner_.describe(); }
  [[nodiscard]] Status supports(const Case& one) const override { return inner_.supports(one); }
  [[nodiscard]] std::string algorithm_of(const Case& one) const override { return inner_.algorithm_of(one); }
  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(const Case& one,
                                                          std::span<const RankBuffers> buffers) override {
    return inner_.prepare(one, buffers);
  }
  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare_asynchronous(const Case& one,
                                                                       std::span<const RankBuffers> buffers) override {
    return inner_.prepare_asynchronous(one, buffers);
  }

 private:
  Backend& inner_;
  std::string name_;
};

}  // namespace tutti::harness::backends
