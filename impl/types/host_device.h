// SPDX-License-Identifier: Apache-2.0
// Marks functions that a GPU runs as well; nothing where the compiler is not a CUDA compiler.
#pragma once

#ifdef __CUDACC__
#define TUTTI_HOST_DEVICE __host__ __device__
#else
#define TUTTI_HOST_DEVICE
#endif
