// SPDX-License-Identifier: Apache-2.0
// `import tutti_torch` makes the backend "tutti" known to torch.distributed.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "impl/bindings/torch/meeting.h"
#include "impl/bindings/torch/process_group.h"
#include "impl/bindings/torch/shared.h"

namespace {

using tutti::bindings::GroupBase;
using tutti::bindings::Members;
using tutti::bindings::ProcessGroup;
using tutti::bindings::StorePointer;

// torch knows the base alone, so that is what it is given.
c10::intrusive_ptr<GroupBase> create(const StorePointer& store, int rank, int size,
                                     const std::chrono::duration<float>& timeout, const std::string& name) {
  return c10::make_intrusive<ProcessGroup>(store, rank, size,
                                           std::chrono::duration_cast<std::chrono::milliseconds>(timeout), name);
}

// What torch calls. With Python's lock, but while the ranks meet.
c10::intrusive_ptr<GroupBase> create_of_torch(const py::object& options, const py::object&) {
  static auto* const all =
      new std::weak_ptr<tutti::embed::World>;  // of the group that is made first, and is torch's own
  const auto store = options.attr("store").cast<StorePointer>();
  const auto rank = options.attr("group_rank").cast<int>();
  const auto size = options.attr("group_size").cast<int>();
  const auto timeout = options.attr("timeout").cast<std::chrono::milliseconds>();
  Members members{.ranks = options.attr("global_ranks_in_group").cast<std::vector<int>>()};
  const bool is_all = members.ranks.empty();
  if (!is_all) members.all = all->lock();
  c10::intrusive_ptr<ProcessGroup> group;
  {
    const py::gil_scoped_release unlocked;
    group = c10::make_intrusive<ProcessGroup>(store, rank, size, timeout, "tutti", members);
    members.all = nullptr;
  }
  if (is_all) *all = group->world();
  return group;
}

// `group`: as torch's functions take it; none: the group of all ranks.
py::list stragglers_of_torch(py::object group) {
  if (group.is_none()) {
    group = py::module::import("torch.distributed.distributed_c10d").attr("_get_default_group")();
  }
  if (py::hasattr(group, "_get_backend")) {
    group = group.attr("_get_backend")(py::module::import("torch").attr("device")("cpu"));
  }
  const auto base = group.cast<c10::intrusive_ptr<GroupBase>>();
  auto* const own = dynamic_cast<ProcessGroup*>(base.get());
  if (own == nullptr) throw py::type_error("stragglers: the group is of another backend: it takes those of tutti");
  std::int64_t calls = 0;
  std::vector<tutti::embed::Straggler> ranks;
  {
    const py::gil_scoped_release unlocked;
    ranks = own->stragglers(calls);
  }
  py::list all;
  for (const tutti::embed::Straggler& one : ranks) {
    all.append(py::dict(py::arg("rank") = one.rank, py::arg("last") = one.last, py::arg("calls") = calls,
                        py::arg("share") = one.share, py::arg("straggler") = one.is_one));
  }
  return all;
}

}  // namespace

PYBIND11_MODULE(tutti_torch, module) {
  module.doc() = "tutti's collectives for torch.distributed: init_process_group(\"tutti\")";
  tutti::bindings::share_memory_if_asked();
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
  module.def(
      "stragglers", &stragglers_of_torch, py::arg("group") = py::none(),
      "For which ranks of the group the others wait in all_reduce, all_gather, reduce_scatter, all_to_all and "
      "barrier. All ranks call it. A dict for each rank, the costliest first: rank; last: to how many of `calls` it "
      "came last; share: of the time, that another rank waited for it; straggler: whether it is one.");
  module.attr("torch_version") = TORCH_VERSION;
  const py::cpp_function create_for_torch(&create_of_torch);
  // Registered twice, torch complains, as where a module is loaded anew.
  if (py::hasattr(backend, "TUTTI")) return;
#if TORCH_VERSION_MAJOR >= 2
  backend.attr("register_backend")("tutti", create_for_torch, true, py::arg("devices") = py::make_tuple("cpu"));
#else
  backend.attr("register_backend")("tutti", create_for_torch, true);
#endif
}
