// SPDX-License-Identifier: Apache-2.0
// What a rank has of its device, and a reliable connection to one peer: writes into the memory that the peer has
// registered, in their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <infiniband/verbs.h>
#include <memory>
#include <span>
#include <string>

#include "impl/transports/verbs/devices.h"
#include "impl/types/status.h"

namespace tutti::verbs {

/// What two ends tell each other before the first write, in the byte order of the machines, which are of one kind.
struct Hello {
  std::uint64_t memory = 0;  ///< where the writer's piece begins, in its own addresses
  std::uint64_t bytes = 0;   ///< of it: both ends are laid out alike
  std::uint32_t key = 0;     ///< to write there
  std::uint32_t queue_pair = 0;
  std::uint32_t first_packet = 0;  ///< its number
  std::uint16_t lid = 0;
  std::uint8_t mtu = 0;  ///< as ibv_mtu has it
  std::uint8_t is_ethernet = 0;
  Gid gid{};
  std::array<std::byte, 16> rest{};
};
static_assert(sizeof(Hello) == 64);

/// A port that is open. Outlives its queue pairs.
class Device {
 public:
  /// Errors: unavailable, io.
  [[nodiscard]] static Result<std::unique_ptr<Device>> open(const Port& port);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

 private:
  friend class QueuePair;
  explicit Device(const Port& port) : port_(port) {}
  Port port_;
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_port_attr attributes_{};
};

/// Bytes of a write that are taken along at once, so that their place may be written again.
inline constexpr std::size_t kInline = 64;

struct Write {
  const std::byte* from;
  std::uint32_t bytes;
  std::size_t to;  ///< in the peer's piece
  bool is_inline;  ///< else `from` lies in my piece, and stays as it is until the peer has it
};

class QueuePair {
 public:
  static constexpr int kDepth = 256;  ///< writes that may be under way

  /// Registers `piece`. Errors: resource, unavailable; they name the device.
  [[nodiscard]] static Result<std::unique_ptr<QueuePair>> make(const Device& device, std::span<std::byte> piece);
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;
  ~QueuePair();

  [[nodiscard]] Hello hello() const;
  /// The peer may write from now on; and so may this end, once the peer has done the same. Errors: mismatch, io.
  Status connect(const Hello& peer);

  /// As many of them as there is room for; how many that were. Errors: io.
  Result<std::size_t> post(std::span<const Write> writes);
  /// Takes back the room of what is done. Errors: io, with why writes do not arrive any more.
  Status reap();
  /// Whether the last of them tells when it is done.
  [[nodiscard]] bool is_end_signalled() const { return unsignalled_ == 0; }
  [[nodiscard]] int under_way() const { return under_way_; }

 private:
  static constexpr int kBetweenSignals = 15;
  explicit QueuePair(const Device& device) : device_(device) {}

  const Device& device_;
  ibv_mr* memory_ = nullptr;
  ibv_cq* done_ = nullptr;
  ibv_qp* pair_ = nullptr;
  std::uint32_t first_packet_ = 0;
  std::uint64_t peer_memory_ = 0;
  std::uint32_t peer_key_ = 0;
  int under_way_ = 0;
  int unsignalled_ = 0;  ///< since the last one that tells when it is done
};

}  // namespace tutti::verbs
