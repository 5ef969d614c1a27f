// SPDX-License-Identifier: Apache-2.0
// A segment: memory that processes share by descriptor. It is a memfd, so nothing has a name and nothing can leak. All
// pages are there from the start: lack of memory is an error with numbers, not a SIGBUS in the middle of a measurement.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "harness/floors.h"
#include "impl/types/descriptor.h"
#include "impl/types/status.h"

namespace tutti::harness::board {

/// What shared memory is laid out in.
inline constexpr std::size_t kPageBytes = 4096;

/// Whether `bytes` bytes can be allocated on this machine and in this control group. Errors: resource with the numbers.
[[nodiscard]] Status check_room(const std::string& name, std::size_t bytes);
/// `bytes` zeroed bytes, allocated in full, whose size cannot change. Errors: resource with the numbers.
[[nodiscard]] Result<Descriptor> make_segment(const std::string& name, std::size_t bytes);
/// A segment that holds `text`.
[[nodiscard]] Result<Descriptor> make_text_segment(const std::string& name, std::string_view text);
/// The whole of a segment, or of a file.
[[nodiscard]] Result<std::string> read_text(int descriptor);

/// A mapping of `bytes` of a segment, shared, for reading and writing.
class Mapping {
 public:
  Mapping() = default;
  [[nodiscard]] static Result<Mapping> map(int descriptor, std::size_t bytes);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  [[nodiscard]] void* data() const { return base_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void* base_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace tutti::harness::board
