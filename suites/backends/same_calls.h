// SPDX-License-Identifier: Apache-2.0
// Whether two declarations of a C function can be called alike: what a table of functions says, and what a header says.
#pragma once

#include <type_traits>

namespace tutti {

template <class A, class B>
constexpr bool is_passed_alike() {
  return sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
         std::is_floating_point_v<A> == std::is_floating_point_v<B> && std::is_class_v<A> == std::is_class_v<B>;
}

template <class A, class... As, class B, class... Bs>
constexpr bool are_called_alike(A (*)(As...), B (*)(Bs...)) {
  if constexpr (sizeof...(As) != sizeof...(Bs)) {
    return false;
  } else {
    return is_passed_alike<A, B>() && (is_passed_alike<As, Bs>() && ...);
  }
}

}  // namespace tutti
