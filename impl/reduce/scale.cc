// SPDX-License-Identifier: Apache-2.0
#include "impl/reduce/scale.h"

#include <cstring>
#include <type_traits>

namespace tutti {
namespace {

template <class T>
void scale(std::byte* destination, const std::byte* source, std::size_t bytes, const Factor& factor_bytes) {
  T factor;
  std::memcpy(&factor, factor_bytes.data(), sizeof(T));
  for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
    T value;
    std::memcpy(&value, source + at, sizeof(T));
    value = premultiplied(value, factor);
    std::memcpy(destination + at, &value, sizeof(T));
  }
}

}  // namespace

Scale scale_for(Dtype dtype) {
  return visit_dtype(dtype, []<class T>(std::type_identity<T>) -> Scale { return scale<T>; });
}

}  // namespace tutti
