// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/diagnose.h"

#include <array>
#include <cstring>

#include <fmt/format.h>

#include "harness/verify/buffers.h"
#include "harness/verify/suspect.h"

namespace tutti::harness::verify {
namespace {

/// Of outputs whose wrong elements all hold the poison.
Diagnosis not_written(const Operation& operation, int rank, const WrongOutput& wrong_output) {
  const CheckResult& result = wrong_output.result;
  if (result.wrong == result.checked) return {"output still holds the poison: nothing was written"};
  const int blocks = output_blocks(operation.problem, rank);
  Count filled = 0;  // blocks that are not empty
  bool are_last = true;
  for (int block = 0; block < blocks; ++block) {
    const Place place = operation.output_place(rank, block);
    if (place.count == 0) continue;
    ++filled;
    const Count last = place.first + place.count - 1;
    are_last &= std::ranges::any_of(wrong_output.wrong, [last](const WrongElement& one) { return one.index == last; });
    const bool is_all_of_it = result.wrong == place.count && result.first_bad == place.first && result.last_bad == last;
    const Origin origin = origin_of(operation.problem, rank, block);
    if (is_all_of_it && blocks > 1 && !is_reducing(operation.problem.collective)) {
      return {fmt::format("block {} was not written: rank {}'s contribution is missing", block, origin.first), true};
    }
  }
  if (are_last && result.wrong == filled) {
    return {fmt::format("the last element of {} was not written: the count is one too small",
                        filled == 1 ? "the block" : "each block"),
            true};
  }
  // A window of shorter messages is shorter on both sides: what is missing is missing at its end.
  const Count elements = operation.output_elements(rank);
  const bool are_at_end = result.first_bad == elements - filled && result.last_bad == elements - 1;
  if (has_window(operation.problem.collective) && result.wrong == filled && are_at_end) {
    return {
        fmt::format("the last {} elements of the window, one for each message, were not written: the count is one too "
                    "small",
                    filled),
        true};
  }
  return {fmt::format("{} elements still hold the poison: they were not written", wrong_output.poisoned)};
}

/// Of results that are rounded: what holds but for roundings.
std::string rounded_cause(const Suspect& suspect) {
  for (const auto hypothesis :
       {&Suspect::contribution_roundly, &Suspect::narrow, &Suspect::one_input, &Suspect::constant, &Suspect::lost}) {
    if (std::string text = (suspect.*hypothesis)(); !text.empty()) return text;
  }
  return {};
}

}  // namespace

Diagnosis diagnose(const Operation& operation, int rank, const WrongOutput& wrong_output) {
  if (wrong_output.poisoned == wrong_output.result.wrong) return not_written(operation, rank, wrong_output);
  if (operation.is_any_nan_right()) return {};  // their results are few, and fit too much
  const Suspect suspect(operation, rank, wrong_output);
  if (operation.is_rounded()) {
    std::string text = rounded_cause(suspect);
    return {.text = text, .is_cause = !text.empty()};
  }
  const bool reduces = is_reducing(operation.problem.collective);
  std::string text;
  const auto otherwise = [&](bool asks, std::string (Suspect::*hypothesis)() const) {
    if (asks && text.empty()) text = (suspect.*hypothesis)();
  };
  otherwise(suspect.is_lonely(), &Suspect::flipped);
  otherwise(suspect.is_lonely() && reduces, &Suspect::flipped_on_the_way);
  otherwise(true, &Suspect::stale);
  otherwise(reduces && operation.problem.ranks > 2, &Suspect::contribution);
  otherwise(reduces, &Suspect::undivided);
  otherwise(reduces, &Suspect::one_input);
  otherwise(reduces, &Suspect::contribution);
  otherwise(is_prefix(operation.problem.collective), &Suspect::other_prefix);
  otherwise(true, &Suspect::swapped_parts);
  otherwise(true, &Suspect::other_count);
  otherwise(!reduces, &Suspect::other_root);
  otherwise(!reduces, &Suspect::other_block);
  otherwise(true, &Suspect::shifted);
  otherwise(true, &Suspect::constant);
  otherwise(true, &Suspect::flipped);
  otherwise(reduces, &Suspect::narrow);
  otherwise(reduces, &Suspect::contribution_roundly);
  otherwise(reduces, &Suspect::flipped_on_the_way);
  otherwise(true, &Suspect::lost);
  const bool is_cause = !text.empty();
  return {.text = std::move(text), .is_cause = is_cause};
}

std::uint64_t element_bits(std::span<const std::byte> bytes, Dtype dtype) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), size_of(dtype));
  return bits;
}

std::uint64_t poison_bits(Dtype dtype, std::uint64_t salt, Count index) {
  std::array<std::byte, 8> bytes;
  fill_poison(bytes, salt);
  return element_bits(std::span(bytes).subspan(size_of(dtype) == 1 ? static_cast<std::size_t>(index % 2) : 0), dtype);
}

std::string element_text(std::uint64_t bits, Dtype dtype) {
  return visit_dtype(dtype, [bits]<class T>(std::type_identity<T>) {
    const T value = value_of<T>(bits);
    constexpr std::size_t kDigits = 2 * sizeof(T);
    if constexpr (std::is_arithmetic_v<T>) {
      return fmt::format("{} (0x{:0{}x})", +value, bits, kDigits);  // a number, also where it is a character
    } else {
      return fmt::format("{} (0x{:0{}x})", value.to_float(), bits, kDigits);
    }
  });
}

}  // namespace tutti::harness::verify
