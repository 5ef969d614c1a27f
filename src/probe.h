// SPDX-License-Identifier: Apache-2.0
// Finds out whether a reference can be started here, before anything is measured. It never happens in the launcher
// itself: the library of a reference is loaded by processes of its own, one library in each.
#pragma once

#include <map>
#include <span>
#include <string>

#include "impl/types/status.h"
#include "src/references.h"

namespace tutti::program {

/// Who starts ranks of the reference `name`, as a child says. One that this build has made needs no trial. Of any other
/// two ranks are started, which must find each other. Asked once per process and reference; takes 0.1 s, with ranks 1 s
/// or so, at most a minute. Ends the program where it is interrupted. Errors: unavailable with the reason, whatever it
/// is.
[[nodiscard]] Result<Starter> try_to_start(const std::string& name);
/// Whether two ranks of each of these references can be started here, by the words by which a job starts them, and find
/// each other. All are tried at the same time, each by a child; takes 1 s or so, at most a minute. Ends the program if
/// it is interrupted. Errors: unavailable with the reason.
[[nodiscard]] std::map<std::string, Status> try_ranks(std::span<const std::string> names);
/// Whether the library says that nothing of this machine hints at the device that it is for: only who names it need be
/// told then. Asks as try_to_start does.
[[nodiscard]] bool is_for_other_machines(const std::string& name);
/// How a setting of a library is handed to it: as a variable `prefix` NAME of the environment.
struct SettingForm {
  std::string prefix;  ///< empty: it has no settings
  std::string flag;    ///< by which words of the start command set it too: `flag` NAME VALUE; empty: none
  std::string lookup;  ///< names by which ranks look settings up: short, or whole with the prefix; empty: they do not
};
/// Asks as try_to_start does; without a prefix where that fails.
[[nodiscard]] SettingForm setting_form_of(const std::string& name);
/// Its library and version, as it says them: "Open MPI 4.1.4". Asks as try_to_start does; empty where that fails.
[[nodiscard]] std::string library_of(const std::string& name);

}  // namespace tutti::program
