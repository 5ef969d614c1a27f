// SPDX-License-Identifier: Apache-2.0
#include "src/machine_file.h"

#include "harness/simulate/machine_file.h"
#include "harness/text/read_file.h"
#include "impl/types/names.h"
#include "src/program.h"

namespace tutti::program {

Result<harness::simulate::Machine> machine_of_file(const std::string& path) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, of_flag("--machine", harness::read_file(path, harness::kMostInSuite)));
  auto machine = harness::simulate::machine_from_toml(text);
  if (machine.is_ok()) return machine;
  return error(machine.status().code(), "--machine: '{}': {}", shown(path), machine.status().message());
}

}  // namespace tutti::program
