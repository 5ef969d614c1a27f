// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/device_verifier.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "harness/verify/buffers.h"
#include "harness/verify/comparison.h"
#include "harness/verify/diagnose.h"
#include "harness/verify/input_streams.h"
#include "harness/verify/special_values.h"

namespace tutti::harness::verify {
namespace {

constexpr std::uint64_t kIndices = std::uint64_t{1} << 32U;  // with one upper half

void expect(const Status& status) { TUTTI_ASSERT(status.is_ok(), "the device verifies no more: {}", status.message()); }
template <class T>
T expect(Result<T> result) {
  expect(result.status());
  return std::move(result).value();
}

ValueKind kind_of(Values values, Dtype dtype, Op op) {
  if (values == Values::special && !is_integer(dtype)) return ValueKind::special;
  return is_rounded(values, dtype, op) ? ValueKind::random : ValueKind::exact;
}

/// The bytes of the table; none where values are not special.
std::vector<std::byte> table_of(ValueKind kind, Dtype dtype, Op op) {
  if (kind != ValueKind::special) return {};
  return visit_dtype(dtype, [op]<class T>(std::type_identity<T>) -> std::vector<std::byte> {
    if constexpr (std::is_integral_v<T>) {
      return {};
    } else {
      const SpecialTable<T> table = special_table<T>(op);
      const auto bytes = std::as_bytes(std::span(&table, 1));
      return {bytes.begin(), bytes.end()};
    }
  });
}

/// Where an element of an input lies: which rank's, and its index there.
struct Source {
  int rank;
  Count first;
};

/// A comparison as it is put together.
class Builder {
 public:
  explicit Builder(const Operation& operation) : operation_(operation) {
    comparing_.work.ranks = operation.problem.ranks;
    for (Count parity : {0, 1}) {
      comparing_.work.poison[parity] = poison_bits(operation.dtype, operation.salt, parity);
    }
    const ValueKind kind = kind_of(operation.values, operation.dtype, operation.op);
    comparing_.work.kind = kind;
    table_ = table_of(kind, operation.dtype, operation.op);
  }

  /// Elements [0, elements) of all members should be what comes of the sources.
  void add(Expectation expectation, Count elements, std::span<const Source> sources,
           std::span<const CompareMember> members, bool is_any_nan_right) {
    Count done = 0;
    while (done < elements) {
      Count part = elements - done;
      for (const Source& source : sources) {
        const auto index = static_cast<std::uint64_t>(source.first + done);
        part = std::min(part, static_cast<Count>(kIndices - index % kIndices));
      }
      comparing_.pieces.push_back({.first_chunk = comparing_.work.chunks,
                                   .elements = part,
                                   .first_source = static_cast<std::int32_t>(comparing_.sources.size()),
                                   .sources = static_cast<std::int32_t>(sources.size()),
                                   .first_member = static_cast<std::int32_t>(comparing_.members.size()),
                                   .members = static_cast<std::int32_t>(members.size()),
                                   .expectation = expectation,
                                   .is_any_nan_right = is_any_nan_right});
      comparing_.work.chunks += (part + CompareWork::kChunk - 1) / CompareWork::kChunk;
      for (const Source& source : sources) {
        const auto index = static_cast<std::uint64_t>(source.first + done);
        comparing_.sources.push_back(
            {.stream = stream(source.rank, index / kIndices), .first = static_cast<std::uint32_t>(index)});
      }
      for (CompareMember member : members) {
        member.at += static_cast<std::size_t>(done) * size_of(operation_.dtype);
        member.index += done;
        comparing_.members.push_back(member);
      }
      done += part;
    }
  }

  void run(DeviceRunner& runner, std::span<CompareRecord> records) {
    if (comparing_.work.chunks == 0) return;
    expect(runner.compare({.dtype = operation_.dtype, .op = operation_.op, .table = table_}, comparing_, records));
  }

 private:
  std::int32_t stream(int rank, std::uint64_t index_high) {
    const auto [place, is_new] =
        streams_.try_emplace({rank, index_high}, static_cast<std::int32_t>(comparing_.streams.size()));
    if (is_new) comparing_.streams.push_back(stream_of(input_of(operation_, rank), index_high));
    return place->second;
  }

  const Operation& operation_;
  Comparing comparing_;
  std::vector<std::byte> table_;
  std::map<std::pair<int, std::uint64_t>, std::int32_t> streams_;
};

/// Blocks that should all hold the same: what they are made of, their length, and where they lie.
using SameBlocks = std::map<std::tuple<int, int, int, Count>, std::vector<CompareMember>>;

SameBlocks same_blocks_of(const Operation& operation, std::span<const RankBuffer> outputs) {
  SameBlocks same;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const RankBuffer& output = outputs[i];
    for (int block = 0; block < output_blocks(operation.problem, output.rank); ++block) {
      const Place place = operation.output_place(output.rank, block);
      const Origin origin = origin_of(operation.problem, output.rank, block);
      if (place.count == 0) continue;
      same[{origin.first, origin.last, origin.block, place.count}].push_back(
          {.at = output.bytes.data() + static_cast<std::size_t>(place.first) * size_of(operation.dtype),
           .index = place.first,
           .record = static_cast<std::int32_t>(i)});
    }
  }
  return same;
}

Count elements_of_blocks(const Operation& operation, int rank) {
  Count elements = 0;
  for (int block = 0; block < output_blocks(operation.problem, rank); ++block) {
    elements += operation.output_place(rank, block).count;
  }
  return elements;
}

bool has_blocks_in_order(const Operation& operation, int rank) {
  Count end = 0;
  for (int block = 0; block < output_blocks(operation.problem, rank); ++block) {
    const Place place = operation.output_place(rank, block);
    if (place.count > 0 && place.first < end) return false;
    end = std::max(end, place.first + place.count);
  }
  return true;
}

/// What a check is where the device found nothing, or where it is only counted.
CheckResult counted(Count checked, const CompareRecord& record) {
  CheckResult result{.checked = checked, .wrong = static_cast<Count>(record.wrong)};
  if (record.wrong == 0) return result;
  result.first_bad = static_cast<Count>(record.first_bad);
  result.last_bad = static_cast<Count>(record.last_bad);
  return result;
}

/// A device that counts what the host finds right is broken, or its memory is.
constexpr const char* kDisagree =
    "the device counts other elements as wrong than the host: its verdict is not to be "
    "trusted";

/// The host's result of what the device found wrong, `wrong` elements of it.
CheckResult agreed(CheckResult host, Count wrong) {
  if (host.wrong == wrong) return host;
  host.wrong = std::max(host.wrong, wrong);
  host.diagnosis = kDisagree;
  host.tells_cause = false;
  return host;
}

/// What the host finds wrong in an output, from where the device found the first wrong element, until that is enough
/// for a diagnosis.
CheckResult diagnosed(Oracle& oracle, const RankBuffer& there, const Memory& memory, const CheckResult& result,
                      Count poisoned) {
  const Operation& operation = oracle.operation();
  const std::size_t element_bytes = size_of(operation.dtype);
  Comparison comparison(operation);
  const auto is_over = [&](Count index) {
    return index > result.last_bad || comparison.has_seen_enough() || comparison.result().wrong == result.wrong;
  };
  for (int block = 0; block < output_blocks(operation.problem, there.rank); ++block) {
    const Place place = operation.output_place(there.rank, block);
    for (Count first = 0; first < place.count; first += Oracle::kChunk) {
      const Count elements = std::min(Oracle::kChunk, place.count - first);
      const Count index = place.first + first;
      if (index + elements <= result.first_bad || is_over(index)) continue;
      const HostView here = memory.view(there.bytes.subspan(static_cast<std::size_t>(index) * element_bytes,
                                                            static_cast<std::size_t>(elements) * element_bytes));
      comparison.compare(index, oracle.expect({.rank = there.rank, .block = block, .first = first}, elements),
                         here.bytes());
    }
  }
  const CheckResult seen = comparison.result();
  if (seen.first_bad != result.first_bad || (seen.wrong != result.wrong && !comparison.has_seen_enough())) {
    CheckResult broken = result;
    broken.expected = seen.expected;
    broken.actual = seen.actual;
    broken.diagnosis = kDisagree;
    return broken;
  }
  comparison.take_counts(result, poisoned);
  std::optional<HostView> whole;
  return comparison.judged(operation, there.rank, [&]() -> std::span<const std::byte> {
    if (!whole) whole.emplace(memory.view(there.bytes));
    return whole->bytes();
  });
}

}  // namespace

void DeviceVerifier::fill_input(std::span<std::byte> there, const InputSpec& spec) const {
  const std::size_t element_bytes = size_of(spec.dtype);
  TUTTI_ASSERT(there.size() % element_bytes == 0, "{} bytes of {}", there.size(), to_string(spec.dtype));
  const ValueKind kind = kind_of(spec.values, spec.dtype, spec.op);
  const std::vector<std::byte> table = table_of(kind, spec.dtype, spec.op);
  const auto elements = static_cast<std::uint64_t>(there.size() / element_bytes);
  for (std::uint64_t done = 0; done < elements; done += kIndices) {
    expect(runner_->fill({.dtype = spec.dtype, .op = spec.op, .table = table},
                         {.at = there.data() + done * element_bytes,
                          .elements = static_cast<std::int64_t>(std::min(elements - done, kIndices)),
                          .kind = kind,
                          .stream = stream_of(spec, done / kIndices)}));
  }
}

void DeviceVerifier::fill_poison(std::span<const std::span<std::byte>> parts, std::uint64_t salt) const {
  std::vector<PoisonPart> there;
  for (const std::span<std::byte>& part : parts) {
    if (!part.empty()) there.push_back({.at = part.data(), .bytes = static_cast<std::int64_t>(part.size())});
  }
  if (!there.empty()) expect(runner_->fill_poison(there, poison_word(salt)));
}

namespace {

GuardWork guard_work(std::span<const GuardZone> zones) {
  GuardWork work;
  TUTTI_ASSERT(zones.size() <= std::size(work.parts), "{} zones", zones.size());
  for (const GuardZone& zone : zones) {
    work.parts[work.count++] = {.at = zone.there.data(),
                                .bytes = static_cast<std::int64_t>(zone.there.size()),
                                .offset = static_cast<std::int64_t>(zone.offset)};
  }
  return work;
}

}  // namespace

void DeviceVerifier::fill_guards(std::span<const GuardZone> zones) const {
  expect(runner_->write_guards(guard_work(zones)));
}

std::optional<std::size_t> DeviceVerifier::guard_damage(std::span<const GuardZone> zones) const {
  const std::uint64_t damage = expect(runner_->find_damage(guard_work(zones)));
  if (damage == GuardWork::kNone) return std::nullopt;
  return static_cast<std::size_t>(damage);
}

std::vector<CheckResult> DeviceVerifier::verify_outputs(Oracle& oracle, std::span<const RankBuffer> there,
                                                        const Memory& memory) const {
  const Operation& operation = oracle.operation();
  if (operation.is_rounded()) return memory.Memory::verify_outputs(oracle, there);
  const std::size_t element_bytes = size_of(operation.dtype);
  Builder builder(operation);
  std::vector<Count> checked;
  std::vector<Source> sources;
  for (std::size_t i = 0; i < there.size(); ++i) {
    const RankBuffer& output = there[i];
    const auto elements = static_cast<Count>(output.bytes.size() / element_bytes);
    if (output_blocks(operation.problem, output.rank) == 0) {
      checked.push_back(elements);
      const CompareMember member{.at = output.bytes.data(), .record = static_cast<std::int32_t>(i)};
      builder.add(Expectation::poison, elements, {}, std::span(&member, 1), false);
      continue;
    }
    checked.push_back(elements_of_blocks(operation, output.rank));
    TUTTI_ASSERT(elements == operation.output_elements(output.rank), "{} bytes for {} elements", output.bytes.size(),
                 operation.output_elements(output.rank));
  }
  for (const auto& [what, members] : same_blocks_of(operation, there)) {
    const auto& [first, last, block, count] = what;
    const bool is_copy = operation.is_copy_of(last - first + 1);
    sources.clear();
    for (int rank = first; rank <= (is_copy ? first : last); ++rank) {
      sources.push_back({.rank = rank, .first = operation.input_place(rank, block).first});
    }
    builder.add(is_copy ? Expectation::copied : Expectation::reduced, count, sources, members,
                operation.is_any_nan_right());
  }
  std::vector<CompareRecord> records(there.size());
  builder.run(*runner_, records);

  std::vector<CheckResult> results;
  for (std::size_t i = 0; i < there.size(); ++i) {
    const CheckResult result = counted(checked[i], records[i]);
    const bool has_blocks = output_blocks(operation.problem, there[i].rank) > 0;
    const bool has_order = has_blocks_in_order(operation, there[i].rank);
    if (result.is_ok()) {
      results.push_back(result);
    } else if (has_blocks && has_order && !operation.is_any_nan_right()) {
      results.push_back(diagnosed(oracle, there[i], memory, result, static_cast<Count>(records[i].poisoned)));
    } else {
      results.push_back(agreed(memory.Memory::verify_outputs(oracle, there.subspan(i, 1)).front(), result.wrong));
    }
  }
  return results;
}

CheckResult DeviceVerifier::verify_gaps(const Operation& operation, const RankBuffer& there, bool hold_input,
                                        const Memory& memory) const {
  const std::vector<Place> gaps = gaps_of(operation, there.rank);
  Builder builder(operation);
  Count checked = 0;
  for (const Place& gap : gaps) {
    const CompareMember member{
        .at = there.bytes.data() + static_cast<std::size_t>(gap.first) * size_of(operation.dtype), .index = gap.first};
    const Source source{.rank = there.rank, .first = gap.first};
    const std::span<const Source> sources(&source, hold_input ? 1 : 0);
    builder.add(hold_input ? Expectation::copied : Expectation::poison, gap.count, sources, std::span(&member, 1),
                false);
    checked += gap.count;
  }
  CompareRecord record;
  builder.run(*runner_, std::span(&record, 1));
  if (record.wrong == 0) return {.checked = checked};
  return agreed(memory.Memory::verify_gaps(operation, there, hold_input), static_cast<Count>(record.wrong));
}

CheckResult DeviceVerifier::verify_input_unchanged(const Operation& operation, const RankBuffer& there,
                                                   const Memory& memory) const {
  const auto elements = static_cast<Count>(there.bytes.size() / size_of(operation.dtype));
  Builder builder(operation);
  const CompareMember member{.at = there.bytes.data()};
  const Source source{.rank = there.rank, .first = 0};
  builder.add(Expectation::copied, elements, std::span(&source, 1), std::span(&member, 1), false);
  CompareRecord record;
  builder.run(*runner_, std::span(&record, 1));
  if (record.wrong == 0) return {.checked = elements};
  return agreed(memory.Memory::verify_input_unchanged(operation, there), static_cast<Count>(record.wrong));
}

void VerifiedMemory::fill_input(std::span<std::byte> there, const InputSpec& spec) {
  verifier_ == nullptr ? Memory::fill_input(there, spec) : verifier_->fill_input(there, spec);
}

void VerifiedMemory::fill_poison(std::span<const std::span<std::byte>> parts, std::uint64_t salt) {
  verifier_ == nullptr ? Memory::fill_poison(parts, salt) : verifier_->fill_poison(parts, salt);
}

void VerifiedMemory::fill_guards(std::span<const GuardZone> zones) {
  verifier_ == nullptr ? Memory::fill_guards(zones) : verifier_->fill_guards(zones);
}

std::optional<std::size_t> VerifiedMemory::guard_damage(std::span<const GuardZone> zones) const {
  return verifier_ == nullptr ? Memory::guard_damage(zones) : verifier_->guard_damage(zones);
}

Status VerifiedMemory::start_triad(const TriadWork& work) {
  return verifier_ == nullptr ? Memory::start_triad(work) : verifier_->start_triad(work, stream());
}

std::vector<CheckResult> VerifiedMemory::verify_outputs(Oracle& oracle, std::span<const RankBuffer> there) const {
  return verifier_ == nullptr ? Memory::verify_outputs(oracle, there) : verifier_->verify_outputs(oracle, there, *this);
}

CheckResult VerifiedMemory::verify_gaps(const Operation& operation, const RankBuffer& there, bool hold_input) const {
  return verifier_ == nullptr ? Memory::verify_gaps(operation, there, hold_input)
                              : verifier_->verify_gaps(operation, there, hold_input, *this);
}

CheckResult VerifiedMemory::verify_input_unchanged(const Operation& operation, const RankBuffer& there) const {
  return verifier_ == nullptr ? Memory::verify_input_unchanged(operation, there)
                              : verifier_->verify_input_unchanged(operation, there, *this);
}

namespace {

/// Memory of the host as it is, but for who fills and compares.
class VerifiedHostMemory final : public VerifiedMemory {
 public:
  [[nodiscard]] MemoryKind kind() const override { return MemoryKind::host; }
  [[nodiscard]] Result<void*> allocate(std::size_t bytes) override { return host_memory().allocate(bytes); }
  void release(void* pointer) override { host_memory().release(pointer); }
  void write(std::byte* there, std::span<const std::byte> here) override { host_memory().write(there, here); }
  void read(std::span<std::byte> here, const std::byte* there) const override { host_memory().read(here, there); }
  [[nodiscard]] HostView view(std::span<const std::byte> there) const override { return HostView(there); }
  void flush(std::span<const std::byte> there) const override { host_memory().flush(there); }
};

}  // namespace

std::unique_ptr<Memory> verified_host_memory(std::shared_ptr<const DeviceVerifier> verifier) {
  auto memory = std::make_unique<VerifiedHostMemory>();
  memory->set_verifier(std::move(verifier));
  return memory;
}

}  // namespace tutti::harness::verify
