// SPDX-License-Identifier: Apache-2.0
// Gloo takes the arguments of a collective in an object, which is made once and may be used for any number of calls. So
// what is timed is the one function of Gloo.
#include "harness/backends/gloo/calls.h"

#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>
#include <type_traits>

#include "harness/backends/gloo/pairs.h"

namespace tutti::backend_gloo {
namespace {

char* bytes_at(std::byte* memory) { return reinterpret_cast<char*>(memory); }

template <class Options>
Call call(std::shared_ptr<Options> options, void (*function)(Options&)) {
  return {.start = {}, .finish = [options, function] { function(*options); }};
}

/// Gloo asks for a type, and takes its size. `input`: null where the output holds it.
template <class Options>
void set_reduction(Options& options, const Arguments& a, std::byte* input, std::byte* output) {
  const auto set = [&]<class T>(std::type_identity<T>) {
    if (input != nullptr) options.setInput(reinterpret_cast<T*>(input), a.count);
    options.setOutput(reinterpret_cast<T*>(output), a.count);
  };
  options.setReduceFunction(a.reduce);
  if (a.element_bytes == 1) set(std::type_identity<std::uint8_t>());
  if (a.element_bytes == 2) set(std::type_identity<std::uint16_t>());
  if (a.element_bytes == 4) set(std::type_identity<std::uint32_t>());
  if (a.element_bytes == 8) set(std::type_identity<std::uint64_t>());
}

Call all_reduce(const Arguments& a) {
  auto options = std::make_shared<gloo::AllreduceOptions>(a.context);
  set_reduction(*options, a, a.is_in_place ? nullptr : a.send, a.receive);
  return {.start = {}, .finish = [options] { gloo::allreduce(*options); }};
}

/// Each rank needs room for an output, which holds results at the root only.
Call reduce(const Arguments& a) {
  auto options = std::make_shared<gloo::ReduceOptions>(a.context);
  options->setRoot(a.root);
  const auto room = std::make_shared<std::vector<std::byte>>(a.is_root() ? 0 : a.bytes());
  set_reduction(*options, a, a.is_root() && a.is_in_place ? nullptr : a.send, a.is_root() ? a.receive : room->data());
  return {.start = {}, .finish = [options, room] { gloo::reduce(*options); }};
}

Call broadcast(const Arguments& a) {
  auto options = std::make_shared<gloo::BroadcastOptions>(a.context);
  if (a.is_root() && !a.is_in_place) options->setInput(bytes_at(a.send), a.bytes());
  options->setOutput(bytes_at(a.receive), a.bytes());
  options->setRoot(a.root);
  return call(options, gloo::broadcast);
}

Call gather(const Arguments& a) {
  auto options = std::make_shared<gloo::GatherOptions>(a.context);
  options->setInput(bytes_at(a.send), a.bytes());
  if (a.is_root()) options->setOutput(bytes_at(a.receive), a.all_bytes());
  options->setRoot(a.root);
  return call(options, gloo::gather);
}

Call all_gather(const Arguments& a) {
  auto options = std::make_shared<gloo::AllgatherOptions>(a.context);
  if (!a.is_in_place) options->setInput(bytes_at(a.send), a.bytes());
  options->setOutput(bytes_at(a.receive), a.all_bytes());
  return call(options, gloo::allgather);
}

Call all_gather_v(const Arguments& a) {
  auto options = std::make_shared<gloo::AllgathervOptions>(a.context);
  if (!a.is_in_place) options->setInput(bytes_at(a.send), a.bytes());
  options->setOutput(bytes_at(a.receive), a.receive_bytes);
  return call(options, gloo::allgatherv);
}

Call scatter(const Arguments& a) {
  auto options = std::make_shared<gloo::ScatterOptions>(a.context);
  std::vector<char*> blocks;
  for (int block = 0; block < a.seat.ranks; ++block) {
    blocks.push_back(bytes_at(a.send) + static_cast<std::size_t>(block) * a.bytes());
  }
  if (a.is_root()) options->setInputs(blocks, a.bytes());
  options->setOutput(bytes_at(a.receive), a.bytes());
  options->setRoot(a.root);
  return call(options, gloo::scatter);
}

Call all_to_all(const Arguments& a) {
  auto options = std::make_shared<gloo::AlltoallOptions>(a.context);
  options->setInput(bytes_at(a.send), a.all_bytes());
  options->setOutput(bytes_at(a.receive), a.all_bytes());
  return call(options, gloo::alltoall);
}

Call all_to_all_v(const Arguments& a) {
  auto options = std::make_shared<gloo::AlltoallvOptions>(a.context);
  options->setInput(bytes_at(a.send), std::vector<std::int64_t>(a.send_bytes.begin(), a.send_bytes.end()));
  options->setOutput(bytes_at(a.receive), std::vector<std::int64_t>(a.receive_bytes.begin(), a.receive_bytes.end()));
  return call(options, gloo::alltoallv);
}

Call barrier(const Arguments& a) { return call(std::make_shared<gloo::BarrierOptions>(a.context), gloo::barrier); }

constexpr Row kRows[] = {{.name = "broadcast", .make = broadcast},
                         {.name = "reduce", .make = reduce, .reduces = true},
                         {.name = "all_reduce", .make = all_reduce, .reduces = true},
                         {.name = "gather", .make = gather},
                         {.name = "all_gather", .make = all_gather},
                         {.name = "scatter", .make = scatter},
                         {.name = "all_to_all", .make = all_to_all, .overwrites = true},
                         {.name = "sendrecv", .make = sendrecv, .overwrites = true},
                         {.name = "pingpong", .make = pingpong},
                         {.name = "bandwidth", .make = one_window},
                         {.name = "bibandwidth", .make = both_windows, .overwrites = true},
                         {.name = "message_rate", .make = one_window},
                         {.name = "barrier", .make = barrier},
                         {.name = "all_gather_v", .make = all_gather_v},
                         {.name = "all_to_all_v", .make = all_to_all_v, .overwrites = true},
                         {.name = "send", .make = send},
                         {.name = "recv", .make = receive}};

}  // namespace

const Row* find_row(std::string_view collective) {
  for (const Row& row : kRows) {
    if (row.name == collective) return &row;
  }
  return nullptr;
}

std::string row_names() {
  std::string names;
  for (const Row& row : kRows) names.append(names.empty() ? "" : " ").append(row.name);
  return names;
}

}  // namespace tutti::backend_gloo
