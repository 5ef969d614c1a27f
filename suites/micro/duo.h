// SPDX-License-Identifier: Apache-2.0
// Two threads, pinned to two cores, that run batches of one all_reduce: tutti's public blocking call or the
// hand-written one, each on buffers of its own. Rank 0 is the caller's thread, rank 1 a thread that waits for batches.
// Both sides are there at several places: what an exchange of 8 B takes depends on where its lines lie.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "impl/communicator/communicator.h"
#include "suites/micro/handwritten.h"

namespace tutti::micro {

enum class Side : std::uint8_t { tutti, handwritten, line };  ///< line: round trips of one cache line between the cores

struct Batch {
  Side side = Side::line;
  std::size_t place = 0;    ///< where the side's flags and buffers lie
  std::size_t count = 0;    ///< elements
  int operations = 1;       ///< timed
  int untimed = 4;          ///< before those: they bring lines and buffers to where the timed ones find them
  bool is_checked = false;  ///< each rank makes new inputs for each operation and compares its output at once
};

class Duo {
 public:
  /// Room for `capacity` floats per buffer, a multiple of 1024; at least one place. Errors: unavailable where fewer
  /// than two cores are allowed; resource where there is no memory for `places` places.
  [[nodiscard]] static Result<std::unique_ptr<Duo>> create(std::size_t capacity, std::size_t places);
  ~Duo();
  Duo(const Duo&) = delete;
  Duo& operator=(const Duo&) = delete;

  /// Nanoseconds per operation, from the first start to the last end.
  /// Errors: those of the call; mismatch naming the first wrong element.
  [[nodiscard]] Result<double> run(const Batch& batch);

  [[nodiscard]] std::size_t places() const { return places_.size(); }

  /// Name of tutti's algorithm for `count` elements.
  [[nodiscard]] std::string algorithm(std::size_t count) const;

 private:
  struct Buffers {
    float* input = nullptr;
    float* output = nullptr;
  };
  struct alignas(kApart) Word {
    std::atomic<std::uint64_t> value = 0;
  };
  /// What a rank has at a place, made by its own thread.
  struct alignas(kApart) Member {
    std::unique_ptr<Communicator> communicator;
    std::unique_ptr<HandwrittenAllReduce> handwritten;
    std::array<Buffers, 2> buffers;  ///< by Side
  };
  struct Place {
    std::unique_ptr<Domain> domain;
    HandwrittenShared shared;
    std::array<Member, 2> members;  ///< by rank
  };
  struct alignas(kApart) Rank {
    Status status;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::uint64_t line_epoch = 0;
  };
  static constexpr std::uint64_t kStop = ~std::uint64_t{0};

  Duo() = default;
  Status set_up(int index, std::size_t capacity);
  static Status set_up(Place& place, int index, std::size_t capacity);
  void serve(std::size_t capacity);
  void perform(int index);
  void repeat(int index, int operations);
  Status check(int index, int operation);
  void bounce(int index);

  std::vector<std::unique_ptr<Place>> places_;
  std::array<Rank, 2> ranks_;
  Batch batch_;
  Word posted_{.value = 1};  ///< number of the batch that rank 0 announced last, or kStop; the first, 1, is the set-up
  Word finished_;            ///< number of the batch that rank 1 ended last
  std::array<Word, 2> line_;
  std::array<int, 2> cores_ = {};
  std::thread peer_;
};

}  // namespace tutti::micro
