// SPDX-License-Identifier: Apache-2.0
// A composition as a system under test (cases/compositions.h): each of its operations is several calls of one backend,
// back to back on each rank. The result is in the buffers of the collective whose work it does, and is verified there.
// What stands between two calls lies in memory of its own, with guards; a local copy that is needed is part of the
// operation.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/backends/system.h"

namespace tutti::harness::backends {

class CompositionBackend final : public Backend {
 public:
  struct Place {
    std::vector<int> ranks;  ///< of this runner
    MemorySource memory;     ///< of the host, for what stands between two calls
  };
  /// `inner` must outlive it. `name`: the system's (is_composition).
  CompositionBackend(Backend& inner, std::string name, Place place)
      : inner_(inner), name_(std::move(name)), place_(std::move(place)) {}

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] std::string describe() const override { return inner_.describe(); }
  [[nodiscard]] Status supports(const Case& one) const override;
  [[nodiscard]] std::string algorithm_of(const Case& /*one*/) const override { return std::string(kNone); }
  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(const Case& one,
                                                          std::span<const RankBuffers> buffers) override;

 private:
  /// The calls, as cases of the inner backend, in their order. Errors: unavailable where the case cannot be composed.
  [[nodiscard]] Result<std::vector<Case>> calls_of(const Case& one) const;

  Backend& inner_;
  std::string name_;
  Place place_;
};

}  // namespace tutti::harness::backends
