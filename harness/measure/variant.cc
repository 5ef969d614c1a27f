// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/variant.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "harness/machine/clock.h"
#include "harness/machine/flush.h"
#include "harness/measure/places.h"
#include "impl/types/scramble.h"

namespace tutti::harness::measure {
namespace {

/// Eight bytes after the others, in several chains: one alone would wait for its multiplications.
std::uint64_t fingerprint_of(std::span<const std::byte> bytes, std::uint64_t start) {
  constexpr std::size_t kChains = 8;
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  const auto mixed = [](std::uint64_t hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x9fb21c651e98df25ULL;
    return hash ^ (hash >> 32U);
  };
  std::array<std::uint64_t, kChains> chains{};
  chains[0] = start;
  std::size_t done = 0;
  for (std::array<std::uint64_t, kChains> words; done + sizeof words <= bytes.size(); done += sizeof words) {
    std::memcpy(words.data(), bytes.data() + done, sizeof words);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kChains; ++i) chains[i] = mixed(chains[i], words[i]);
  }
  for (std::size_t part = 0; done < bytes.size(); done += part) {
    part = std::min(kWord, bytes.size() - done);
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + done, part);
    chains[0] = mixed(chains[0], word);
  }
  std::uint64_t hash = 0;
  for (const std::uint64_t chain : chains) hash = mixed(hash, chain);
  return hash;
}

}  // namespace

std::int64_t longest_of(const RankTimes& times) {
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < times.leave_ns.size(); ++i) {
    longest = std::max(longest, times.leave_ns[i] - times.enter_ns[i]);
  }
  return longest;
}

std::size_t misalignment_of(const Case& one, std::uint64_t seed, int rank, Side side, bool takes_elements) {
  const std::string text = fmt::format("{} {} {} {}", case_id(one), seed, rank, static_cast<int>(side));
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a, the same everywhere
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  const std::size_t element = size_of(one.dtype);
  const std::size_t byte = takes_elements ? element : 1;
  const std::array<std::size_t, 5> choices{0, byte, 3 * byte, element, 3 * element};
  return choices[(hash >> 32U) % choices.size()];
}

Operation operation_of(const Cell& cell, std::uint64_t seed) {
  Operation operation{.problem = cell.problem(), .dtype = cell.dtype, .op = cell.op, .count = cell.count, .seed = seed};
  if (has_counts(cell.collective)) operation.blocks = std::make_shared<const CellBlocks>(blocks_of(cell));
  return operation;
}

Result<Variant> Variant::create(Runner& runner, const Request& request) {
  Variant variant(runner, request.instance, request.seed);
  variant.set_values(request.conditions.values);
  variant.is_asynchronous_ = request.is_asynchronous;
  variant.number_ = request.number;
  TUTTI_RETURN_IF_ERROR(variant.allocate(request));
  TUTTI_RETURN_IF_ERROR(variant.reserve_ends());
  TUTTI_RETURN_IF_ERROR(variant.prepare(request.backend));
  if (!variant.prepared_->is_in_order()) variant.ends_.clear();  // thread blocks are launched on no such stream
  for (int set = 1; set < request.rotation.sets; ++set) {
    Set before{.memory = std::move(variant.memory_), .prepared = std::move(variant.prepared_)};
    variant.memory_.clear();
    TUTTI_RETURN_IF_ERROR(variant.allocate(request));
    TUTTI_RETURN_IF_ERROR(variant.prepare(request.backend));
    variant.others_.push_back(std::move(before));
  }
  variant.filler_ = request.filler.first(static_cast<std::size_t>(request.rotation.filler_bytes));
  return variant;
}

Variant::Variant(Runner& runner, Case one, std::uint64_t seed)
    : runner_(&runner), case_(std::move(one)), seed_(seed), shape_(operation_of(case_, seed)) {}

void Variant::announce() {
  if (number_) runner_->set_case(*number_);
  runner_->announce(Activity::operation);
}

void Variant::take_next_set() {
  if (others_.empty()) return;
  others_.push_back({.memory = std::move(memory_), .prepared = std::move(prepared_), .salt = salt_});
  Set next = std::move(others_.front());
  others_.pop_front();
  memory_ = std::move(next.memory);
  prepared_ = std::move(next.prepared);
  salt_ = next.salt;
}

void Variant::next_set() {
  take_next_set();
  const std::size_t part = std::min(filler_.size() / static_cast<std::size_t>(sets()), filler_.size() - filler_read_);
  read_all(filler_.subspan(filler_read_, part));
  filler_read_ = filler_read_ + 2 * part > filler_.size() ? 0 : filler_read_ + part;
}

void Variant::refill_all(std::uint64_t salt) {
  for (int set = 0; set < sets(); ++set) {
    refill(salt);
    take_next_set();
  }
}

Status Variant::prepare(Backend& backend) {
  std::vector<RankBuffers> buffers;
  for (std::size_t i = 0; i < runner_->ranks().size(); ++i) {
    buffers.push_back({.input = input_of(i).data(),
                       .output = output_of(i).data(),
                       .memory = kind_of(i).kind(),
                       .stream = kind_of(i).stream(),
                       .local = static_cast<int>(i),
                       .around_input = memory_[i].input ? memory_[i].input->memory() : std::span<const std::byte>(),
                       .around_output = memory_[i].output.memory()});
  }
  TUTTI_ASSIGN_OR_RETURN(prepared_, is_asynchronous_ || !ends_.empty() ? backend.prepare_asynchronous(case_, buffers)
                                                                       : backend.prepare(case_, buffers));
  return {};
}

Status Variant::reserve_ends() {
  constexpr int kEnds = 2;
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    TUTTI_ASSIGN_OR_RETURN(auto instants, kind_of(i).instants(kEnds));
    if (instants == nullptr) return {};
    ends_.push_back(std::move(instants));
  }
  return {};
}

Status Variant::mark_ends() const {
  for (const auto& ends : ends_) TUTTI_RETURN_IF_ERROR(ends->mark());
  return {};
}

Status Variant::mark_begin(RankTimes& times) const {
  times.marking_ns = 0;
  if (ends_.empty()) return {};
  const std::int64_t since = runner_->now_ns();
  TUTTI_RETURN_IF_ERROR(mark_ends());
  times.marking_ns = runner_->now_ns() - since;
  return {};
}

Status Variant::read_ends(RankTimes& times) const {
  times.stream_us.clear();
  for (const auto& ends : ends_) {
    TUTTI_ASSIGN_OR_RETURN(const std::vector<double> intervals, ends->intervals_us());
    ends->restart();
    if (!intervals.empty()) times.stream_us.push_back(intervals.front());
  }
  return {};
}

std::span<std::byte> Variant::part_of(std::size_t index, Count first, Count elements) const {
  const std::size_t element = size_of(case_.dtype);
  return memory_[index].output.payload().subspan(static_cast<std::size_t>(first) * element,
                                                 static_cast<std::size_t>(elements) * element);
}

Status Variant::allocate(const Request& request) {
  for (std::size_t i = 0; i < runner_->ranks().size(); ++i) {
    const int rank = runner_->ranks()[i];
    const auto create = [&](Side side, Count elements) {
      constexpr std::size_t kLine = 64, kPage = 4096;
      const std::size_t asked = request.misalignment + static_cast<std::size_t>(request.conditions.misalign);
      const std::size_t shift =
          request.misaligns ? misalignment_of(case_, seed_, rank, side, request.takes_elements) : asked;
      return GuardedBuffer::create({.bytes = static_cast<std::size_t>(elements) * size_of(case_.dtype),
                                    .alignment = shift < kLine ? kLine : kPage,
                                    .misalignment = shift,
                                    .allocator = request.memory(case_, i)});
    };
    // Out of place, a rank without output has a block of poison, which must stay what it is.
    const Count inputs = shape_.input_elements(rank);
    const Count outputs = shape_.output_elements(rank);
    const Count spare = output_blocks(case_.problem(), rank) == 0 ? case_.count : outputs;
    const Count largest = case_.is_in_place ? std::max(inputs, outputs) : spare;
    TUTTI_ASSIGN_OR_RETURN(GuardedBuffer output, create(Side::output, has_data(case_.collective) ? largest : 0));
    Memory memory{.input = std::nullopt, .output = std::move(output)};
    if (!case_.is_in_place) {
      TUTTI_ASSIGN_OR_RETURN(memory.input, create(Side::input, inputs));
    }
    memory_.push_back(std::move(memory));
  }
  return {};
}

std::span<std::byte> Variant::input_of(std::size_t index) const {
  if (!case_.is_in_place) return memory_[index].input->payload();
  const int rank = runner_->ranks()[index];
  return part_of(index, std::max<Count>(0, shape_.shift_in_place(rank)), shape_.input_elements(rank));
}

std::span<std::byte> Variant::output_of(std::size_t index) const {
  const std::span<std::byte> memory = memory_[index].output.payload();
  if (!case_.is_in_place) return memory;
  const int rank = runner_->ranks()[index];
  return part_of(index, std::max<Count>(0, -shape_.shift_in_place(rank)), shape_.output_elements(rank));
}

InputSpec Variant::spec_of(std::size_t index) const {
  return {.dtype = case_.dtype,
          .op = case_.op,
          .ranks = case_.ranks,
          .rank = runner_->ranks()[index],
          .seed = seed_,
          .salt = salt_,
          .values = shape_.values};
}

bool Variant::is_covered(std::size_t index) const {
  return case_.is_in_place && input_of(index).size() == memory_[index].output.payload().size();
}

void Variant::refill(std::uint64_t salt) {
  salt_ = salt;
  for (std::size_t i = 0; i < memory_.size(); ++i) refill_rank(i);
}

void Variant::refill_rank(std::size_t index) {
  if (!is_covered(index)) kind_of(index).fill_poison(memory_[index].output.payload(), salt_);
  kind_of(index).fill_input(input_of(index), spec_of(index));
}

void Variant::poison_outputs() {
  for (const Memory& memory : memory_) {
    if (memory.input) memory.output.kind().fill_poison(memory.output.payload(), salt_);
  }
}

void Variant::poison_places(std::uint64_t draw) {
  const bool flushes = !others_.empty() && can_flush();  // those of a set that waits for its turn are in no cache
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    if (!memory_[i].input) continue;
    const std::span<std::byte> output = memory_[i].output.payload();
    const auto rank = static_cast<std::uint64_t>(runner_->ranks()[i]);
    harness::poison_places(
        output,
        {.draw = scramble(scramble(seed_) + draw) + rank, .salt = salt_, .flushes = flushes, .kind = kind_of(i)});
  }
}

std::int64_t Variant::buffer_bytes_here() const {
  std::size_t bytes = 0;
  for (const Memory& memory : memory_) {
    bytes += memory.output.payload().size() + (memory.input ? memory.input->payload().size() : 0);
  }
  return static_cast<std::int64_t>(bytes);
}

Status Variant::run(RankTimes& times, std::optional<int> late, std::int64_t late_ns) {
  const std::size_t count = memory_.size();
  times.enter_ns.assign(count, 0);
  times.leave_ns.assign(count, 0);
  std::size_t pending = count;
  std::size_t unposted = 0;
  const auto post = [&](std::size_t index) {
    times.enter_ns[index] = runner_->now_ns();
    return prepared_->post(index);
  };
  // A late rank is posted while others are under way: what it takes on its stream is then not the operation's.
  const bool marks_ends = !late;
  if (marks_ends) TUTTI_RETURN_IF_ERROR(mark_begin(times));
  const std::int64_t begin = runner_->now_ns();
  if (count > 1) TUTTI_RETURN_IF_ERROR(prepared_->begin_posts());
  for (std::size_t i = 0; i < count; ++i) {
    if (late == runner_->ranks()[i]) {
      ++unposted;
    } else {
      TUTTI_RETURN_IF_ERROR(post(i));
    }
  }
  if (count > 1) TUTTI_RETURN_IF_ERROR(prepared_->end_posts());
  if (marks_ends) TUTTI_RETURN_IF_ERROR(mark_ends());
  const auto look = [&]() -> Result<Turn> {
    for (std::size_t i = 0; i < count; ++i) {
      if (times.leave_ns[i] != 0) continue;
      if (times.enter_ns[i] == 0) {
        if (runner_->now_ns() < begin + late_ns) continue;
        --unposted;
        TUTTI_RETURN_IF_ERROR(post(i));
      }
      TUTTI_ASSIGN_OR_RETURN(const bool is_done, prepared_->test(i));
      if (!is_done) continue;
      times.leave_ns[i] = runner_->now_ns();
      --pending;
    }
    if (pending == 0) return Turn::done;
    return unposted == 0 ? Turn::idle : Turn::busy;
  };
  Deadline deadline(runner_->board(), deadline_after(begin));
  TUTTI_RETURN_IF_ERROR(
      runner_->poll(look, [&] { return deadline.has_passed(runner_->now_ns()) ? overdue(times) : Status(); }));
  took_ns_ = longest_of(times);
  TUTTI_RETURN_IF_ERROR(read_ends(times));
  return prepared_->settle();
}

Status Variant::run_overlapped(RankTimes& times, const Compute& compute, int calls) {
  times.enter_ns.assign(1, runner_->now_ns());
  TUTTI_RETURN_IF_ERROR(prepared_->post(0));
  bool is_done = false;
  for (int part = 0; part <= calls; ++part) {
    compute(part, calls + 1);
    if (part == calls || is_done) continue;
    TUTTI_ASSIGN_OR_RETURN(is_done, prepared_->test(0));
  }
  times.leave_ns.assign(1, 0);
  Deadline deadline(runner_->board(), deadline_after(runner_->now_ns()));
  const auto look = [&]() -> Result<Turn> {
    if (!is_done) {
      TUTTI_ASSIGN_OR_RETURN(is_done, prepared_->test(0));
    }
    return is_done ? Turn::done : Turn::idle;
  };
  TUTTI_RETURN_IF_ERROR(
      runner_->poll(look, [&] { return deadline.has_passed(runner_->now_ns()) ? overdue(times) : Status(); }));
  times.leave_ns.front() = runner_->now_ns();
  return prepared_->settle();
}

std::int64_t Variant::deadline_after(std::int64_t begin_ns) const {
  return begin_ns + runner_->timeout().count() + runner_->grace().count();
}

Status Variant::overdue(const RankTimes& times) const {
  const auto late = std::find(times.leave_ns.begin(), times.leave_ns.end(), 0);
  const auto index = static_cast<std::size_t>(late - times.leave_ns.begin());
  return error(Code::timeout, "rank {} does not end {}: {}{}", runner_->ranks()[index], case_id(case_),
               prepared_->position(index), prepared_->report());
}

std::vector<std::uint64_t> Variant::fingerprints() const {
  std::vector<std::uint64_t> all;
  for (const Memory& memory : memory_) {
    all.push_back(fingerprint_of(memory.output.kind().view(memory.output.memory()).bytes(), 0));
    if (memory.input) {
      all.back() = fingerprint_of(memory.input->kind().view(memory.input->memory()).bytes(), all.back());
    }
  }
  return all;
}

std::vector<std::uint64_t> Variant::result_fingerprints() const {
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    const bool has_result = output_blocks(case_.problem(), runner_->ranks()[i]) > 0;
    all.push_back(has_result ? fingerprint_of(kind_of(i).view(output_of(i)).bytes(), 0) : 0);
  }
  return all;
}

std::vector<std::byte> Variant::result_bytes(std::size_t index) const {
  if (output_blocks(case_.problem(), runner_->ranks()[index]) == 0) return {};
  const HostView view = kind_of(index).view(output_of(index));
  return {view.bytes().begin(), view.bytes().end()};
}

void Variant::flush_buffers() const {
  for (const Memory& memory : memory_) {
    memory.output.kind().flush(memory.output.payload());
    if (memory.input) memory.input->kind().flush(memory.input->payload());
  }
}

Status Variant::linger(std::int64_t time_ns) {
  return runner_->look_for(time_ns, [this] {
    for (std::size_t i = 0; i < memory_.size(); ++i) TUTTI_RETURN_IF_ERROR(prepared_->test(i).status());
    return Status();
  });
}

void Variant::restore_guards() {
  for (Memory& memory : memory_) {
    memory.output.restore_guards();
    if (memory.input) memory.input->restore_guards();
  }
}

CheckResult Variant::verify_input(const Operation& operation, std::size_t index) const {
  const std::span<std::byte> input = input_of(index);
  const std::span<std::byte> output = output_of(index);
  const int rank = runner_->ranks()[index];
  if (!case_.is_in_place || output.empty()) {
    return kind_of(index).verify_input_unchanged(operation, {.rank = rank, .bytes = input});
  }
  if (input.size() <= output.size()) return {};  // the output covers it
  const std::size_t begin = static_cast<std::size_t>(output.data() - input.data());
  std::vector<std::byte> rest(input.size());
  kind_of(index).read(rest, input.data());
  fill_input(std::span(rest).subspan(begin, output.size()), spec_of(index),
             static_cast<Count>(begin / size_of(case_.dtype)));
  return verify_input_unchanged(operation, {.rank = rank, .bytes = rest});
}

Damage Variant::verify_rounding(std::size_t index, Count most, Accuracy& accuracy) const {
  Operation operation = shape_;
  operation.salt = salt_;
  const int rank = runner_->ranks()[index];
  const HostView output = kind_of(index).view(output_of(index));
  const CheckResult result = verify_rounded(operation, {.rank = rank, .bytes = output.bytes()}, &accuracy, most);
  if (result.is_ok()) return {};
  return {.wrong = result.wrong,
          .text = fmt::format("rank {}: output: {}", rank, result.text()),
          .tells_cause = result.tells_cause,
          .wrong_outputs = 1,
          .wrong_rank = rank};
}

Damage Variant::verify(const Sight& sight) const { return verify_ranks(0, memory_.size(), sight); }

std::vector<CheckResult> Variant::verify_outputs(const Operation& operation, std::size_t first, std::size_t end) const {
  Oracle oracle(operation);
  std::vector<CheckResult> results;
  for (std::size_t i = first; i < end;) {
    const auto* const verifier = kind_of(i).verifier();
    std::vector<RankBuffer> together;
    std::size_t next = i;
    do {
      together.push_back({.rank = runner_->ranks()[next], .bytes = output_of(next)});
      ++next;
    } while (next < end && verifier != nullptr && kind_of(next).verifier() == verifier);
    std::ranges::move(kind_of(i).verify_outputs(oracle, together), std::back_inserter(results));
    i = next;
  }
  return results;
}

Damage Variant::verify_ranks(std::size_t first, std::size_t end, const Sight& sight) const {
  Damage damage;
  const auto note = [&damage](std::int64_t wrong, std::string text, bool tells_cause) {
    if (damage.wrong == 0 || (tells_cause && !damage.tells_cause)) {
      damage.text = std::move(text);
      damage.tells_cause = tells_cause;
    }
    damage.wrong += wrong;
  };
  Operation operation = shape_;
  operation.salt = salt_;
  std::vector<CheckResult> outputs;
  if (sight.outputs && has_data(case_.collective)) outputs = verify_outputs(operation, first, end);
  for (std::size_t i = first; i < end; ++i) {
    const int rank = runner_->ranks()[i];
    const Memory& memory = memory_[i];
    if (!outputs.empty()) {
      const CheckResult& output = outputs[i - first];
      if (!output.is_ok()) {
        if (damage.wrong_outputs++ == 0) damage.wrong_rank = rank;
        note(output.wrong, fmt::format("rank {}: output: {}", rank, output.text()), output.tells_cause);
      }
    }
    if (sight.outputs && operation.blocks != nullptr && output_blocks(operation.problem, rank) > 0) {
      const CheckResult gaps = kind_of(i).verify_gaps(operation, {.rank = rank, .bytes = output_of(i)}, is_covered(i));
      if (!gaps.is_ok()) note(gaps.wrong, fmt::format("rank {}: output: {}", rank, gaps.text()), gaps.tells_cause);
    }
    if (sight.inputs && has_data(case_.collective)) {
      const CheckResult input = verify_input(operation, i);
      if (!input.is_ok()) {
        note(input.wrong, fmt::format("rank {}: the input was overwritten: {}", rank, input.text()), true);
      }
    }
    const auto check_guards = [&](const char* name, const GuardedBuffer& buffer) {
      if (const auto guard = buffer.check_guards()) {
        note(1, fmt::format("rank {}: {}: {}", rank, name, guard->text(buffer.payload().size())), true);
      }
    };
    if (const std::string flaw = sight.outputs ? prepared_->flaw(i) : ""; !flaw.empty()) {
      note(1, fmt::format("rank {}: {}", rank, flaw), true);
    }
    if (sight.guards) check_guards("output", memory.output);
    if (sight.guards && memory.input) check_guards("input", *memory.input);
  }
  return damage;
}

}  // namespace tutti::harness::measure
