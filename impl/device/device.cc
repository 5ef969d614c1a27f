// SPDX-License-Identifier: Apache-2.0
#include "impl/device/device.h"

namespace tutti {

std::string why_no_gpu() {
  return "no GPU: this build has no kernels; --device host runs thread blocks as threads of the host";
}

}  // namespace tutti
