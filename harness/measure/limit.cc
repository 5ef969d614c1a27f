// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/limit.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <sched.h>
#include <tuple>
#include <utility>

#include "harness/machine/clock.h"
#include "harness/measure/block.h"
#include "harness/verify/oracle.h"

namespace tutti::harness::measure {
namespace {

constexpr std::int64_t kLine = 64;  ///< bytes; ranks share no line of a buffer that begins at one
constexpr int kTrialSamples = 5;

std::vector<Piece> sources_of(const Operation& operation, const Origin& origin) {
  std::vector<Piece> sources;
  for (int rank = origin.first; rank <= origin.last; ++rank) {
    const auto element = static_cast<std::int64_t>(size_of(operation.dtype));
    sources.push_back({.rank = rank, .offset = operation.input_place(rank, origin.block).first * element});
  }
  return sources;
}

bool continues_another(const Movement& movement) { return std::ranges::any_of(movement.sources, &Piece::is_output); }

/// The owner of each movement, where every rank's are as many bytes: the rank that alone is written to, or read from.
std::optional<std::vector<int>> owners_of(const std::vector<Movement>& all, int ranks) {
  if (std::ranges::any_of(all, continues_another)) return {};  // its bytes would still be written by another rank
  for (const auto side : {&Movement::destinations, &Movement::sources}) {
    std::vector<int> owners;
    std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks));
    for (const Movement& one : all) {
      if ((one.*side).size() != 1) break;
      owners.push_back((one.*side).front().rank);
      bytes[static_cast<std::size_t>(owners.back())] += one.bytes;
    }
    const bool is_even = std::ranges::count(bytes, bytes.front()) == ranks;
    if (owners.size() == all.size() && is_even) return owners;
  }
  return {};
}

Movement slice_of(Movement whole, int rank, int ranks) {
  const std::int64_t lines = (whole.bytes + kLine - 1) / kLine;
  const std::int64_t begin = std::min(whole.bytes, lines * rank / ranks * kLine);
  const std::int64_t end = std::min(whole.bytes, lines * (rank + 1) / ranks * kLine);
  for (Piece& piece : whole.sources) piece.offset += begin;
  for (Piece& piece : whole.destinations) piece.offset += begin;
  whole.bytes = end - begin;
  return whole;
}

/// Piece by piece of all movements, so that what one has written is in the cache when another one goes on from it.
std::vector<Movement> in_pieces(const std::vector<Movement>& all) {
  constexpr std::int64_t kPiece = 8192;  ///< bytes
  std::vector<Movement> pieces;
  for (std::int64_t begin = 0; begin < all.front().bytes; begin += kPiece) {
    for (Movement piece : all) {
      piece.bytes = std::min(kPiece, piece.bytes - begin);
      for (Piece& place : piece.sources) place.offset += begin;
      for (Piece& place : piece.destinations) place.offset += begin;
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

}  // namespace

std::vector<Movement> least_movements(const Cell& cell) {
  const Operation operation = operation_of(cell, 0);  // no data: any seed
  const Problem& problem = operation.problem;
  const auto element = static_cast<std::int64_t>(size_of(cell.dtype));
  std::map<std::tuple<int, int, int>, std::size_t> known;  // by origin
  std::vector<Movement> all;
  for (int rank = 0; rank < problem.ranks; ++rank) {
    for (int block = 0; block < output_blocks(problem, rank); ++block) {
      const Place place = operation.output_place(rank, block);
      if (place.count == 0) continue;
      const Origin origin = origin_of(problem, rank, block);
      const auto [entry, is_new] = known.try_emplace({origin.first, origin.last, origin.block}, all.size());
      if (is_new) {
        all.push_back({.sources = sources_of(operation, origin), .bytes = place.count * element});
        // What the ranks but the last one come to is read where it was written.
        const auto shorter = known.find({origin.first, origin.last - 1, origin.block});
        std::vector<Piece>& sources = all.back().sources;
        if (shorter != known.end()) sources = {all[shorter->second].destinations.front(), sources.back()};
      }
      all[entry->second].destinations.push_back({.rank = rank, .is_output = true, .offset = place.first * element});
    }
  }
  return all;
}

std::vector<Movement> share_of(const Cell& cell, int rank) {
  const std::vector<Movement> all = least_movements(cell);
  const auto owners = owners_of(all, cell.ranks);
  std::vector<Movement> share;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!owners) {
      Movement slice = slice_of(all[i], rank, cell.ranks);
      if (slice.bytes > 0) share.push_back(std::move(slice));
    } else if ((*owners)[i] == rank) {
      share.push_back(all[i]);
    }
  }
  return std::ranges::any_of(share, continues_another) ? in_pieces(share) : share;
}

std::optional<Case> limit_of(const Cell& cell) {
  const Collective base = base_of(cell.collective);
  const bool overwrites = cell.is_in_place && (base == Collective::all_to_all || base == Collective::sendrecv ||
                                               base == Collective::exscan);
  if (base == Collective::barrier || base == Collective::pingpong || overwrites || cell.bytes == 0) return {};
  if (has_window(base)) return {};
  Case one;
  static_cast<Cell&>(one) = cell;
  one.backend = kLimitName;
  one.buffers = Buffers::shared;
  if (one.op == Op::premul_sum) one.op = Op::sum;  // the same bytes
  return one;
}

Case without_elements(Case one, std::string_view backend) {
  one.backend = backend;
  one.count = 0;
  if (has_counts(one.collective)) {
    one.counts = {.pattern = Pattern::file,
                  .name = one.counts.name,
                  .numbers = std::vector<Count>(static_cast<std::size_t>(one.ranks), 0)};
  }
  return one;
}

std::vector<Case> with_limit(std::vector<Case> cell) {
  if (auto limit = limit_of(cell.front())) cell.push_back(std::move(*limit));
  return cell;
}

/// Each rank's share with its addresses, once the runners are connected.
class LimitBackend::PreparedShares final : public Prepared {
 public:
  PreparedShares(const LimitBackend& backend, const Case& one, std::span<const RankBuffers> buffers)
      : backend_(backend),
        case_(one),
        buffers_(buffers.begin(), buffers.end()),
        kernel_(kernel_for(one.dtype, one.op)) {}

  Status post(std::size_t index) override {
    if (backend_.teams_ == nullptr) {
      for (const Move& move : moves_[index]) make(move);
      return {};
    }
    // One launch is for all ranks: it is made when the last of them has posted.
    const std::int64_t number = ++posted_[index];
    if (std::ranges::min(posted_) < number) return {};
    const int teams = backend_.teams_of_rank_ * static_cast<int>(moves_.size());
    TUTTI_ASSIGN_OR_RETURN(ticket_, backend_.teams_->run({.teams = teams, .threads = 1},
                                                         [this](HostTarget& /*target*/, int team) { make_of(team); }));
    launched_ = number;
    return {};
  }
  Result<bool> test(std::size_t index) override {
    if (backend_.teams_ == nullptr) return true;
    if (launched_ < posted_[index]) return false;
    TUTTI_ASSIGN_OR_RETURN(const bool is_done, backend_.teams_->is_complete(ticket_));
    if (!is_done) sched_yield();  // the teams need the core
    return is_done;
  }
  [[nodiscard]] bool is_posted_together() const override { return backend_.teams_ != nullptr; }
  /// A rank's buffers are written by other ranks, which may be later.
  Status settle() override { return runner_->exchange(char{}).status(); }

  Status connect(Runner& runner) {
    runner_ = &runner;
    TUTTI_ASSIGN_OR_RETURN(const auto all, everybodys_buffers());
    for (const int rank : runner.ranks()) {
      std::vector<Move>& moves = moves_.emplace_back();
      for (const Movement& one : share_of(case_, rank)) {
        Move move{.bytes = static_cast<std::size_t>(one.bytes)};
        for (const Piece& piece : one.sources) move.sources.push_back(address_of(all, piece));
        for (const Piece& piece : one.destinations) move.destinations.push_back(address_of(all, piece));
        if (one.sources.size() == 1) std::erase(move.destinations, move.sources.front());  // in place it is there
        if (!move.destinations.empty()) moves.push_back(std::move(move));
      }
    }
    return {};
  }

 private:
  struct Move {
    std::vector<std::byte*> destinations;
    std::vector<const std::byte*> sources;
    std::size_t bytes = 0;
  };
  struct Addresses {
    std::byte* input = nullptr;
    std::byte* output = nullptr;
  };

  void make(const Move& move) const {
    const bool is_copy = move.sources.size() == 1 && case_.op != Op::avg;
    if (is_copy && backend_.stores_ == Stores::of_library) {
      for (std::byte* const to : move.destinations) std::memcpy(to, move.sources.front(), move.bytes);
      return;
    }
    kernel_({.destinations = move.destinations.data(),
             .destination_count = static_cast<int>(move.destinations.size()),
             .sources = move.sources.data(),
             .source_count = static_cast<int>(move.sources.size()),
             .bytes = move.bytes,
             .ranks = case_.ranks,
             .is_final = case_.op == Op::avg,
             .streamed = backend_.stores_ == Stores::past_cache ? kAllDestinations : 0});
  }
  /// A slice of each of a rank's moves, in their order: what goes on from another is of the same slice.
  void make_of(int team) const {
    const int ranks = static_cast<int>(moves_.size());
    const auto slices = static_cast<std::size_t>(backend_.teams_of_rank_),
               slice = static_cast<std::size_t>(team / ranks);
    for (const Move& whole : moves_[static_cast<std::size_t>(team % ranks)]) {
      const std::size_t lines = (whole.bytes + kLine - 1) / kLine;
      const std::size_t begin = std::min(whole.bytes, lines * slice / slices * kLine);
      Move part = whole;
      part.bytes = std::min(whole.bytes, lines * (slice + 1) / slices * kLine) - begin;
      for (std::byte*& to : part.destinations) to += begin;
      for (const std::byte*& from : part.sources) from += begin;
      if (part.bytes > 0) make(part);
    }
  }

  [[nodiscard]] static std::byte* address_of(const std::vector<Addresses>& all, const Piece& piece) {
    const Addresses& addresses = all[static_cast<std::size_t>(piece.rank)];
    return (piece.is_output ? addresses.output : addresses.input) + piece.offset;
  }

  /// By rank, as addresses of this process.
  Result<std::vector<Addresses>> everybodys_buffers() {
    const auto mine = [&](std::size_t index) {
      return Addresses{.input = static_cast<std::byte*>(const_cast<void*>(buffers_[index].input)),
                       .output = static_cast<std::byte*>(buffers_[index].output)};
    };
    std::vector<Addresses> all;
    if (runner_->count() == 1) {
      for (std::size_t i = 0; i < buffers_.size(); ++i) all.push_back(mine(i));
      return all;
    }
    // From the base of a rank's heap, which each process sees elsewhere; without one, addresses are everybody's.
    struct Offsets {
      int rank = -1;  ///< none
      std::uintptr_t input = 0;
      std::uintptr_t output = 0;
    };
    const auto base = [&](int rank) { return reinterpret_cast<std::uintptr_t>(backend_.domain_.seat(rank).heap); };
    TUTTI_ASSIGN_OR_RETURN(const auto ranks_of_hosts, runner_->exchange(buffers_.size()));
    all.resize(static_cast<std::size_t>(case_.ranks));
    for (std::size_t i = 0; i < std::ranges::max(ranks_of_hosts); ++i) {
      Offsets offsets;
      if (i < buffers_.size()) {
        const Addresses here = mine(i);
        const int rank = runner_->ranks()[i];
        offsets = {.rank = rank,
                   .input = reinterpret_cast<std::uintptr_t>(here.input) - base(rank),
                   .output = reinterpret_cast<std::uintptr_t>(here.output) - base(rank)};
      }
      TUTTI_ASSIGN_OR_RETURN(const auto of_hosts, runner_->exchange(offsets));
      for (const Offsets& there : of_hosts) {
        if (there.rank < 0) continue;
        all[static_cast<std::size_t>(there.rank)] = {
            .input = reinterpret_cast<std::byte*>(base(there.rank) + there.input),
            .output = reinterpret_cast<std::byte*>(base(there.rank) + there.output)};
      }
    }
    return all;
  }

  const LimitBackend& backend_;
  Case case_;
  std::vector<RankBuffers> buffers_;
  Kernel kernel_;
  Runner* runner_ = nullptr;
  std::vector<std::vector<Move>> moves_;  ///< by rank of the runner
  // With teams: calls of each rank, and launches of all.
  std::vector<std::int64_t> posted_ = std::vector<std::int64_t>(buffers_.size());
  std::int64_t launched_ = 0;
  Device::Ticket ticket_ = 0;
};

Status LimitBackend::supports(const Case& one) const {
  if (limit_of(one)) return {};
  return error(Code::unavailable, "{} has no limit: nothing is moved, ranks take turns, or inputs are overwritten",
               case_id(one));
}

Result<std::unique_ptr<Prepared>> LimitBackend::prepare(const Case& one, std::span<const RankBuffers> buffers) {
  auto prepared = std::make_unique<PreparedShares>(*this, one, buffers);
  unconnected_.push_back(prepared.get());
  return std::unique_ptr<Prepared>(std::move(prepared));
}

Status LimitBackend::connect(Runner& runner) {
  for (PreparedShares* const shares : std::exchange(unconnected_, {})) TUTTI_RETURN_IF_ERROR(shares->connect(runner));
  return {};
}

Result<int> fastest_way(Runner& runner, Variant& variant, const LimitTrial& trial, int ways,
                        const std::function<void(int way)>& choose) {
  std::vector<double> best_us;
  const std::int64_t begin_ns = monotonic_ns();
  for (int way = 0; way < ways; ++way) {
    choose(way);
    const std::int64_t share_ns = begin_ns + (trial.end_ns - begin_ns) * (way + 1) / ways;
    TUTTI_ASSIGN_OR_RETURN(const std::int64_t until_ns, runner.agree(share_ns));
    const std::uint64_t salt =
        (trial.seed << 32U) + 2 * static_cast<std::uint64_t>(way) + 1 + (std::uint64_t{1} << 31U);
    TUTTI_ASSIGN_OR_RETURN(const BlockResult result,
                           run_block(runner, variant, {.salt = salt, .samples = kTrialSamples, .end_ns = until_ns}));
    best_us.push_back(std::ranges::min(result.samples, {}, &Sample::global_us).global_us);
  }
  return static_cast<int>(std::ranges::min_element(best_us) - best_us.begin());
}

Result<std::optional<Variant>> make_limit(Runner& runner, LimitBackend& backend, const Variant::Request& like,
                                          std::int64_t end_ns) {
  const std::optional<Case> limit = limit_of(like.instance);
  if (!limit) return std::optional<Variant>();
  backend.forget();
  Result<Variant> variant = Variant::create(runner, {.backend = backend,
                                                     .memory = like.memory,
                                                     .instance = *limit,
                                                     .seed = like.seed,
                                                     .rotation = like.rotation,
                                                     .filler = like.filler,
                                                     .number = like.number});
  TUTTI_ASSIGN_OR_RETURN(const Reason why_none, runner.first_reason(variant.status()));
  if (why_none.is_any()) return std::optional<Variant>();
  TUTTI_RETURN_IF_ERROR(backend.connect(runner));

  const auto choose = [&backend](int way) { backend.set_stores(static_cast<LimitBackend::Stores>(way)); };
  TUTTI_ASSIGN_OR_RETURN(const int way, fastest_way(runner, variant.value(), {.seed = like.seed, .end_ns = end_ns},
                                                    LimitBackend::kWays, choose));
  choose(way);
  return std::optional(std::move(variant).value());
}

}  // namespace tutti::harness::measure
