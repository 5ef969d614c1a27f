// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/device_limit.h"

#include <algorithm>
#include <cstring>

#include "harness/verify/device_work.h"

namespace tutti::harness::measure {
namespace {

constexpr std::int64_t kVector = 16;  ///< bytes that a thread of a device moves at a time
constexpr std::size_t kPlaceBytes = 4096;
constexpr std::size_t kPlaces = 16;  ///< that are compared, evenly over what was written
constexpr std::uint64_t kSpoil = 1;  ///< salt of the poison

}  // namespace

std::int64_t traffic_of(const Cell& cell, int rank) {
  std::int64_t bytes = 0;
  for (const Movement& one : least_movements(cell)) {
    const auto moves_nothing = [&](const Piece& to) {
      return cell.is_in_place && one.sources.size() == 1 && to.rank == one.sources.front().rank;
    };
    bool is_read = false;
    for (const Piece& to : one.destinations) {
      if (moves_nothing(to)) continue;
      is_read = true;
      bytes += to.rank == rank ? one.bytes : 0;
    }
    for (const Piece& from : one.sources) bytes += is_read && from.rank == rank ? one.bytes : 0;
  }
  return bytes;
}

/// Each rank's own memory: two sources, of which a copy takes the first, and what is written.
class DeviceLimit::Transfers final : public Prepared {
 public:
  explicit Transfers(const DeviceLimit& backend) : backend_(backend) {}

  Status add(verify::Memory& memory, int rank, std::int64_t traffic) {
    const auto vectors_of = [&](std::int64_t streams) { return (traffic + streams * kVector - 1) / streams / kVector; };
    constexpr std::int64_t kCopied = 2, kTriads = 3;  // streams of bytes that are read or written
    Part part{.copied = vectors_of(kCopied) * kVector, .triads = vectors_of(kTriads) * kVector, .buffers = {}};
    if (traffic == 0) part = {};
    // Without a kernel for triads nothing needs the second source.
    for (const std::int64_t bytes : {part.copied, part.triads, part.copied}) {
      TUTTI_ASSIGN_OR_RETURN(auto buffer, verify::GuardedBuffer::create({.bytes = static_cast<std::size_t>(bytes),
                                                                         .allocator = memory.allocator()}));
      const InputSpec spec{.dtype = Dtype::u32,
                           .op = Op::none,
                           .ranks = 1,
                           .rank = 0,
                           .seed = static_cast<std::uint64_t>(rank) + 1,
                           .salt = part.buffers.size()};
      memory.fill_input(buffer.payload(), spec);
      part.buffers.push_back(std::move(buffer));
    }
    parts_.push_back(std::move(part));
    spoil(parts_.back());
    return {};
  }

  Status post(std::size_t index) override {
    Part& part = parts_[index];
    part.is_triad = backend_.is_triad_;
    if (part.copied == 0) return {};
    verify::Memory& memory = part.buffers.front().kind();
    std::byte* const to = part.written().data();
    const std::byte* const first = part.buffers[0].payload().data();
    if (!part.is_triad) return memory.start_copy(to, first, static_cast<std::size_t>(part.copied));
    return memory.start_triad(
        {.to = to, .first = first, .second = part.buffers[1].payload().data(), .bytes = part.triads});
  }
  Result<bool> test(std::size_t index) override { return parts_[index].buffers.front().kind().is_idle(); }
  [[nodiscard]] bool is_in_order() const override { return true; }
  Status begin_posts() override { return {}; }

  [[nodiscard]] std::string flaw(std::size_t index) override {
    Part& part = parts_[index];
    std::string text;
    for (const Place& place : places_of(part)) {
      const std::vector<std::byte> written = part.read(2, place), first = part.read(0, place);
      const std::vector<std::byte> second = part.is_triad ? part.read(1, place) : std::vector<std::byte>();
      for (std::size_t at = 0; at < written.size() && text.empty(); at += sizeof(std::uint32_t)) {
        const auto word = [at](const std::vector<std::byte>& bytes) {
          std::uint32_t value = 0;
          if (!bytes.empty()) std::memcpy(&value, bytes.data() + at, sizeof(value));
          return value;
        };
        const std::uint32_t right = word(first) + verify::kTriadFactor * word(second);
        if (word(written) == right) continue;
        text = fmt::format("the {} of {} bytes on its device: byte {} begins {:#x} instead of {:#x}",
                           part.is_triad ? "triad" : "copy", part.moved(), place.begin + at, word(written), right);
      }
    }
    spoil(part);
    return text;
  }

 private:
  struct Place {
    std::size_t begin = 0;
    std::size_t bytes = 0;
  };
  struct Part {
    std::int64_t copied = 0;
    std::int64_t triads = 0;  ///< bytes of each of the three streams
    std::vector<verify::GuardedBuffer> buffers = {};
    bool is_triad = false;  ///< the last call was one

    [[nodiscard]] std::span<std::byte> written() const { return buffers[2].payload(); }
    [[nodiscard]] std::int64_t moved() const { return is_triad ? triads : copied; }
    [[nodiscard]] std::vector<std::byte> read(std::size_t buffer, const Place& place) const {
      std::vector<std::byte> bytes(place.bytes);
      buffers[buffer].kind().read(bytes, buffers[buffer].payload().data() + place.begin);
      return bytes;
    }
  };

  [[nodiscard]] static std::vector<Place> places_of(const Part& part) {
    const auto bytes = static_cast<std::size_t>(part.moved());
    std::vector<Place> places;
    if (bytes <= kPlaces * kPlaceBytes) return bytes == 0 ? places : std::vector<Place>{{.begin = 0, .bytes = bytes}};
    for (std::size_t i = 0; i < kPlaces; ++i) {
      const std::size_t begin = (bytes - kPlaceBytes) / (kPlaces - 1) * i / kVector * kVector;
      places.push_back({.begin = i + 1 == kPlaces ? bytes - kPlaceBytes : begin, .bytes = kPlaceBytes});
    }
    return places;
  }
  static void spoil(const Part& part) {
    std::vector<std::span<std::byte>> there;
    for (const Place& place : places_of(part)) there.push_back(part.written().subspan(place.begin, place.bytes));
    if (!there.empty()) part.buffers[2].kind().fill_poison(there, kSpoil);
  }

  const DeviceLimit& backend_;
  std::vector<Part> parts_;
};

Result<std::unique_ptr<Prepared>> DeviceLimit::prepare(const Case& /*one*/, std::span<const RankBuffers> /*buffers*/) {
  auto transfers = std::make_unique<Transfers>(*this);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    TUTTI_RETURN_IF_ERROR(transfers->add(*memory_[i], ranks_[i], traffic_of(cell_, ranks_[i])));
  }
  return std::unique_ptr<Prepared>(std::move(transfers));
}

Status DeviceLimit::can_triad() const {
  for (verify::Memory* const memory : memory_) TUTTI_RETURN_IF_ERROR(memory->start_triad({}));
  return {};
}

MemorySource DeviceLimit::memory() const {
  return [this](const Case& /*one*/, std::size_t index) { return memory_[index]->allocator(); };
}

Result<std::optional<Variant>> make_device_limit(Runner& runner, DeviceLimit& backend, const Variant::Request& like,
                                                 std::int64_t end_ns) {
  const std::optional<Case> limit = limit_of(like.instance);
  if (!limit) return std::optional<Variant>();
  backend.begin_cell(like.instance);
  const Case one = without_elements(*limit, kDeviceLimitName);
  Result<Variant> variant = Variant::create(
      runner,
      {.backend = backend, .memory = backend.memory(), .instance = one, .seed = like.seed, .number = like.number});
  TUTTI_ASSIGN_OR_RETURN(const Reason why_none, runner.first_reason(variant.status()));
  if (why_none.is_any()) return std::optional<Variant>();
  TUTTI_ASSIGN_OR_RETURN(const Reason why_copy, runner.first_reason(backend.can_triad()));
  backend.set_triad(false);
  if (!why_copy.is_any()) {
    const auto choose = [&backend](int way) { backend.set_triad(way == 1); };
    TUTTI_ASSIGN_OR_RETURN(const int way,
                           fastest_way(runner, variant.value(), {.seed = like.seed, .end_ns = end_ns}, 2, choose));
    choose(way);
  }
  return std::optional(std::move(variant).value());
}

}  // namespace tutti::harness::measure
