// SPDX-License-Identifier: Apache-2.0
// `import tutti_torch` makes the backend "tutti" known to torch.distributed.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "impl/bindings/torch/process_group.h"

namespace {

using tutti::bindings::GroupBase;
using tutti::bindings::ProcessGroup;
using tutti::bindings::StorePointer;

// torch knows the base alone, so that is what it is given.
c10::intrusive_ptr<GroupBase> create(const StorePointer& store, int rank, int size,
                                     const std::chrono::duration<float>& timeout, const std::string& name) {
  return c10::make_intrusive<ProcessGroup>(store, rank, size,
                                           std::chrono::duration_cast<std::chrono::milliseconds>(timeout), name);
}

}  // namespace

PYBIND11_MODULE(tutti_torch, module) {
  module.doc() = "tutti's collectives for torch.distributed: init_process_group(\"tutti\")";
  // torch's own types are to be known before a function names them.
  const py::object backend = py::module::import("torch.distributed").attr("Backend");
  module.def(
      "create", &create, py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"),
      py::arg("name") = "tutti", py::call_guard<py::gil_scoped_release>(),
      "A process group of all ranks that share the store. `name` begins its messages, and what the profiler shows.");
  module.def(
      "step", [](const std::string& name) { tutti::bindings::Recorder::of_process().begin_step(name); },
      py::arg("name") = "",
      "With TUTTI_TORCH_RECORD: the calls from now on are of another step, of that name or of its number.");
  module.attr("torch_version") = TORCH_VERSION;
  // Registered twice, torch complains, as where a module is loaded anew.
  if (py::hasattr(backend, "TUTTI")) return;
#if TORCH_VERSION_MAJOR >= 2
  backend.attr("register_backend")("tutti", module.attr("create"), py::arg("devices") = py::make_tuple("cpu"));
#else
  backend.attr("register_backend")("tutti", module.attr("create"));
#endif
}
