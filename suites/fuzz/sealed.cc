// SPDX-License-Identifier: Apache-2.0
// Somebody on the wire between two ends that have greeted each other.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "impl/tcp/sealed_stream.h"
#include "suites/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

tcp::Secret key_of(int direction) {
  tcp::Secret key;
  key.bytes.fill(static_cast<std::byte>(direction));
  return key;
}

const std::vector<std::string>& texts() {
  static const std::vector<std::string> all{"hello", "", std::string(300, 'x'), "end"};
  return all;
}

/// The texts as they are on the wire.
std::vector<std::string> pieces_of(int direction) {
  tcp::Sealer sealer(key_of(direction));
  std::vector<std::string> pieces;
  for (const std::string& text : texts()) sealer.seal({std::as_bytes(std::span(text))}, pieces.emplace_back());
  return pieces;
}

struct Opened {
  std::size_t texts = 0;
  bool is_broken = false;
};

/// What comes out is what was put in, from its beginning on.
Opened open_all(std::string_view bytes, std::size_t at_once, int direction) {
  Opened opened;
  tcp::Opener opener(key_of(direction));
  while (!bytes.empty()) {
    opener.append(bytes.substr(0, at_once));
    bytes.remove_prefix(std::min(at_once, bytes.size()));
    for (;;) {
      const auto text = opener.next();
      if (!text.is_ok()) {
        check_message(text.status());
        opened.is_broken = true;
      }
      if (!text.is_ok() || !text.value()) break;
      TUTTI_ASSERT(!opened.is_broken, "a text after the first error");
      TUTTI_ASSERT(opened.texts < texts().size() && *text.value() == texts()[opened.texts], "'{}' was not sent then",
                   *text.value());
      ++opened.texts;
    }
  }
  return opened;
}

Opened open_in_pieces(std::string_view bytes, int direction = 1) {
  const Opened whole = open_all(bytes, std::max<std::size_t>(bytes.size(), 1), direction);
  const Opened in_pieces = open_all(bytes, 11, direction);
  TUTTI_ASSERT(whole.texts == in_pieces.texts && whole.is_broken == in_pieces.is_broken, "in pieces it is another");
  return whole;
}

/// Each byte on the wire is changed by one of `bytes`, as long as there are some.
void change(std::string_view bytes) {
  std::string wire;
  for (const std::string& piece : pieces_of(1)) wire += piece;
  bool is_changed = false;
  for (std::size_t i = 0; i < std::min(wire.size(), bytes.size()); ++i) {
    is_changed |= bytes[i] != 0;
    wire[i] = static_cast<char>(wire[i] ^ bytes[i]);
  }
  TUTTI_ASSERT(open_in_pieces(wire).is_broken == is_changed, "changed: {}", is_changed);
}

/// Messages of both directions in any order, some of them cut short or put together from two.
void move(std::string_view bytes) {
  const std::array pieces{pieces_of(1), pieces_of(2)};
  std::string wire, right;
  for (const std::string& piece : pieces[0]) right += piece;
  for (const char byte : bytes) {
    const auto what = static_cast<unsigned char>(byte);
    const std::string& piece = pieces[what >> 7U][what % texts().size()];
    const std::size_t quarter = what >> 2U & 3U;  // how much of it is left out, at which end
    const std::size_t cut = piece.size() * quarter / 4;
    wire += (what & 16U) != 0 ? piece.substr(cut) : piece.substr(0, piece.size() - cut);
  }
  const Opened opened = open_in_pieces(wire);
  const bool is_right = std::string_view(right).starts_with(wire);
  TUTTI_ASSERT(!is_right || !opened.is_broken, "the bytes are those that were sent");
}

}  // namespace

void sealed(std::string_view input) {
  const char kind = input.empty() ? ' ' : input.front();
  const std::string_view bytes = input.substr(std::min<std::size_t>(1, input.size()));
  if (kind == 'w') {
    constexpr int kUnheard = 3;  // of this direction the fuzzer has seen no message that it could repeat
    const Opened opened = open_in_pieces(bytes, kUnheard);
    TUTTI_ASSERT(opened.texts == 0, "a stranger is understood");
  }
  if (kind == 'c') change(bytes);
  if (kind == 'm') move(bytes);
}

}  // namespace tutti::fuzz
