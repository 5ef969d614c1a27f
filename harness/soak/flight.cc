// SPDX-License-Identifier: Apache-2.0
#include "harness/soak/flight.h"

#include <algorithm>

#include "harness/machine/clock.h"
#include "harness/verify/check.h"
#include "harness/verify/inputs.h"

namespace tutti::harness::soak {
Result<std::unique_ptr<Flight>> Flight::post(Group& group, const SoakOperation& operation) {
  std::unique_ptr<Flight> flight(new Flight(group, operation));
  flight->entered_ns_ = monotonic_ns();
  TUTTI_RETURN_IF_ERROR(operation.is_exchange ? flight->post_exchange() : flight->post_collective());
  return flight;
}

Result<GuardedBuffer> Flight::buffer_of(std::size_t bytes, std::uint64_t salt) const {
  const std::size_t element = size_of(operation_.what.dtype);
  return GuardedBuffer::create({.bytes = bytes,
                                .guard_bytes = 256,
                                .misalignment = salt % 2 == 0 ? 0 : element,
                                .allocator = group_.memory(operation_.buffers)});
}

Status Flight::post_collective() {
  const Operation& what = operation_.what;
  const int rank = group_.rank();
  const auto bytes_of = [&what](Count elements) { return static_cast<std::size_t>(elements) * size_of(what.dtype); };
  const std::size_t inputs = bytes_of(what.input_elements(rank)), outputs = bytes_of(what.output_elements(rank));
  const bool is_in_place = operation_.is_in_place;
  TUTTI_ASSIGN_OR_RETURN(output_, buffer_of(is_in_place ? std::max(inputs, outputs) : outputs, what.salt));
  out_ = in_ = output_->payload();
  if (is_in_place) {
    const Count shift = what.shift_in_place(rank);
    in_ = in_.subspan(bytes_of(std::max<Count>(0, shift)), inputs);
    out_ = out_.subspan(bytes_of(std::max<Count>(0, -shift)), outputs);
  } else {
    TUTTI_ASSIGN_OR_RETURN(input_, buffer_of(inputs, what.salt / 2));
    in_ = input_->payload();
  }
  output_->kind().fill_poison(output_->payload(), what.salt);
  output_->kind().fill_input(in_, input_of(what, rank));
  TUTTI_ASSIGN_OR_RETURN(auto posted, group_.post({.what = what,
                                                   .input = in_.data(),
                                                   .output = out_.data(),
                                                   .is_in_place = is_in_place,
                                                   .buffers = operation_.buffers,
                                                   .algorithm = operation_.algorithm}));
  pending_.push_back(std::move(posted));
  return {};
}

int Flight::sends_to() const { return (group_.rank() + operation_.shift) % group_.ranks(); }
int Flight::receives_from() const { return (group_.rank() + group_.ranks() - operation_.shift) % group_.ranks(); }

Status Flight::post_exchange() {
  const Operation& what = operation_.what;
  const int rank = group_.rank();
  const Count sent = exchanged(operation_, rank, sends_to()), received = exchanged(operation_, receives_from(), rank);
  const std::size_t element = size_of(what.dtype);
  TUTTI_ASSIGN_OR_RETURN(input_, buffer_of(static_cast<std::size_t>(sent) * element, what.salt / 2));
  TUTTI_ASSIGN_OR_RETURN(output_, buffer_of(static_cast<std::size_t>(received) * element, what.salt));
  in_ = input_->payload();
  out_ = output_->payload();
  output_->kind().fill_poison(out_, what.salt);
  input_->kind().fill_input(in_, input_of(what, rank));
  TUTTI_ASSIGN_OR_RETURN(
      auto send, group_.post_send({.buffer = in_.data(), .count = sent, .dtype = what.dtype, .peer = sends_to()}));
  pending_.push_back(std::move(send));
  TUTTI_ASSIGN_OR_RETURN(
      auto receive,
      group_.post_recv({.buffer = out_.data(), .count = received, .dtype = what.dtype, .peer = receives_from()}));
  pending_.push_back(std::move(receive));
  return {};
}

Result<bool> Flight::test() {
  while (!pending_.empty()) {
    TUTTI_ASSIGN_OR_RETURN(const bool is_done, pending_.back()->test());
    if (!is_done) return false;
    pending_.pop_back();
  }
  left_ns_ = monotonic_ns();
  return true;
}

Status Flight::wait(std::chrono::nanoseconds timeout) {
  for (; !pending_.empty(); pending_.pop_back()) TUTTI_RETURN_IF_ERROR(pending_.back()->wait(timeout));
  left_ns_ = monotonic_ns();
  return {};
}

std::string Flight::verify() const {
  std::string damage = operation_.is_exchange ? verify_exchange() : verify_collective();
  for (const auto* const buffer : {&input_, &output_}) {
    if (!damage.empty() || !*buffer) continue;
    if (const auto guard = (*buffer)->check_guards()) damage = guard->text((*buffer)->payload().size());
  }
  return damage;
}

std::string Flight::verify_collective() const {
  const Operation& what = operation_.what;
  if (!has_data(what.problem.collective)) return {};
  const int rank = group_.rank();
  Oracle oracle(what);
  const CheckResult output = output_->kind().verify_output(oracle, {.rank = rank, .bytes = out_});
  if (!output.is_ok()) return fmt::format("output: {}", output.text());
  if (what.blocks != nullptr && output_blocks(what.problem, rank) > 0) {
    const bool held_input = operation_.is_in_place && in_.size() == output_->payload().size();
    const HostView whole = output_->kind().view(out_);
    const CheckResult gaps = verify_gaps(what, {.rank = rank, .bytes = whole.bytes()}, held_input);
    if (!gaps.is_ok()) return fmt::format("output: {}", gaps.text());
  }
  return verify_input();
}

/// In place, what of the input is not the output's either.
std::string Flight::verify_input() const {
  const Operation& what = operation_.what;
  const int rank = group_.rank();
  std::vector<std::byte> rest(in_.size());
  output_->kind().read(rest, in_.data());
  if (operation_.is_in_place && !out_.empty()) {
    if (in_.size() <= out_.size()) return {};
    const auto begin = static_cast<std::size_t>(out_.data() - in_.data());
    fill_input(std::span(rest).subspan(begin, out_.size()), input_of(what, rank),
               static_cast<Count>(begin / size_of(what.dtype)));
  }
  const CheckResult input = verify_input_unchanged(what, {.rank = rank, .bytes = rest});
  return input.is_ok() ? "" : fmt::format("the input was overwritten: {}", input.text());
}

std::string Flight::verify_exchange() const {
  const Operation& what = operation_.what;
  const auto compare = [&](const char* name, std::span<const std::byte> there, int source) -> std::string {
    const HostView here = output_->kind().view(there);
    const std::span<const std::byte> bytes = here.bytes();
    std::vector<std::byte> expected(bytes.size());
    fill_input(expected, input_of(what, source));
    const auto wrong = std::ranges::mismatch(bytes, expected).in1;
    if (wrong == bytes.end()) return {};
    return fmt::format("{}: byte {} of {} is wrong, a message of rank {}", name, wrong - bytes.begin(), bytes.size(),
                       source);
  };
  std::string damage = compare("received", out_, receives_from());
  return damage.empty() ? compare("the sent buffer was overwritten", in_, group_.rank()) : damage;
}

std::string Flight::name() const {
  const Operation& what = operation_.what;
  const std::string on = fmt::format("on communicator {} of {} ranks", operation_.communicator, what.problem.ranks);
  if (operation_.is_exchange) {
    return fmt::format("operation {} (send and receive {} of {} by {}, {})", what.salt - 1, what.count,
                       to_string(what.dtype), operation_.shift, on);
  }
  const std::string length = what.blocks == nullptr ? fmt::format("of {}", what.count)
                                                    : fmt::format("of {} in blocks, the longest of {}",
                                                                  what.blocks->most_elements(), what.blocks->largest());
  return fmt::format("operation {} ({} {} {} {}, root {}, {}, {}, {})", what.salt - 1,
                     to_string(what.problem.collective), to_string(what.dtype), to_string(what.op), length,
                     what.problem.root, operation_.is_in_place ? "in place" : "out of place",
                     to_string(operation_.buffers), on);
}

}  // namespace tutti::harness::soak
