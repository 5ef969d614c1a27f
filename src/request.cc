// SPDX-License-Identifier: Apache-2.0
#include "src/request.h"

#include "harness/cases/backend_name.h"
#include "src/references.h"

namespace tutti::program {

harness::SessionSpec session_of(const Settings& settings) {
  harness::SessionSpec spec;
  spec.ranks_as = settings.sweep.ranks_as;
  spec.seed = settings.sweep.seed;
  spec.timeout = settings.sweep.timeout;
  spec.conditions = settings.conditions;
  spec.backend_directories = backend_directories();
  for (const std::string& system : settings.sweep.backends) {
    if (harness::is_twin(system)) spec.twins.push_back(system);
  }
  return spec;
}

JobsRequest request_of(const Settings& settings) {
  return {.spec = session_of(settings),
          .cells = {},
          .launches = settings.sweep.launches,
          .reach = settings.reach,
          .are_backends_named = settings.are_backends_named,
          .says_left_out = !settings.is_quiet};
}

}  // namespace tutti::program
