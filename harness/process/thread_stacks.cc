// SPDX-License-Identifier: Apache-2.0
#include "harness/process/thread_stacks.h"

#include <algorithm>
#include <cstddef>
#include <pthread.h>
#include <sys/resource.h>

namespace tutti::harness::process {
namespace {

constexpr rlim_t kLeastOfFirst = rlim_t{256} << 10;

/// The stack of the first thread grows up to the limit of the moment.
Status ensure_first_stack() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeastOfFirst) return {};
  if (limit.rlim_max < kLeastOfFirst) {
    return error(Code::resource, "the stack of a process needs {} KiB, and the limit is {} (ulimit -s): raise it",
                 kLeastOfFirst / 1024, limit.rlim_max / 1024);
  }
  limit.rlim_cur = std::min(limit.rlim_max, kUsualStack);
  ::setrlimit(RLIMIT_STACK, &limit);
  return {};
}

}  // namespace

Status ensure_stacks() {
#ifdef __GLIBC__
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) == 0) {
    std::size_t bytes = 0;
    const bool is_small = ::pthread_attr_getstacksize(&attributes, &bytes) == 0 && bytes < kLeastThreadStack;
    if (is_small && ::pthread_attr_setstacksize(&attributes, kUsualStack) == 0)
      ::pthread_setattr_default_np(&attributes);
    ::pthread_attr_destroy(&attributes);
  }
#endif
  return ensure_first_stack();
}

}  // namespace tutti::harness::process
