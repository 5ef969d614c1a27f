// SPDX-License-Identifier: Apache-2.0
// Memory of devices that other processes have opened, and may still write to when its owner is done with it. It is
// released once all of them have closed theirs.
#pragma once

#include <memory>
#include <vector>

#include "impl/device/device.h"
#include "impl/transports/domain.h"

namespace tutti {

class LeftMemory {
 public:
  LeftMemory() = default;
  /// Waits for the others, for some seconds. What they have open after that stays until the process ends.
  ~LeftMemory();
  LeftMemory(const LeftMemory&) = delete;
  LeftMemory& operator=(const LeftMemory&) = delete;

  /// What ranks of `domain` have opened. They have closed it when their journals say that they have left.
  void add(DeviceMemory memory, std::shared_ptr<Domain> domain);
  /// What nobody has open any more.
  void release();

 private:
  struct One {
    DeviceMemory memory;
    std::shared_ptr<Domain> domain;
  };
  std::vector<One> all_;
};

}  // namespace tutti
