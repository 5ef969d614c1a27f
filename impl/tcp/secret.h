// SPDX-License-Identifier: Apache-2.0
// What the processes of a job know and nobody else does: 32 bytes. By it both ends of a connection show each other that
// they belong together, without sending it (greeting.h).
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "impl/types/status.h"

namespace tutti::tcp {

inline constexpr std::size_t kSecretBytes = 32;
using Nonce = std::array<std::byte, kSecretBytes>;
using Seal = std::array<std::byte, 32>;  ///< of HMAC-SHA256

struct Secret {
  std::array<std::byte, kSecretBytes> bytes{};
  bool operator==(const Secret&) const = default;
};

/// From the system's generator. Errors: io.
[[nodiscard]] Result<Secret> draw_secret();
[[nodiscard]] Result<Nonce> draw_nonce();
/// 64 digits of base 16, and back. Errors: invalid_argument, without the text.
[[nodiscard]] std::string to_text(const Secret& secret);
[[nodiscard]] Result<Secret> secret_from(std::string_view text);

/// HMAC-SHA256 over `label` and the parts, which have fixed lengths.
[[nodiscard]] Seal seal_of(const Secret& secret, std::string_view label,
                           std::initializer_list<std::span<const std::byte>> parts);
/// In a time that does not say where they differ.
[[nodiscard]] bool is_same(const Seal& one, const Seal& other);

}  // namespace tutti::tcp
