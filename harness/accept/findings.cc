// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/findings.h"

namespace tutti::harness::accept {

std::string_view to_string(Class what) {
  switch (what) {
    case Class::none:
      return "none";
    case Class::wrong:
      return "wrong";
    case Class::dead:
      return "dead";
    case Class::hung:
      return "hung";
    case Class::node:
      return "node";
    case Class::nic:
      return "nic";
    case Class::nic_out:
      return "nic-out";
    case Class::nic_in:
      return "nic-in";
    case Class::link:
      return "link";
    case Class::link_dir:
      return "link-dir";
    case Class::uplink:
      return "uplink";
    case Class::uplink_dir:
      return "uplink-dir";
    case Class::too_fast:
      return "too fast";
    case Class::unsteady:
      return "unsteady";
    case Class::split:
      return "split";
    case Class::fleet:
      return "fleet";
    case Class::either:
      return "either";
  }
  return "?";
}

}  // namespace tutti::harness::accept
