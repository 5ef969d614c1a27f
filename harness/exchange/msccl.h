// SPDX-License-Identifier: Apache-2.0
// An MSCCL algorithm file as it is written: gpus, their thread blocks, and the steps of each. What the file says about
// itself has been checked: every number is in range, every peer and every awaited step exists.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"
#include "impl/collective/collective.h"
#include "impl/types/status.h"

namespace tutti::harness::exchange {

inline constexpr int kMostGpus = 128;       ///< `tutti prove` proves plans of at most so many ranks
inline constexpr int kMostBlocks = 128;     ///< thread blocks of a gpu
inline constexpr int kMostChannels = 32;    ///< as NCCL has
inline constexpr int kMostChunks = 4096;    ///< of one buffer
inline constexpr int kMostSteps = 100'000;  ///< of all gpus
inline constexpr std::size_t kMostInMsccl = std::size_t{32} << 20;  ///< bytes of a file

/// What a step of a type does. What is read and received is reduced in this order: the destination, what arrived, the
/// source.
struct StepType {
  std::string_view name;
  bool receives = false;
  bool sends = false;
  bool reads_source = false;
  bool reads_destination = false;
  bool writes = false;  ///< its destination

  [[nodiscard]] int operands() const {
    return static_cast<int>(receives) + static_cast<int>(reads_source) + static_cast<int>(reads_destination);
  }
};

inline constexpr std::array kStepTypes{
    StepType{.name = "s", .sends = true, .reads_source = true},
    StepType{.name = "r", .receives = true, .writes = true},
    StepType{.name = "rcs", .receives = true, .sends = true, .writes = true},
    StepType{.name = "rrc", .receives = true, .reads_source = true, .writes = true},
    StepType{.name = "rrs", .receives = true, .sends = true, .reads_source = true},
    StepType{.name = "rrcs", .receives = true, .sends = true, .reads_source = true, .writes = true},
    StepType{.name = "re", .reads_source = true, .reads_destination = true, .writes = true},
    StepType{.name = "cpy", .reads_source = true, .writes = true},
    StepType{.name = "nop"},
};

enum class Buffer : std::uint8_t { input, output, scratch };
[[nodiscard]] std::string_view to_string(Buffer buffer);

/// Chunks of a gpu's own buffer, from `first` on.
struct Chunks {
  Buffer buffer = Buffer::input;
  int first = 0;
};

struct MscclStep {
  const StepType* type = nullptr;
  int number = 0;  ///< in the file; steps of several chunks may have been cut into one for each chunk
  int count = 0;   ///< chunks
  Chunks source;
  Chunks destination;
  int awaited_block = -1;  ///< index of a thread block of the same gpu, whose step `awaited_step` comes before; or -1
  int awaited_step = -1;   ///< index
  int line = 0;
};

struct ThreadBlock {
  int id = 0;
  int send = -1;     ///< the gpu that it sends to, or -1
  int receive = -1;  ///< the gpu that it receives from, or -1
  int channel = 0;
  std::vector<MscclStep> steps;
};

struct Gpu {
  int scratch = 0;  ///< chunks
  std::vector<ThreadBlock> blocks;
};

struct MscclFile {
  std::string name;
  Problem problem = {.collective = Collective::barrier, .ranks = 0};
  int chunks_per_block = 1;
  bool is_in_place = false;
  std::vector<Gpu> gpus;

  /// Chunks of a buffer of `gpu`. In place, a gpu that has one buffer has it by both names.
  [[nodiscard]] int chunks(int gpu, Buffer buffer) const;
};

/// Reads the text of an MSCCL XML file. Expat parses it. Declarations of types and entities are refused, so that
/// nothing expands. Errors: invalid_argument naming the line, the value and the allowed range.
[[nodiscard]] Result<MscclFile> parse_msccl(std::string_view text);

}  // namespace tutti::harness::exchange
