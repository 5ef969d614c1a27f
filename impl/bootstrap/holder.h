// SPDX-License-Identifier: Apache-2.0
// The user that holds the name of an abstract Unix socket. Any user can take any name, so a name that another user
// holds is an error with that user's id.
#pragma once

#include <string_view>
#include <sys/types.h>

#include "impl/types/status.h"

namespace tutti {

/// mismatch: "a process of user 65534 (pid 17) is there instead of one of user 0".
[[nodiscard]] Status of_another_user(uid_t user, pid_t process);

/// Errors: mismatch if another user holds `name`. OK if this user does, if nobody does, or if it cannot be found out.
[[nodiscard]] Status check_holder(std::string_view name);

}  // namespace tutti
