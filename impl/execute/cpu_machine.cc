// SPDX-License-Identifier: Apache-2.0
#include "impl/execute/cpu_machine.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "impl/transports/peer_memory.h"

namespace tutti {
namespace {

constexpr std::size_t kLeastPiece = 4096;
constexpr std::size_t kMostKept = std::size_t{64} << 10U;  ///< bytes of all pieces at a time

/// One of a line's References, which its rank may write again meanwhile: each announcement of a window stores them.
std::uintptr_t reference_in(const std::byte* at) {
  return reinterpret_cast<const std::atomic<std::uint64_t>*>(at)->load(std::memory_order_relaxed);
}

}  // namespace

CpuMachine::CpuMachine(Domain& domain, int rank)
    : domain_(domain),
      rank_(rank),
      ranks_(domain.shape().ranks),
      generation_mask_(static_cast<std::uint64_t>(domain.shape().generations) - 1),
      slots_(static_cast<std::uint64_t>(domain.shape().slots)),
      slot_stride_(sizeof(SlotHeader) + domain.shape().slot_bytes),
      generation_bits_(static_cast<unsigned>(std::bit_width(generation_mask_))),
      scratch_stride_(scratch_stride(domain.shape())),
      scratch_area_(domain.shape().scratch_area) {
  const auto count = static_cast<std::size_t>(ranks_);
  for (int peer = 0; peer < ranks_; ++peer) {
    seats_.push_back(domain.seat(peer));
    links_.push_back(peer == rank ? nullptr : domain.link(peer));
    const bool is_near = links_.back() == nullptr;
    senders_.push_back({.memory = is_near ? domain.channel(rank, peer) : ChannelMemory()});
    receivers_.push_back({.memory = is_near ? domain.channel(peer, rank) : ChannelMemory()});
    has_links_ |= !is_near;
  }
  if (!has_links_) links_.clear();
  const Seat& mine = seats_[static_cast<std::size_t>(rank)];
  my_lines_ = mine.lines;
  my_scratch_ = mine.scratch;
  heap_address_ = reinterpret_cast<std::uintptr_t>(mine.heap);
  // A step has four operands a side, each a set of at most all ranks, and staging cuts a set in three.
  destinations_.resize(4 * count + 8);
  sources_.resize(4 * count + 8);
  arguments_ = {.destinations = destinations_.data(), .sources = sources_.data(), .ranks = ranks_};
}

bool CpuMachine::is_free(ChannelEnd& end) {
  if (end.slices - end.consumed_seen < slots_) return true;
  end.consumed_seen = end.memory.consumed->load(std::memory_order_acquire);
  return end.slices - end.consumed_seen < slots_ || await(*end.memory.consumed, end.slices - slots_ + 1);
}

bool CpuMachine::is_full(const ChannelEnd& end, int peer, const PlanOp& op) {
  const SlotHeader& header = slot(end);
  const std::uint64_t wanted = end.slices + 1;
  if (header.message.load(std::memory_order_acquire) < wanted && !await(header.message, wanted)) return false;
  const bool is_as_planned =
      header.bytes == static_cast<std::uint64_t>(op.rest_bytes) && header.hash == static_cast<std::uint32_t>(hash_);
  if (!is_as_planned) [[unlikely]] {
    header.hash == static_cast<std::uint32_t>(hash_) ? fail_on_length(peer, header.bytes, op.rest_bytes)
                                                     : fail_on_mismatch(peer);
  }
  return is_as_planned;
}

bool CpuMachine::channels_ready(const PlanOp& op, const PlanOperand* operand) {
  for (int i = 0; i < op.destinations + op.sources; ++i, ++operand) {
    if (operand->space != Space::channel) continue;
    const int peer = operand->ranks.first;
    const auto index = static_cast<std::size_t>(peer);
    if (i < op.destinations ? !is_free(senders_[index]) : !is_full(receivers_[index], peer, op)) return false;
  }
  return true;
}

template <class Pointer>
[[gnu::noinline]] Pointer* CpuMachine::resolve_remote(const PlanOperand& operand, const std::vector<ChannelEnd>& ends,
                                                      const PlanOp& op, Pointer* out) {
  const auto on_each = [&](auto base_of) {
    int rank = operand.ranks.first;
    for (Pointer* const end = out + operand.ranks.n; out != end; ++out) {
      *out = base_of(static_cast<std::size_t>(rank)) + operand.offset;
      rank = operand.ranks.after(rank, ranks_);
    }
    return out;
  };
  const auto in_user_buffer = [&](std::byte* own, std::size_t reference_at) {
    return on_each([&, own, reference_at](std::size_t rank) {
      if (rank == static_cast<std::size_t>(rank_)) return own;
      const std::uintptr_t reference = reference_in(line_of(seats_[rank]).payload.data() + reference_at);
      references_.push_back({.at = seats_[rank].lines->payload.data() + reference_at, .value = reference});
      const auto base = copies_once_ ? 0 : reinterpret_cast<std::uintptr_t>(seats_[rank].heap);
      return reinterpret_cast<std::byte*>(base + reference);
    });
  };
  switch (operand.space) {
    case Space::input:
      return in_user_buffer(mine_[static_cast<std::size_t>(Space::input)], offsetof(References, input));
    case Space::output:
      return in_user_buffer(mine_[static_cast<std::size_t>(Space::output)], offsetof(References, output));
    case Space::scratch:
      return on_each([this](std::size_t rank) { return seats_[rank].scratch + scratch_offset_; });
    case Space::line:
      return on_each([this](std::size_t rank) { return line_of(seats_[rank]).payload.data(); });
    case Space::channel:
      return on_each([&](std::size_t rank) { return payload(ends[rank], op.rest_bytes); });
  }
  return out;
}

template <class Pointer>
inline Pointer* CpuMachine::resolve(std::span<const PlanOperand> operands, const std::vector<ChannelEnd>& ends,
                                    const PlanOp& op, Pointer* out) {
  for (const PlanOperand& operand : operands) {
    if (operand.is_mine) {
      *out++ = mine(operand);
    } else {
      out = resolve_remote(operand, ends, op, out);
    }
  }
  return out;
}

std::uint64_t CpuMachine::scratch_destinations(const PlanOp& op, const PlanOperand* operand) {
  std::uint64_t mask = 0;
  int first = 0;
  for (const PlanOperand& destination : std::span(operand, op.destinations)) {
    const int n = destination.is_mine ? 1 : destination.ranks.n;
    for (int i = first; i < first + n && destination.space == Space::scratch; ++i) {
      if (i < 64) mask |= std::uint64_t{1} << static_cast<unsigned>(i);
    }
    first += n;
  }
  return mask;
}

void CpuMachine::resolve_all(const PlanOp& op, const PlanOperand* operand) {
  references_.clear();
  const auto* const destinations_end = resolve({operand, op.destinations}, senders_, op, destinations_.data());
  const auto* const sources_end = resolve({operand + op.destinations, op.sources}, receivers_, op, sources_.data());
  arguments_.destination_count = static_cast<int>(destinations_end - destinations_.data());
  arguments_.source_count = static_cast<int>(sources_end - sources_.data());
  // Slots and scratch are other ones next time.
  const bool is_lasting = std::all_of(operand, operand + op.destinations + op.sources, [](const PlanOperand& o) {
    return o.space == Space::input || o.space == Space::output;
  });
  resolved_ = {.op = is_lasting ? &op : nullptr,
               .input = mine_[static_cast<std::size_t>(Space::input)],
               .output = mine_[static_cast<std::size_t>(Space::output)]};
}

inline bool CpuMachine::is_resolved(const PlanOp& op) const {
  if (resolved_.op != &op || resolved_.input != mine_[static_cast<std::size_t>(Space::input)] ||
      resolved_.output != mine_[static_cast<std::size_t>(Space::output)]) {
    return false;
  }
  for (const KnownReference& known : references_) {
    if (reference_in(known.at + line_offset_) != known.value) return false;
  }
  return true;
}

bool CpuMachine::resolve_exchange(const PlanView& plan) {
  exchange_.ops = nullptr;
  if (has_links_) return false;  // it tells nobody
  const PlanOp* const ops = plan.ops();
  const PlanOperand* const operands = plan.operands();
  const PlanOperand& shown = operands[ops[0].first_operand];
  const PlanOperand& contribution = operands[ops[0].first_operand + 1];
  const PlanOperand& result = operands[ops[3].first_operand];
  const auto is_buffer = [](const PlanOperand& operand) {
    return operand.is_mine && (operand.space == Space::input || operand.space == Space::output);
  };
  const RankSet awaited = operands[ops[2].first_operand].ranks;
  const bool shows_a_line = (ops[1].marks & (mark_identifies | mark_exposes)) == mark_identifies;
  if (!shows_a_line || ops[0].shortcut != Shortcut::copy || ops[3].shortcut != Shortcut::reduce ||
      shown.space != Space::line || !is_buffer(contribution) || !is_buffer(result) ||
      awaited.n > kMostShortcutSources) {
    return false;
  }
  exchange_.source_count = 0;
  for (int i = 1; i <= ops[3].sources; ++i) {
    if (!append_source(operands[ops[3].first_operand + static_cast<std::uint32_t>(i)])) return false;
  }
  exchange_.awaited_count = awaited.n;
  for (int i = 0; i < awaited.n; ++i) {
    const int rank = awaited.at(i, ranks_);
    exchange_.awaited[static_cast<std::size_t>(i)] = {.rank = rank,
                                                      .lines = seats_[static_cast<std::size_t>(rank)].lines};
  }
  exchange_.contribution = mine(contribution);
  exchange_.bytes = static_cast<std::size_t>(ops[0].bytes);
  exchange_.offset = static_cast<std::size_t>(shown.offset);
  exchange_.result = mine(result);
  exchange_.result_bytes = static_cast<std::size_t>(ops[3].bytes);
  exchange_.announced_phase = ops[1].phase;
  exchange_.awaited_phase = ops[2].phase;
  exchange_.ops = ops;
  return true;
}

bool CpuMachine::append_source(const PlanOperand& operand) {
  const bool is_in_line = operand.space == Space::line;
  if (!is_in_line && !operand.is_mine) return false;
  if (!is_in_line && operand.space != Space::input && operand.space != Space::output) return false;
  for (int i = 0; i < operand.ranks.n; ++i) {
    if (exchange_.source_count == exchange_.sources.size()) return false;
    const auto rank = static_cast<std::size_t>(operand.ranks.at(i, ranks_));
    const std::byte* const address = is_in_line ? seats_[rank].lines->payload.data() + operand.offset : mine(operand);
    exchange_.sources[exchange_.source_count++] = {.address = address, .in_line = is_in_line ? ~std::size_t{0} : 0};
  }
  return true;
}

void CpuMachine::move_scaled(const PlanOp& op, const PlanOperand* operand) {
  resolve_all(op, operand);
  resolved_ = {};  // the pointers move on, piece by piece
  const std::byte** scaled = sources_.data();
  for (const PlanOperand* source = operand + op.destinations; !(source->is_mine && source->space == Space::input);
       ++source) {
    scaled += source->is_mine ? 1 : source->ranks.n;
  }
  alignas(kCacheLine) std::array<std::byte, 8 * 1024> piece;
  arguments_.is_final = false;
  arguments_.streamed = 0;
  for (std::size_t rest = static_cast<std::size_t>(op.bytes); rest > 0; rest -= arguments_.bytes) {
    arguments_.bytes = std::min(rest, piece.size());
    const std::byte* const unscaled = *scaled;
    scale_(piece.data(), unscaled, arguments_.bytes, factor_);
    *scaled = piece.data();
    kernel_(arguments_);
    *scaled = unscaled;
    for (int i = 0; i < arguments_.source_count; ++i) sources_[static_cast<std::size_t>(i)] += arguments_.bytes;
    for (int i = 0; i < arguments_.destination_count; ++i)
      destinations_[static_cast<std::size_t>(i)] += arguments_.bytes;
  }
}

template <class Pointer>
void CpuMachine::find_far(std::span<const PlanOperand> operands, const std::vector<Pointer>& addresses,
                          std::vector<Far>& far) const {
  far.clear();
  std::size_t at = 0;
  for (const PlanOperand& operand : operands) {
    const bool is_buffer = operand.space == Space::input || operand.space == Space::output;
    const int n = operand.is_mine ? 1 : operand.ranks.n;
    int rank = operand.ranks.first;
    for (int i = 0; i < n; ++i, ++at) {
      if (!operand.is_mine && is_buffer && rank != rank_) {
        far.push_back({.at = at,
                       .process = processes_[static_cast<std::size_t>(rank)],
                       .address = const_cast<std::byte*>(addresses[at])});
      }
      rank = operand.ranks.after(rank, ranks_);
    }
  }
}

/// What this operation announces after a copy that failed is below every flag, so no peer goes on with it.
/// Engine::walk does not take the operation for complete.
bool CpuMachine::is_copied(const Status& copied) {
  if (copied.is_ok()) return true;
  if (failure_.is_ok()) {
    failure_ =
        error(copied.code(), "{} in operation {}: {}", domain_.name_of(rank_), flag_base_ >> 16U, copied.message());
  }
  flag_base_ = 0;
  return false;
}

void CpuMachine::move_between_processes(const PlanOp& op, const PlanOperand* operand) {
  resolve_all(op, operand);
  resolved_ = {};  // the pointers move on, piece by piece
  find_far({operand, op.destinations}, destinations_, far_destinations_);
  find_far({operand + op.destinations, op.sources}, sources_, far_sources_);
  arguments_.bytes = static_cast<std::size_t>(op.bytes);
  arguments_.is_final = (op.marks & mark_final) != 0;
  arguments_.streamed = (op.marks & mark_streams) != 0 ? kAllDestinations : 0;
  if (far_sources_.empty() && far_destinations_.empty()) return kernel_(arguments_);
  // A copy between one place here and one there needs no memory between them. An instrument's kernel sees every MOVE.
  const bool is_one_copy = arguments_.source_count == 1 && arguments_.destination_count == 1 &&
                           far_sources_.size() + far_destinations_.size() == 1 && !arguments_.is_final &&
                           arguments_.context == nullptr;
  if (!is_one_copy) return move_in_pieces();
  (void)is_copied(far_destinations_.empty() ? read_memory_of(far_sources_.front().process, destinations_.front(),
                                                             sources_.front(), arguments_.bytes)
                                            : write_memory_of(far_destinations_.front().process, sources_.front(),
                                                              destinations_.front(), arguments_.bytes));
}

/// Reads pieces of far sources into memory here, runs the kernel, and writes its result to far destinations: from a
/// near one, or from memory here.
void CpuMachine::move_in_pieces() {
  near_destinations_.clear();
  auto far = far_destinations_.begin();
  for (std::size_t at = 0; at < static_cast<std::size_t>(arguments_.destination_count); ++at) {
    if (far != far_destinations_.end() && far->at == at) {
      ++far;
    } else {
      near_destinations_.push_back(destinations_[at]);
    }
  }
  const bool keeps_result = near_destinations_.empty();
  const std::size_t kept = far_sources_.size() + (keeps_result ? 1 : 0);
  const std::size_t bytes = arguments_.bytes;
  const std::size_t piece =
      std::min(bytes, std::max(kLeastPiece, kMostKept / std::max<std::size_t>(kept, 1) / kLeastPiece * kLeastPiece));
  if (pieces_.size() < kept * piece) pieces_.resize(kept * piece);
  std::byte* const result = pieces_.data() + far_sources_.size() * piece;
  if (keeps_result) near_destinations_.push_back(result);
  arguments_.destinations = near_destinations_.data();
  arguments_.destination_count = static_cast<int>(near_destinations_.size());
  bool is_whole = true;
  for (std::size_t from = 0; from < bytes && is_whole; from += piece) {
    arguments_.bytes = std::min(piece, bytes - from);
    for (std::size_t i = 0; i < far_sources_.size(); ++i) {
      const Far& source = far_sources_[i];
      std::byte* const here = pieces_.data() + i * piece;
      sources_[source.at] = here;
      is_whole = is_whole && is_copied(read_memory_of(source.process, here, source.address + from, arguments_.bytes));
    }
    if (!is_whole) break;
    kernel_(arguments_);
    for (const Far& destination : far_destinations_) {
      is_whole = is_whole && is_copied(write_memory_of(destination.process, near_destinations_.front(),
                                                       destination.address + from, arguments_.bytes));
    }
    for (int i = 0; i < arguments_.source_count; ++i) sources_[static_cast<std::size_t>(i)] += arguments_.bytes;
    if (keeps_result) continue;
    for (std::byte*& destination : near_destinations_) destination += arguments_.bytes;
  }
  arguments_.destinations = destinations_.data();
}

void CpuMachine::move_by_kernel(const PlanOp& op, const PlanOperand* operand) {
  if ((op.marks & mark_scales) != 0) [[unlikely]]
    return move_scaled(op, operand);
  if (copies_once_ && !processes_.empty()) return move_between_processes(op, operand);
  if (!is_resolved(op)) resolve_all(op, operand);
  arguments_.bytes = static_cast<std::size_t>(op.bytes);
  arguments_.is_final = (op.marks & mark_final) != 0;
  arguments_.streamed = (op.marks & mark_streams) != 0 ? kAllDestinations : 0;
  if ((op.marks & mark_stages) != 0 && streams_staging_) arguments_.streamed |= scratch_destinations(op, operand);
  kernel_(arguments_);
}

void CpuMachine::close_channels(const PlanOp& op, const PlanOperand* operand) {
  for (int i = 0; i < op.destinations + op.sources; ++i, ++operand) {
    if (operand->space != Space::channel) continue;
    const auto peer = static_cast<std::size_t>(operand->ranks.first);
    if (i < op.destinations) {
      ChannelEnd& end = senders_[peer];
      SlotHeader& header = slot(end);
      header.bytes = static_cast<std::uint64_t>(op.rest_bytes);
      header.hash = static_cast<std::uint32_t>(hash_);
      header.message.store(end.slices + 1, std::memory_order_release);
      pass(end);
      if (has_links_) [[unlikely]]
        publish_over_link(op, *operand);
    } else {
      ChannelEnd& end = receivers_[peer];
      end.memory.consumed->store(end.slices + 1, std::memory_order_release);
      pass(end);
      if (has_links_) [[unlikely]]
        release_over_link(operand->ranks.first);
    }
  }
}

void CpuMachine::announce_over_links(RankSet to) {
  int rank = to.first;
  for (int i = 0; i < to.n; ++i, rank = to.after(rank, ranks_)) {
    Link* const link = links_[static_cast<std::size_t>(rank)];
    if (link != nullptr) link->announce(static_cast<int>(line_offset_ / sizeof(FlagLine)));
  }
}

/// After the end has passed on. The last piece of a slice ends where the slice does.
void CpuMachine::publish_over_link(const PlanOp& op, const PlanOperand& operand) {
  const auto peer = static_cast<std::size_t>(operand.ranks.first);
  if (links_[peer] == nullptr) return;
  const bool is_inline = op.rest_bytes <= static_cast<std::int64_t>(SlotHeader::kInline);
  links_[peer]->publish(ChannelOf::collectives, senders_[peer].slices,
                        is_inline ? 0 : static_cast<std::size_t>(operand.offset + op.bytes));
}

void CpuMachine::release_over_link(int peer) {
  const auto index = static_cast<std::size_t>(peer);
  if (links_[index] != nullptr) links_[index]->release(ChannelOf::collectives, receivers_[index].slices);
}

Status CpuMachine::open_channels(const PlanView& plan) {
  if (!has_links_ || !plan.header().uses_channels) return {};
  for (std::uint32_t at = 0; at < plan.header().ops; ++at) {
    const PlanOp& op = plan.ops()[at];
    if (op.verb != Verb::move) continue;
    const PlanOperand* const operands = plan.operands() + op.first_operand;
    for (int i = 0; i < op.destinations + op.sources; ++i) {
      const int peer = operands[i].ranks.first;
      if (operands[i].space != Space::channel || !is_behind_link(peer)) continue;
      const bool is_sender = i < op.destinations;
      ChannelMemory& memory = (is_sender ? senders_ : receivers_)[static_cast<std::size_t>(peer)].memory;
      if (memory.slots == nullptr) memory = is_sender ? domain_.channel(rank_, peer) : domain_.channel(peer, rank_);
      if (memory.slots == nullptr) {
        return error(Code::resource, "no memory for a channel of {} slots of {} bytes with {}", domain_.shape().slots,
                     domain_.shape().slot_bytes, domain_.name_of(peer));
      }
    }
  }
  return {};
}

void CpuMachine::fail_on_length(int peer, std::uint64_t sent, std::int64_t expected) {
  failure_ =
      error(Code::mismatch, "{} and {} do not agree on operation {}, on a count: {} sends {} bytes, {} expects {}",
            domain_.name_of(rank_), domain_.name_of(peer), flag_base_ >> 16U, domain_.name_of(peer), sent,
            domain_.name_of(rank_), expected);
}

void CpuMachine::fail_on_mismatch(int peer) {
  disagrees_with_ = peer;
  failure_ = error(Code::mismatch,
                   "{} and {} do not agree on operation {}: collective, algorithm, root, count, dtype, op, placement "
                   "and buffer kind must be the same on all ranks",
                   domain_.name_of(rank_), domain_.name_of(peer), flag_base_ >> 16U);
}

}  // namespace tutti
