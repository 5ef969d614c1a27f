// SPDX-License-Identifier: Apache-2.0
#include "impl/tcp/sealed_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <poll.h>

#include "impl/tcp/socket.h"

namespace tutti::tcp {
namespace {

constexpr std::string_view kLength = "length", kText = "text";
constexpr std::size_t kHeadBytes = sizeof(std::uint32_t) + kTagBytes;
constexpr std::size_t kTidy = std::size_t{1} << 20;  // of a buffer's bytes that are done with

/// Fetched once: that takes longer than a tag.
EVP_MAC* hmac() {
  static EVP_MAC* const algorithm = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  TUTTI_ASSERT(algorithm != nullptr, "OpenSSL has no HMAC");
  return algorithm;
}

bool holds(const Tagger::Tag& tag, const char* there) { return CRYPTO_memcmp(tag.data(), there, tag.size()) == 0; }

void append(std::string& out, std::span<const std::byte> bytes) {
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

void Tagger::Free::operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }

Tagger::Tagger(const Secret& key) : context_(EVP_MAC_CTX_new(hmac())) {
  std::array<char, 7> digest{"SHA256"};
  const std::array parameters{OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
                              OSSL_PARAM_construct_end()};
  const bool is_keyed =
      context_ != nullptr && EVP_MAC_init(context_.get(), reinterpret_cast<const unsigned char*>(key.bytes.data()),
                                          key.bytes.size(), parameters.data()) == 1;
  TUTTI_ASSERT(is_keyed, "OpenSSL takes no key for HMAC-SHA256");
}

Tagger::Tag Tagger::tag(std::string_view label, std::uint64_t number,
                        std::initializer_list<std::span<const std::byte>> parts) {
  bool is_good = EVP_MAC_init(context_.get(), nullptr, 0, nullptr) == 1;  // the same key again
  const auto add = [&](std::span<const std::byte> part) {
    is_good = is_good &&
              EVP_MAC_update(context_.get(), reinterpret_cast<const unsigned char*>(part.data()), part.size()) == 1;
  };
  add(std::as_bytes(std::span(label)));
  add(bytes_of(number));
  for (const auto part : parts) add(part);
  std::array<unsigned char, sizeof(Seal)> all;
  std::size_t bytes = 0;
  is_good = is_good && EVP_MAC_final(context_.get(), all.data(), &bytes, all.size()) == 1;
  TUTTI_ASSERT(is_good && bytes == all.size(), "HMAC-SHA256 gave {} bytes", bytes);
  Tag tag;
  std::memcpy(tag.data(), all.data(), tag.size());
  return tag;
}

void Sealer::seal(std::initializer_list<std::span<const std::byte>> parts, std::string& out) {
  std::size_t bytes = 0;
  for (const auto part : parts) bytes += part.size();
  TUTTI_ASSERT(bytes <= kMostSealed, "a message of {} bytes; at most {}", bytes, kMostSealed);
  const auto length = static_cast<std::uint32_t>(bytes);
  append(out, bytes_of(length));
  append(out, tagger_.tag(kLength, number_, {bytes_of(length)}));
  for (const auto part : parts) append(out, part);
  append(out, tagger_.tag(kText, number_, parts));
  ++number_;
}

Result<std::optional<std::string>> Opener::next() {
  const auto broken = [&] {
    is_broken_ = true;
    return error(Code::io, "the bytes are not those that were sent");
  };
  if (is_broken_) return broken();
  if (!length_) {
    if (buffer_.size() - start_ < kHeadBytes) return std::optional<std::string>();
    std::uint32_t length = 0;
    std::memcpy(&length, buffer_.data() + start_, sizeof length);
    const Tagger::Tag tag = tagger_.tag(kLength, number_, {bytes_of(length)});
    if (!holds(tag, buffer_.data() + start_ + sizeof length) || length > kMostSealed) return broken();
    length_ = length;
  }
  const std::size_t whole = kHeadBytes + *length_ + kTagBytes;
  if (buffer_.size() - start_ < whole) return std::optional<std::string>();
  const char* const text = buffer_.data() + start_ + kHeadBytes;
  const Tagger::Tag tag = tagger_.tag(kText, number_, {std::as_bytes(std::span(text, *length_))});
  if (!holds(tag, text + *length_)) return broken();
  std::optional<std::string> message(std::in_place, text, *length_);
  ++number_;
  length_.reset();
  start_ += whole;
  if (start_ == buffer_.size() || start_ > kTidy) {
    buffer_.erase(0, start_);
    start_ = 0;
  }
  return message;
}

SealedStream::SealedStream(Descriptor socket, const Session& session)
    : socket_(std::move(socket)), peer_(peer_of(socket_.get())), sealer_(session.out), opener_(session.in) {}

short SealedStream::events() const {
  return static_cast<short>((failure_.is_ok() ? POLLIN : 0) | (has_sent_all() ? 0 : POLLOUT));
}

void SealedStream::send(std::initializer_list<std::span<const std::byte>> parts) {
  if (!is_open()) return;
  if (has_sent_all()) {
    out_.clear();
    sent_ = 0;
  }
  sealer_->seal(parts, out_);
  flush();
}

void SealedStream::flush() {
  while (is_open() && !has_sent_all()) {
    const iovec part{.iov_base = out_.data() + sent_, .iov_len = out_.size() - sent_};
    const Moved moved = write_some(descriptor(), {&part, 1});
    if (moved.bytes == 0) return;  // if it has ended, reading finds that too, and what came before
    sent_ += moved.bytes;
  }
}

// What has come is checked at once: what a stranger puts in between is not kept.
void SealedStream::receive() {
  std::array<char, 65536> bytes;
  while (is_open() && failure_.is_ok()) {
    const iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
    const Moved moved = read_some(descriptor(), {&part, 1});
    opener_->append(std::string_view(bytes.data(), moved.bytes));
    while (failure_.is_ok()) {
      auto text = opener_->next();
      if (!text.is_ok()) {
        failure_ = error(Code::io, "bytes of the connection to {} were changed on the way", peer_);
      } else if (text.value()) {
        texts_.push_back(std::move(*text.value()));
      } else {
        break;
      }
    }
    if (moved.has_ended) return socket_.close();
    if (moved.bytes == 0) return;
  }
}

Result<std::optional<std::string>> SealedStream::next() {
  if (texts_.empty())
    return failure_.is_ok() ? Result(std::optional<std::string>()) : Result<std::optional<std::string>>(failure_);
  std::optional<std::string> text(std::move(texts_.front()));
  texts_.pop_front();
  return text;
}

}  // namespace tutti::tcp
