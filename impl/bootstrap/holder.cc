// SPDX-License-Identifier: Apache-2.0
// The kernel lists all Unix sockets with their names and users over a netlink socket. So the user is found even if the
// socket accepts no connections.
#include "impl/bootstrap/holder.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

#include "impl/types/descriptor.h"

namespace tutti {
namespace {

/// In headers since Linux 5.3.
constexpr std::uint32_t kShowUser = 0x40;
constexpr int kUserAttribute = 7;

struct DiagRequest {
  nlmsghdr head;
  unix_diag_req what;
};

/// The user of the socket that `message` describes, if its name is `name`, which begins with a zero.
std::optional<uid_t> user_in(const nlmsghdr& message, std::string_view name) {
  const auto* const about = static_cast<const unix_diag_msg*>(NLMSG_DATA(&message));
  std::optional<uid_t> user;
  bool is_named_so = false;
  auto left = static_cast<int>(message.nlmsg_len - NLMSG_LENGTH(sizeof(*about)));
  for (const auto* one = reinterpret_cast<const rtattr*>(about + 1); RTA_OK(one, left); one = RTA_NEXT(one, left)) {
    const auto* const data = static_cast<const char*>(RTA_DATA(one));
    if (one->rta_type == UNIX_DIAG_NAME) is_named_so = std::string_view(data, RTA_PAYLOAD(one)) == name;
    if (one->rta_type == kUserAttribute && RTA_PAYLOAD(one) == sizeof(uid_t)) {
      std::memcpy(&user.emplace(), data, sizeof(uid_t));
    }
  }
  return is_named_so ? user : std::nullopt;
}

/// Nothing if no socket has the name, or the kernel does not list them.
std::optional<uid_t> holder_of(std::string_view name) {
  const Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!socket.is_open()) return {};
  const timeval patience = {.tv_sec = 1, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  DiagRequest request = {};
  request.head = {.nlmsg_len = sizeof(request),
                  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                  .nlmsg_seq = 0,
                  .nlmsg_pid = 0};
  request.what.sdiag_family = AF_UNIX;
  // A connection has its listener's name too, and no user before it is accepted.
  request.what.udiag_states = 1U << TCP_LISTEN | 1U << TCP_CLOSE;
  request.what.udiag_show = UDIAG_SHOW_NAME | kShowUser;
  if (::send(socket.get(), &request, sizeof(request), 0) != sizeof(request)) return {};
  const std::string whole = std::string(1, '\0').append(name);
  alignas(nlmsghdr) std::array<char, 32768> bytes;
  for (;;) {
    auto left = static_cast<int>(::recv(socket.get(), bytes.data(), bytes.size(), 0));
    if (left <= 0) return {};
    for (auto* one = reinterpret_cast<const nlmsghdr*>(bytes.data()); NLMSG_OK(one, left);
         one = NLMSG_NEXT(one, left)) {
      if (one->nlmsg_type != SOCK_DIAG_BY_FAMILY) return {};  // the end, or an error
      if (const auto user = user_in(*one, whole)) return user;
    }
  }
}

}  // namespace

Status of_another_user(uid_t user, pid_t process) {
  return error(Code::mismatch, "a process of user {}{} is there instead of one of user {}", user,
               process > 0 ? fmt::format(" (pid {})", process) : "", ::geteuid());
}

Status check_holder(std::string_view name) {
  const auto user = holder_of(name);
  return !user || *user == ::geteuid() ? Status() : of_another_user(*user, 0);
}

}  // namespace tutti
