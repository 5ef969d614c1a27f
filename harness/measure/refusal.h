// SPDX-License-Identifier: Apache-2.0
// Why a host cannot run a case: what all hosts must know, so that none of them begins what another one refuses.
#pragma once

#include <array>

#include "harness/measure/host.h"
#include "impl/types/status.h"

namespace tutti::harness::measure {

/// A Status as hosts exchange it.
struct Refusal {
  Code code = Code::ok;
  std::array<char, 1024> reason{};

  [[nodiscard]] static Refusal of(const Status& status);
};

/// That of the first host that has one; the same on all hosts. All hosts call it. Errors: those of the host.
[[nodiscard]] Result<Refusal> first_refusal(Host& host, const Refusal& mine);

}  // namespace tutti::harness::measure
