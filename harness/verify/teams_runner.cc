// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <sched.h>

#include "harness/verify/device_runner.h"
#include "harness/verify/device_text.h"
#include "impl/device/teams.h"

namespace tutti::harness::verify {
namespace {

/// Words that several threads write at once.
struct HostWords {
  static void add(std::uint64_t* word, std::uint64_t value) {
    std::atomic_ref(*word).fetch_add(value, std::memory_order_relaxed);
  }
  static void least(std::uint64_t* word, std::uint64_t value) {
    replace(word, value, [](std::uint64_t a, std::uint64_t b) { return a < b; });
  }
  static void most(std::uint64_t* word, std::uint64_t value) {
    replace(word, value, [](std::uint64_t a, std::uint64_t b) { return a > b; });
  }

 private:
  template <class Before>
  static void replace(std::uint64_t* word, std::uint64_t value, Before before) {
    std::atomic_ref shared(*word);
    std::uint64_t there = shared.load(std::memory_order_relaxed);
    while (before(value, there) && !shared.compare_exchange_weak(there, value, std::memory_order_relaxed)) {
    }
  }
};

using Fill = void (*)(const FillWork&, const DeviceThread&);
using Compare = void (*)(const CompareWork&, const DeviceThread&);
struct Functions {
  Fill fill;
  Compare compare;
};

template <class T, Op op>
Functions functions() {
  return {.fill = &fill_elements<T, op>, .compare = &compare_elements<T, op, HostWords>};
}

Functions functions_for(Dtype dtype, Op op) {
  return visit_dtype(dtype, [op]<class T>(std::type_identity<T>) -> Functions {
    if (op == Op::none) return functions<T, Op::none>();
    return visit_op(op, []<Op known>(std::integral_constant<Op, known>) -> Functions {
      if constexpr (op_exists_for<T>(known)) return functions<T, known>();
      TUTTI_ASSERT(false, "{} does not exist for the dtype", to_string(known));
    });
  });
}

class TeamsRunner final : public DeviceRunner {
 public:
  explicit TeamsRunner(const RunnerTeams& shape) : shape_(shape), device_(make_host_teams()) {}

  Status fill(const DeviceElements& elements, FillWork work) override {
    work.table = elements.table.data();
    return run(
        [&work, fill = functions_for(elements.dtype, elements.op).fill](const DeviceThread& me) { fill(work, me); });
  }

  Status fill_poison(std::span<const PoisonPart> parts, std::uint16_t word) override {
    const PoisonWork work{.parts = parts.data(), .count = static_cast<std::int32_t>(parts.size()), .word = word};
    return run([&work](const DeviceThread& me) { fill_poison_parts(work, me); });
  }

  Status write_guards(GuardWork work) override {
    return run([&work](const DeviceThread& me) { write_guard_parts(work, me); });
  }

  Result<std::uint64_t> find_damage(GuardWork work) override {
    std::uint64_t damage = GuardWork::kNone;
    work.damage = &damage;
    TUTTI_RETURN_IF_ERROR(run([&work](const DeviceThread& me) { compare_guard_parts<HostWords>(work, me); }));
    return damage;
  }

  Status start_triad(TriadWork work, void* /*stream*/) override {
    return run([&work](const DeviceThread& me) { make_triad(work, me); });
  }

  Status compare(const DeviceElements& elements, Comparing& comparing, std::span<CompareRecord> records) override {
    CompareWork work = comparing.work;
    work.pieces = comparing.pieces.data();
    work.sources = comparing.sources.data();
    work.members = comparing.members.data();
    work.streams = comparing.streams.data();
    work.records = records.data();
    work.table = elements.table.data();
    return run([&work, compare = functions_for(elements.dtype, elements.op).compare](const DeviceThread& me) {
      compare(work, me);
    });
  }

 private:
  template <class What>
  Status run(What what) {
    if (shape_.teams == 1 && shape_.threads == 1) {
      what(DeviceThread());  // a team of one thread: that of the caller
      return {};
    }
    TUTTI_ASSIGN_OR_RETURN(
        const Device::Ticket ticket,
        device_->run({.teams = shape_.teams, .threads = shape_.threads}, [this, what](HostTarget& target, int team) {
          what({.team = team, .teams = shape_.teams, .thread = target.thread(), .threads = target.threads()});
        }));
    for (;;) {
      TUTTI_ASSIGN_OR_RETURN(const bool is_done, device_->is_complete(ticket));
      if (is_done) return {};
      sched_yield();
    }
  }

  RunnerTeams shape_;
  std::unique_ptr<HostTeams> device_;
};

}  // namespace

std::unique_ptr<DeviceRunner> make_teams_runner(const RunnerTeams& shape) {
  return std::make_unique<TeamsRunner>(shape);
}

}  // namespace tutti::harness::verify
