// SPDX-License-Identifier: Apache-2.0
// The table of the collectives: a row says all that is known of one. collective.h has the functions that read it, for
// everybody; a new collective is a row here and, where it needs one, a new word below. A v form has no rule of its own.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "impl/collective/collective.h"

namespace tutti::meaning {

/// Who has a buffer. The last four are of collectives of pairs (partner_of).
enum class Who : std::uint8_t {
  nobody,
  everyone,
  root,
  all_but_first,
  players,    ///< both ranks of a pair
  beginners,  ///< the lower one
  answerers,  ///< the higher one
};

/// How many blocks it holds.
enum class Blocks : std::uint8_t {
  one,
  ranks,   ///< one for each rank: it is divided
  window,  ///< one for each message
};

struct Buffer {
  Who who;
  Blocks blocks = Blocks::one;
};

/// Whose input makes up block b of the output of rank r.
enum class Giver : std::uint8_t {
  nobody,
  all,        ///< that of all ranks, reduced
  up_to_own,  ///< of the ranks 0 to r, reduced
  before,     ///< of the ranks 0 to r - 1, reduced
  root,
  numbered,  ///< rank b's
  previous,  ///< rank r - 1's, around the ring
  partner,
  beginner,  ///< of the pair; its own, where it plays alone
};

/// Which block of that input.
enum class Which : std::uint8_t {
  same,   ///< block b
  own,    ///< block r
  first,  ///< block 0
};

struct Source {
  Giver giver = Giver::nobody;
  Which block = Which::same;
};

/// How the buffers lie in place.
enum class InPlace : std::uint8_t {
  one_buffer,       ///< on every rank, also where it has only one of the two
  one_where_both,   ///< one buffer where a rank has both
  block_of_output,  ///< the input is block r of the output, where a rank has both
  block_of_input,   ///< the output is block r of the input, where a rank has both
};

/// busbw / algbw.
enum class Bus : std::uint8_t {
  none,
  one,
  two,
  others,        ///< (P-1)/P
  twice_others,  ///< 2(P-1)/P
  pairs,         ///< as many as there are
};

/// Which ranks are pairs, where nobody names the one that plays.
enum class Pairs : std::uint8_t {
  none,
  neighbours,  ///< 0 and 1, 2 and 3, ...
  halves,      ///< i and i + P/2
};

struct Rule {
  Buffer input = {Who::nobody};
  Buffer output = {Who::nobody};
  Source from = {};
  InPlace in_place = InPlace::one_buffer;
  Bus bus = Bus::none;
  Pairs pairs = Pairs::none;
  /// The last of an odd number of ranks plays with itself; otherwise it is idle.
  bool is_played_alone = false;
};

struct Row {
  Collective id;
  std::string_view name;
  Rule rule = {};
  Collective base = id;  ///< another one: this is a v form, and the rule is its base's
  bool is_in_all = true;
  std::string_view aliases = {};
};

inline constexpr Buffer kOne{Who::everyone, Blocks::one};
inline constexpr Buffer kOneAtRoot{Who::root, Blocks::one};
inline constexpr Buffer kDivided{Who::everyone, Blocks::ranks};
inline constexpr Buffer kDividedAtRoot{Who::root, Blocks::ranks};
inline constexpr Source kAllReduced{Giver::all, Which::same};

inline constexpr std::array kRows{
    Row{.id = Collective::broadcast,
        .name = "broadcast",
        .rule = {.input = kOneAtRoot, .output = kOne, .from = {Giver::root}, .bus = Bus::one},
        .aliases = "bcast"},
    Row{.id = Collective::reduce,
        .name = "reduce",
        .rule = {.input = kOne,
                 .output = kOneAtRoot,
                 .from = kAllReduced,
                 .in_place = InPlace::one_where_both,
                 .bus = Bus::one}},
    Row{.id = Collective::all_reduce,
        .name = "all_reduce",
        .rule = {.input = kOne, .output = kOne, .from = kAllReduced, .bus = Bus::twice_others}},
    Row{.id = Collective::gather,
        .name = "gather",
        .rule = {.input = kOne,
                 .output = kDividedAtRoot,
                 .from = {Giver::numbered, Which::first},
                 .in_place = InPlace::block_of_output,
                 .bus = Bus::others}},
    Row{.id = Collective::all_gather,
        .name = "all_gather",
        .rule = {.input = kOne,
                 .output = kDivided,
                 .from = {Giver::numbered, Which::first},
                 .in_place = InPlace::block_of_output,
                 .bus = Bus::others}},
    Row{.id = Collective::scatter,
        .name = "scatter",
        .rule = {.input = kDividedAtRoot,
                 .output = kOne,
                 .from = {Giver::root, Which::own},
                 .in_place = InPlace::block_of_input,
                 .bus = Bus::others}},
    Row{.id = Collective::reduce_scatter,
        .name = "reduce_scatter",
        .rule = {.input = kDivided,
                 .output = kOne,
                 .from = {Giver::all, Which::own},
                 .in_place = InPlace::block_of_input,
                 .bus = Bus::others},
        .aliases = "reduce_scatter_block"},
    Row{.id = Collective::all_to_all,
        .name = "all_to_all",
        .rule = {.input = kDivided, .output = kDivided, .from = {Giver::numbered, Which::own}, .bus = Bus::others}},
    Row{.id = Collective::barrier, .name = "barrier"},
    Row{.id = Collective::sendrecv,
        .name = "sendrecv",
        .rule = {.input = kOne, .output = kOne, .from = {Giver::previous}, .bus = Bus::one}},
    Row{.id = Collective::pingpong,
        .name = "pingpong",
        .rule = {.input = {Who::beginners},
                 .output = {Who::players},
                 .from = {Giver::beginner},
                 .bus = Bus::two,
                 .pairs = Pairs::neighbours,
                 .is_played_alone = true},
        .is_in_all = false},
    Row{.id = Collective::bandwidth,
        .name = "bandwidth",
        .rule = {.input = {Who::beginners, Blocks::window},
                 .output = {Who::answerers, Blocks::window},
                 .from = {Giver::partner},
                 .bus = Bus::one,
                 .pairs = Pairs::neighbours},
        .is_in_all = false},
    Row{.id = Collective::bibandwidth,
        .name = "bibandwidth",
        .rule = {.input = {Who::players, Blocks::window},
                 .output = {Who::players, Blocks::window},
                 .from = {Giver::partner},
                 .bus = Bus::two,
                 .pairs = Pairs::neighbours},
        .is_in_all = false},
    Row{.id = Collective::message_rate,
        .name = "message_rate",
        .rule = {.input = {Who::beginners, Blocks::window},
                 .output = {Who::answerers, Blocks::window},
                 .from = {Giver::partner},
                 .bus = Bus::pairs,
                 .pairs = Pairs::halves},
        .is_in_all = false},
    Row{.id = Collective::gather_v, .name = "gather_v", .base = Collective::gather, .is_in_all = false},
    Row{.id = Collective::all_gather_v, .name = "all_gather_v", .base = Collective::all_gather, .is_in_all = false},
    Row{.id = Collective::scatter_v, .name = "scatter_v", .base = Collective::scatter, .is_in_all = false},
    Row{.id = Collective::reduce_scatter_v,
        .name = "reduce_scatter_v",
        .base = Collective::reduce_scatter,
        .is_in_all = false},
    Row{.id = Collective::all_to_all_v, .name = "all_to_all_v", .base = Collective::all_to_all, .is_in_all = false},
    Row{.id = Collective::scan,
        .name = "scan",
        .rule = {.input = kOne, .output = kOne, .from = {Giver::up_to_own}, .bus = Bus::one},
        .is_in_all = false},
    Row{.id = Collective::exscan,
        .name = "exscan",
        .rule = {.input = kOne, .output = {Who::all_but_first}, .from = {Giver::before}, .bus = Bus::one},
        .is_in_all = false},
};

}  // namespace tutti::meaning
