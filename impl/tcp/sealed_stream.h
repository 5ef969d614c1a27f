// SPDX-License-Identifier: Apache-2.0
// Messages over a TCP connection whose two ends have greeted each other (greeting.h). They can be read on the wire, and
// nothing else: a message that is changed, dropped, repeated, moved, sent back or put in between ends the stream.
//
//   bytes of the text (4) | tag (16) of "length", number, bytes | text | tag (16) of "text", number, text
//
// A tag is the beginning of an HMAC-SHA256. Each direction has a key of its own and counts its messages from 0. The
// length has a tag too, so that nothing is waited for or stored that the other end has not announced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "impl/tcp/greeting.h"
#include "impl/types/descriptor.h"
#include "impl/types/status.h"

typedef struct evp_mac_ctx_st EVP_MAC_CTX;

namespace tutti::tcp {

/// The longest frame (impl/bootstrap/control.h) fits.
inline constexpr std::size_t kMostSealed = (std::size_t{64} << 20) + 4096;
inline constexpr std::size_t kTagBytes = 16;
inline constexpr std::size_t kSealedBytes = sizeof(std::uint32_t) + 2 * kTagBytes;  ///< beside the text

/// Tags of one direction's messages.
class Tagger {
 public:
  using Tag = std::array<std::byte, kTagBytes>;
  explicit Tagger(const Secret& key);
  [[nodiscard]] Tag tag(std::string_view label, std::uint64_t number,
                        std::initializer_list<std::span<const std::byte>> parts);

 private:
  struct Free {
    void operator()(EVP_MAC_CTX* context) const;
  };
  std::unique_ptr<EVP_MAC_CTX, Free> context_;
};

/// One end's way out.
class Sealer {
 public:
  explicit Sealer(const Secret& key) : tagger_(key) {}
  /// Appends the next message, whose text is all parts in a row, to `out`. Requires: at most kMostSealed bytes.
  void seal(std::initializer_list<std::span<const std::byte>> parts, std::string& out);

 private:
  Tagger tagger_;
  std::uint64_t number_ = 0;
};

/// The way in. It takes the bytes in pieces of any length.
class Opener {
 public:
  explicit Opener(const Secret& key) : tagger_(key) {}
  void append(std::string_view bytes) { buffer_.append(bytes); }
  /// The text of the next message, or nothing yet. Errors: io, where the bytes are not the other end's, for ever after.
  [[nodiscard]] Result<std::optional<std::string>> next();
  /// A message has begun and is not whole.
  [[nodiscard]] bool is_within_message() const { return start_ < buffer_.size(); }

 private:
  Tagger tagger_;
  std::uint64_t number_ = 0;
  std::string buffer_;
  std::size_t start_ = 0;
  std::optional<std::size_t> length_;  ///< of the message at hand, once its tag has held
  bool is_broken_ = false;
};

/// One end of the connection. It never blocks. A thread may send while another one receives.
class SealedStream {
 public:
  SealedStream() = default;
  SealedStream(Descriptor socket, const Session& session);

  [[nodiscard]] bool is_open() const { return socket_.is_open(); }
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// What to wait for.
  [[nodiscard]] short events() const;
  [[nodiscard]] bool has_sent_all() const { return sent_ == out_.size(); }

  /// Queues a message, and sends what the connection takes. A stream that is closed takes and loses it.
  void send(std::string_view text) { send({std::as_bytes(std::span(text))}); }
  void send(std::initializer_list<std::span<const std::byte>> parts);
  /// Sends what the connection takes.
  void flush();
  /// Takes what has come. The stream is closed where the other end is gone; `next` still gives what has come.
  void receive();
  /// The text of the next message, or nothing yet. Errors: io naming the other end, where something else than its
  /// messages has come, for ever after. This end can still send.
  [[nodiscard]] Result<std::optional<std::string>> next();
  void close() { socket_.close(); }

 private:
  Descriptor socket_;
  std::string peer_;  ///< its address
  std::optional<Sealer> sealer_;
  std::optional<Opener> opener_;
  std::string out_;
  std::size_t sent_ = 0;
  std::deque<std::string> texts_;
  Status failure_;
};

}  // namespace tutti::tcp
