// SPDX-License-Identifier: Apache-2.0
// Compositions: systems that do the work of one collective with calls of others, back to back, on the same backend.
// `openmpi:reduce+broadcast` is an all_reduce that calls Open MPI's reduce and then its broadcast. A user could write
// any of them in place of the native call, so a native call that takes longer can be improved.
//
// Sources of the pairs (self-consistent performance guidelines):
// - Traff, Gropp, Thakur: Self-consistent MPI performance guidelines. IEEE TPDS 21(5), 2010, doi:10.1109/TPDS.2009.120
// - Hunold, Carpen-Amarie: Autotuning MPI collectives using performance guidelines. HPC Asia 2018,
//   doi:10.1145/3149457.3149461 (PGMPI)
#pragma once

#include <array>
#include <string_view>

#include "harness/cases/case.h"
#include "impl/collective/collective.h"

namespace tutti::harness::cases {

struct Composition {
  std::string_view name;  ///< after the backend's and a colon
  Collective of;          ///< whose work it does
};

/// Two calls of half the elements each.
inline constexpr std::string_view kHalves = "halves";

inline constexpr std::array kCompositions{
    Composition{"reduce+broadcast", Collective::all_reduce},
    Composition{"reduce_scatter+all_gather", Collective::all_reduce},
    Composition{kHalves, Collective::all_reduce},
    Composition{"gather+broadcast", Collective::all_gather},
    Composition{"broadcast", Collective::scatter},
    Composition{"all_reduce", Collective::reduce},
    Composition{"reduce_scatter+gather", Collective::reduce},
    Composition{kHalves, Collective::reduce},
    Composition{"all_gather", Collective::gather},
    Composition{"scatter+all_gather", Collective::broadcast},
    Composition{kHalves, Collective::broadcast},
    Composition{"reduce+scatter", Collective::reduce_scatter},
};
/// Null where there is none of this name for the collective.
[[nodiscard]] const Composition* find_composition(Collective of, std::string_view name);

/// The name of the composition that a system is; empty: it is none.
[[nodiscard]] std::string_view composition_of(std::string_view system);
[[nodiscard]] inline bool is_composition(std::string_view system) { return !composition_of(system).empty(); }

}  // namespace tutti::harness::cases
