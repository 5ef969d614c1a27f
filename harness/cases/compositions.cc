// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/compositions.h"

#include <algorithm>

namespace tutti::harness::cases {
const Composition* find_composition(Collective of, std::string_view name) {
  const auto found =
      std::ranges::find_if(kCompositions, [&](const Composition& one) { return one.of == of && one.name == name; });
  return found == kCompositions.end() ? nullptr : &*found;
}

std::string_view composition_of(std::string_view system) {
  const std::size_t colon = system.rfind(kPartSeparator);
  if (colon == std::string_view::npos) return {};
  const std::string_view name = system.substr(colon + 1);
  return std::ranges::find(kCompositions, name, &Composition::name) == kCompositions.end() ? std::string_view() : name;
}

}  // namespace tutti::harness::cases
