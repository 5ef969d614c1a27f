// SPDX-License-Identifier: Apache-2.0
// Packets: words of 8 bytes of which one half is data and the other a flag, each stored at once. Whoever finds the flag
// has the data, so a short message costs one look and no order between two words. NCCL's protocol LL does the same.
//
// The flag is the low half of the operation's number. A word keeps the flag of the last operation that has written it,
// which may be long ago where messages got shorter. So the words of a generation are renewed in the first operation
// there after each multiple of 2^31: no word is older than 2^31 operations and K, and none has the flag of one that is
// 2^32 later.
#pragma once

#include <cstdint>
#include <optional>

#include "impl/schedule/plan.h"
#include "impl/types/host_device.h"

namespace tutti {

inline constexpr std::int64_t kPacketData = 4;  ///< bytes of a packet

[[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint64_t packet_of(std::uint64_t number, std::uint32_t data) {
  return number << 32U | data;
}
/// Whether it is of operation `number`.
[[nodiscard]] TUTTI_HOST_DEVICE constexpr bool is_packet_of(std::uint64_t number, std::uint64_t packet) {
  return static_cast<std::uint32_t>(packet >> 32U) == static_cast<std::uint32_t>(number);
}
/// Whether operation `number` is the first of its generation after a multiple of 2^31; K is the number of generations.
[[nodiscard]] TUTTI_HOST_DEVICE constexpr bool renews_packets(std::uint64_t number, std::uint64_t generations) {
  return number >= generations && number >> 31U != (number - generations) >> 31U;
}

/// A plan that goes by packets: MOVE of something of mine into my scratch, SIGNAL, WAIT, and MOVEs into buffers of
/// mine, of what lies there and of the same part of the others' scratch. In place of the scratch packets are told.
struct PacketForm {
  std::int64_t bytes = 0;   ///< of the message, from 1
  std::int64_t offset = 0;  ///< where it would lie in the scratch of any rank
  Space space = Space::scratch;

  bool operator==(const PacketForm&) const = default;
};
/// Nothing where the plan has another form, or a message longer than `most_bytes`.
[[nodiscard]] std::optional<PacketForm> packet_form(const Plan& plan, std::int64_t most_bytes);

}  // namespace tutti
