// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/sight.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "harness/cases/lists.h"
#include "impl/types/names.h"

namespace tutti::harness::verify {

Result<Sight> sight_without(std::string_view parts) {
  struct Part {
    std::string_view name;
    bool Sight::*flag;
  };
  constexpr std::array kParts{Part{"outputs", &Sight::outputs}, Part{"inputs", &Sight::inputs},
                              Part{"guards", &Sight::guards}, Part{"afterwards", &Sight::afterwards},
                              Part{"barriers", &Sight::barriers}};
  TUTTI_ASSIGN_OR_RETURN(const auto items, split_list("parts", parts));
  std::vector<std::string> names;
  for (const Part& part : kParts) names.emplace_back(part.name);
  Sight sight;
  for (const std::string_view item : items) {
    const auto part = std::ranges::find(kParts, item, &Part::name);
    if (part == kParts.end()) return unknown_name("part of the verifier", item, names);
    sight.*(part->flag) = false;
  }
  return sight;
}

}  // namespace tutti::harness::verify
