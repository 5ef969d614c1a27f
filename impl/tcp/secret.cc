// SPDX-License-Identifier: Apache-2.0
#include "impl/tcp/secret.h"

#include <cerrno>
#include <cstring>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <vector>

namespace tutti::tcp {
namespace {

template <class Bytes>
Status draw(Bytes& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = getrandom(bytes.data() + done, bytes.size() - done, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error(Code::io, "the system gives no random bytes: {}", std::strerror(errno));
    done += static_cast<std::size_t>(n);
  }
  return {};
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

Result<Secret> draw_secret() {
  Secret secret;
  TUTTI_RETURN_IF_ERROR(draw(secret.bytes));
  return secret;
}

Result<Nonce> draw_nonce() {
  Nonce nonce;
  TUTTI_RETURN_IF_ERROR(draw(nonce));
  return nonce;
}

std::string to_text(const Secret& secret) {
  std::string text;
  for (const std::byte byte : secret.bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

Result<Secret> secret_from(std::string_view text) {
  Secret secret;
  const auto wrong = [&] {
    return error(Code::invalid_argument, "the job's secret has {} characters; {} digits of base 16 are one",
                 text.size(), 2 * kSecretBytes);
  };
  if (text.size() != 2 * kSecretBytes) return wrong();
  for (std::size_t i = 0; i < kSecretBytes; ++i) {
    const int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
    if (high < 0 || low < 0) return wrong();
    secret.bytes[i] = static_cast<std::byte>(16 * high + low);
  }
  return secret;
}

Secret derived_from(const Secret& key, std::string_view label,
                    std::initializer_list<std::span<const std::byte>> parts) {
  std::string begin = fmt::format("tutti key{0}{1}{0}", '\0', label);
  for (const auto part : parts) begin.append(reinterpret_cast<const char*>(part.data()), part.size());
  return {.bytes = seal_of(key, begin, {})};
}

Seal seal_of(const Secret& secret, std::string_view label, std::initializer_list<std::span<const std::byte>> parts) {
  std::vector<unsigned char> text(label.begin(), label.end());
  for (const auto part : parts) {
    const auto* const begin = reinterpret_cast<const unsigned char*>(part.data());
    text.insert(text.end(), begin, begin + part.size());
  }
  Seal seal;
  unsigned bytes = 0;
  const auto* const made = HMAC(EVP_sha256(), secret.bytes.data(), static_cast<int>(secret.bytes.size()), text.data(),
                                text.size(), reinterpret_cast<unsigned char*>(seal.data()), &bytes);
  TUTTI_ASSERT(made != nullptr && bytes == seal.size(), "HMAC-SHA256 gave {} bytes", bytes);
  return seal;
}

bool is_same(const Seal& one, const Seal& other) { return CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0; }

}  // namespace tutti::tcp
