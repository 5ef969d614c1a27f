// SPDX-License-Identifier: Apache-2.0
#include "impl/reduce/scale.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tutti {
namespace {

template <class T>
T product(T value, T factor) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(value) * static_cast<std::uint64_t>(factor));
  } else if constexpr (std::is_floating_point_v<T>) {
    return value * factor;
  } else {
    return T::from_float(value.to_float() * factor.to_float());
  }
}

template <class T>
void scale(std::byte* destination, const std::byte* source, std::size_t bytes, const Factor& factor_bytes) {
  T factor;
  std::memcpy(&factor, factor_bytes.data(), sizeof(T));
  for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
    T value;
    std::memcpy(&value, source + at, sizeof(T));
    value = product(value, factor);
    std::memcpy(destination + at, &value, sizeof(T));
  }
}

}  // namespace

Scale scale_for(Dtype dtype) {
  return visit_dtype(dtype, []<class T>(std::type_identity<T>) -> Scale { return scale<T>; });
}

}  // namespace tutti
