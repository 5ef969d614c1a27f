// SPDX-License-Identifier: Apache-2.0
// The headers of torch that the binding needs, and the names that its versions call differently.
#pragma once

#include <ATen/ATen.h>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torch/version.h>
#include <vector>

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#endif

namespace tutti::bindings {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using std::chrono::milliseconds;

/// What is derived from: 2.x has one ProcessGroup, which hands calls to a Backend for each kind of device.
#if TORCH_VERSION_MAJOR >= 2
using GroupBase = c10d::Backend;
#else
using GroupBase = c10d::ProcessGroup;
#endif

}  // namespace tutti::bindings
