// SPDX-License-Identifier: Apache-2.0
// Marks functions that a GPU runs as well; nothing where the compiler is not a CUDA compiler. TUTTI_INLINE is the same
// of those that are always inlined.
#pragma once

#ifdef __CUDACC__
#define TUTTI_HOST_DEVICE __host__ __device__
#define TUTTI_INLINE __host__ __device__ __forceinline__
#else
#define TUTTI_HOST_DEVICE
#define TUTTI_INLINE [[gnu::always_inline]] inline
#endif
