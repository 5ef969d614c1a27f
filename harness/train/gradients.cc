// SPDX-License-Identifier: Apache-2.0
#include "harness/train/gradients.h"

#include <algorithm>
#include <array>

#include "harness/cases/lists.h"
#include "harness/machine/clock.h"
#include "harness/train/network.h"
#include "impl/prove/prove.h"
#include "impl/types/names.h"

namespace tutti::harness::train {
namespace {

constexpr std::array<std::string_view, 4> kWays{"per-parameter", "buckets", "overlapped", "ring"};

/// Part `index` of `parts` of a piece: the lengths differ by one at most.
Piece chunk_of(const Piece& piece, int index, int parts) {
  const auto edge = [&](int at) {
    return piece.count * static_cast<std::size_t>(at) / static_cast<std::size_t>(parts);
  };
  return {.first = piece.first + edge(index), .count = edge(index + 1) - edge(index)};
}

/// Whether some MOVE adds up fewer than all ranks.
bool adds_parts(const Schedule& schedule) {
  const int ranks = schedule.problem.ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int index = 0; index < schedule.step_count(rank); ++index) {
      int sources = 0;
      for (const Operand& operand : schedule.step(rank, index).sources) sources += operand.ranks.n;
      if (sources > 1 && sources < ranks) return true;
    }
  }
  return false;
}

}  // namespace

std::string_view to_string(Way way) { return kWays[static_cast<std::size_t>(way)]; }

Result<std::vector<Way>> parse_ways(std::string_view text) {
  const std::array all{Way::per_parameter, Way::buckets, Way::overlapped, Way::ring};
  if (text == kAll) return std::vector(all.begin(), all.end());
  TUTTI_ASSIGN_OR_RETURN(const auto names, split_list("ways", text));
  std::vector<Way> ways;
  for (const std::string_view name : names) {
    const auto found = std::ranges::find_if(kWays, [&](std::string_view way) { return is_same_name(name, way); });
    if (found == kWays.end()) {
      std::vector<std::string> candidates(kWays.begin(), kWays.end());
      candidates.emplace_back(kAll);
      return unknown_name("way", name, candidates);
    }
    append_new(ways, all[static_cast<std::size_t>(found - kWays.begin())]);
  }
  return ways;
}

Result<bool> adds_serially(const Algorithm& algorithm, int ranks) {
  if (ranks <= 2) return true;  // one addition, whose operands may change places
  const Schedule schedule = schedule_of(algorithm, {.collective = Collective::all_reduce, .ranks = ranks});
  if (adds_parts(schedule)) return false;
  TUTTI_ASSIGN_OR_RETURN(const ScheduleProof proof, prove_schedule(schedule));
  return proof.labels.keeps_order;
}

std::vector<Piece> pieces_of(Way way, std::size_t bucket_bytes) {
  std::vector<Piece> pieces;
  for (const Tensor& tensor : kTensors) {
    const bool has_room = !pieces.empty() && way != Way::per_parameter &&
                          (pieces.back().count + tensor.count) * sizeof(float) <= bucket_bytes;
    if (!has_room) pieces.push_back({.first = tensor.first, .count = 0});
    pieces.back().count += tensor.count;
  }
  return pieces;
}

Averager::Averager(Group& group, const Runner& runner, Plan plan, std::span<float> gradients)
    : group_(group), runner_(runner), plan_(std::move(plan)), gradients_(gradients), over_ns_(monotonic_ns()) {
  for (const Piece& piece : plan_.pieces) {
    operations_.push_back({.problem = {.collective = Collective::all_reduce, .ranks = group.ranks()},
                           .dtype = Dtype::f32,
                           .op = Op::sum,
                           .count = static_cast<Count>(piece.count)});
  }
}

GroupCall Averager::call_for(std::size_t piece) const {
  float* const at = gradients_.data() + plan_.pieces[piece].first;
  GroupCall call{.what = operations_[piece], .input = at, .output = at, .is_in_place = true, .buffers = plan_.buffers};
  if (const Algorithm* const algorithm = plan_.algorithms[piece]) {
    const auto all = algorithms_of(Collective::all_reduce);
    const auto index = std::ranges::find(all, algorithm) - all.begin();
    call.algorithm = static_cast<std::uint64_t>(index) + all.size();  // counted round: 0 would be the system's choice
  }
  return call;
}

Status Averager::supports() const {
  if (plan_.way == Way::ring) return {};
  for (std::size_t piece = 0; piece < plan_.pieces.size(); ++piece) {
    TUTTI_RETURN_IF_ERROR(group_.supports(call_for(piece)));
  }
  return {};
}

void Averager::begin_step(std::size_t step) {
  step_ = step;
  posted_ = 0;
  pending_.clear();
}

Status Averager::wait(Pending& pending) const { return pending.wait(runner_.timeout() + runner_.grace()); }

Status Averager::post(std::size_t piece) {
  note(to_string(Collective::all_reduce), plan_.pieces[piece].count);
  TUTTI_ASSIGN_OR_RETURN(auto pending, group_.post(call_for(piece)));
  pending_.push_back(std::move(pending));
  ++posted_;
  return {};
}

Status Averager::on_filled(std::size_t count) {
  if (plan_.way != Way::overlapped) return {};
  while (posted_ < plan_.pieces.size() && plan_.pieces[posted_].first + plan_.pieces[posted_].count <= count) {
    TUTTI_RETURN_IF_ERROR(post(posted_));
    note_end();
  }
  return {};
}

Status Averager::on_pause() {
  std::erase_if(pending_, [](const auto& pending) { return pending == nullptr; });
  for (auto& pending : pending_) {
    TUTTI_ASSIGN_OR_RETURN(const bool is_done, pending->test());
    if (is_done) pending.reset();
  }
  return {};
}

Status Averager::finish() {
  for (std::size_t piece = posted_; piece < plan_.pieces.size(); ++piece) {
    if (plan_.way == Way::ring) {
      TUTTI_RETURN_IF_ERROR(reduce_in_ring(plan_.pieces[piece]));
      continue;
    }
    TUTTI_RETURN_IF_ERROR(post(piece));
    if (plan_.way == Way::overlapped) continue;
    TUTTI_RETURN_IF_ERROR(wait(*pending_.back()));
    pending_.clear();
    note_end();
  }
  for (const auto& pending : pending_) {
    if (pending != nullptr) TUTTI_RETURN_IF_ERROR(wait(*pending));
  }
  pending_.clear();
  note_end();
  return {};
}

Status Averager::pass_on(std::span<const float> chunk, std::span<float> into) {
  const int ranks = group_.ranks(), rank = group_.rank();
  std::unique_ptr<Pending> sent, received;
  note(to_string(Collective::sendrecv), std::max(chunk.size(), into.size()));
  if (!chunk.empty()) {
    TUTTI_ASSIGN_OR_RETURN(sent, group_.post_send({.buffer = chunk.data(),
                                                   .count = static_cast<Count>(chunk.size()),
                                                   .dtype = Dtype::f32,
                                                   .peer = (rank + 1) % ranks}));
  }
  if (!into.empty()) {
    TUTTI_ASSIGN_OR_RETURN(received, group_.post_recv({.buffer = into.data(),
                                                       .count = static_cast<Count>(into.size()),
                                                       .dtype = Dtype::f32,
                                                       .peer = (rank + ranks - 1) % ranks}));
  }
  if (received != nullptr) TUTTI_RETURN_IF_ERROR(wait(*received));
  if (sent != nullptr) TUTTI_RETURN_IF_ERROR(wait(*sent));
  note_end();
  return {};
}

// P = 3, what rank 0 sends and gets (chunks 0, 1, 2):
//   send 0, get 2, add | send 2, get 1, add: chunk 1 is complete | send 1, get 0 | send 0, get 2
Status Averager::reduce_in_ring(const Piece& piece) {
  const int ranks = group_.ranks(), rank = group_.rank();
  const auto chunk = [&](int index) {
    const Piece part = chunk_of(piece, (index + 2 * ranks) % ranks, ranks);
    return gradients_.subspan(part.first, part.count);
  };
  for (int step = 0; step + 1 < ranks; ++step) {
    const auto to = chunk(rank - step - 1);
    received_.resize(to.size());
    TUTTI_RETURN_IF_ERROR(pass_on(chunk(rank - step), received_));
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += received_[i];
  }
  for (int step = 0; step + 1 < ranks; ++step) {
    TUTTI_RETURN_IF_ERROR(pass_on(chunk(rank + 1 - step), chunk(rank - step)));
  }
  return {};
}

void Averager::note(std::string_view operation, std::size_t count) {
  if (calls_ == nullptr) return;
  calls_->push_back({.step = step_,
                     .operation = operation,
                     .bytes = count * sizeof(float),
                     .gap_us = static_cast<double>(monotonic_ns() - over_ns_) * 1e-3});
}

void Averager::note_end() {
  if (calls_ != nullptr) over_ns_ = monotonic_ns();
}

}  // namespace tutti::harness::train
