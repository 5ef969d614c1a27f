// SPDX-License-Identifier: Apache-2.0
// 32 bytes that the processes of a job know and strangers do not. By them both ends of a connection show each other
// that they belong together, without sending them (greeting.h). Two kinds:
//
//   secret   lasts: TUTTI_SECRET_FILE serves many jobs. It keys the first meeting of a job and nothing else.
//   key      is derived from the secret and the job's random id, or drawn by the launcher. It serves one job.
//
// A key gives away neither the secret nor the key of another job. Each purpose has a key of its own, by its label.
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
/// `value` as it lies in memory.
template <class T>
[[nodiscard]] std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// From the system's generator. Errors: io.
[[nodiscard]] Result<Secret> draw_secret();
[[nodiscard]] Result<Nonce> draw_nonce();
/// 64 digits of base 16, and back. Errors: invalid_argument, without the text.
[[nodiscard]] std::string to_text(const Secret& secret);
[[nodiscard]] Result<Secret> secret_from(std::string_view text);

/// HMAC-SHA256 keyed by `key` over "tutti key", a zero, `label`, a zero and the parts, which have fixed lengths.
[[nodiscard]] Secret derived_from(const Secret& key, std::string_view label,
                                  std::initializer_list<std::span<const std::byte>> parts = {});
/// The key of the job that has drawn this id.
[[nodiscard]] inline Secret key_of_job(const Secret& secret, const Nonce& id) {
  return derived_from(secret, "job", {id});
}

/// HMAC-SHA256 over `label` and the parts, which have fixed lengths.
[[nodiscard]] Seal seal_of(const Secret& secret, std::string_view label,
                           std::initializer_list<std::span<const std::byte>> parts);
/// In a time that does not say where they differ.
[[nodiscard]] bool is_same(const Seal& one, const Seal& other);

}  // namespace tutti::tcp
