// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/reference_call.h"

#include "harness/verify/inputs.h"

namespace tutti::harness::backends {

ReferenceCall::ReferenceCall(const Operation& what, int rank, bool is_in_place)
    : collective_(to_string(what.problem.collective)), dtype_(to_string(what.dtype)), op_(to_string(what.op)) {
  call.collective = collective_.c_str();
  call.dtype = dtype_.c_str();
  call.op = op_.c_str();
  call.root = what.problem.root;
  call.in_place = is_in_place ? 1 : 0;
  call.count = what.count;
  call.element_bytes = size_of(what.dtype);
  if (what.op == Op::premul_sum) {
    factor_ = factor_element(what.dtype, rank);
    call.factor = factor_.data();
  }
  if (has_window(what.problem.collective)) call.window = what.problem.pairing.window;
  if (what.problem.pairing.is_one_pair()) {
    call.first_of_pair = what.problem.pairing.first;
    call.second_of_pair = what.problem.pairing.second;
  }
  if (what.blocks != nullptr) add_blocks(what, rank);
}

void ReferenceCall::Arrays::add(const Place& place) {
  counts.push_back(place.count);
  displacements.push_back(place.first);
}

void ReferenceCall::add_blocks(const Operation& what, int rank) {
  const Collective form = what.problem.collective;
  const bool divides_both = tutti::divides_both(form);
  const int whose = is_rooted(form) ? what.problem.root : rank;
  for (int block = 0; block < what.problem.ranks; ++block) {
    if (divides_input(form)) send_.add(what.input_place(whose, block));
    if (divides_output(form)) receive_.add(what.output_place(whose, block));
  }
  call.count = divides_both ? 0 : what.blocks->own_count(rank);
  call.blocks = what.problem.ranks;
  if (divides_input(form)) {
    call.send_counts = send_.counts.data();
    call.send_displacements = send_.displacements.data();
  }
  if (divides_output(form)) {
    call.recv_counts = receive_.counts.data();
    call.recv_displacements = receive_.displacements.data();
  }
}

}  // namespace tutti::harness::backends
