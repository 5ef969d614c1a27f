// SPDX-License-Identifier: Apache-2.0
#include "impl/collective/alike.h"

namespace tutti {

bool ranks_are_alike(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::barrier:
    case Collective::sendrecv:
      return true;
    default:
      return false;
  }
}

}  // namespace tutti
