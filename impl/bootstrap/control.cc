// SPDX-License-Identifier: Apache-2.0
// Frames on the wire: magic, bytes of the type, bytes of the text (three 32-bit words of this machine), type, text.
#include "impl/bootstrap/control.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "impl/bootstrap/holder.h"

namespace tutti {
namespace {

constexpr std::uint32_t kMagic = 0x74757401;  // "tut", version 1
constexpr std::size_t kMaxDescriptors = 8;
using Header = std::array<std::uint32_t, 3>;

Status system_error(std::string_view what) { return error(Code::io, "{}: {}", what, std::strerror(errno)); }

struct Address {
  sockaddr_un name = {};
  socklen_t bytes = 0;
};

Result<Address> abstract_address(std::string_view name) {
  Address address;
  if (name.empty() || name.size() + 1 > sizeof(address.name.sun_path)) {
    return error(Code::invalid_argument, "socket name '{}' has {} bytes; 1 to {} fit", name, name.size(),
                 sizeof(address.name.sun_path) - 1);
  }
  address.name.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.name.sun_path + 1);  // the leading zero makes it abstract
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

}  // namespace

std::string encode(const Frame& frame) {
  const Header header = {kMagic, static_cast<std::uint32_t>(frame.type.size()),
                         static_cast<std::uint32_t>(frame.text.size())};
  std::string bytes(sizeof(header), '\0');
  std::memcpy(bytes.data(), header.data(), sizeof(header));
  return bytes.append(frame.type).append(frame.text);
}

Result<std::optional<Frame>> FrameReader::next() {
  const std::size_t available = buffer_.size() - start_;
  Header header;
  if (available < sizeof(header)) return std::optional<Frame>();
  std::memcpy(header.data(), buffer_.data() + start_, sizeof(header));
  const std::size_t type_bytes = header[1];
  const std::size_t text_bytes = header[2];
  if (header[0] != kMagic || type_bytes > kMaxTypeBytes || text_bytes > kMaxTextBytes) {
    return error(Code::io, "not a message: it starts with the words {:#x} {:#x} {:#x}", header[0], header[1],
                 header[2]);
  }
  if (available < sizeof(header) + type_bytes + text_bytes) return std::optional<Frame>();
  Frame frame;
  frame.type = buffer_.substr(start_ + sizeof(header), type_bytes);
  frame.text = buffer_.substr(start_ + sizeof(header) + type_bytes, text_bytes);
  start_ += sizeof(header) + type_bytes + text_bytes;
  if (start_ == buffer_.size() || start_ > (std::size_t{1} << 20)) {
    buffer_.erase(0, start_);
    start_ = 0;
  }
  return std::optional<Frame>(std::move(frame));
}

Result<Descriptor> listen_at(std::string_view name, int backlog) {
  TUTTI_ASSIGN_OR_RETURN(const Address address, abstract_address(name));
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return system_error("cannot make a control socket");
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.name), address.bytes) == 0 &&
      ::listen(socket.get(), backlog) == 0) {
    return socket;
  }
  const int failure = errno;
  if (failure == EADDRINUSE) {
    constexpr std::chrono::milliseconds kPatience(100);
    const Status holder = connect_to(name, kPatience).status();
    if (holder.code() == Code::mismatch) return holder;
    if (!holder.is_ok()) TUTTI_RETURN_IF_ERROR(check_holder(name));
  }
  return error(failure == EADDRINUSE ? Code::unavailable : Code::io, "cannot listen at the abstract socket '{}': {}",
               name, std::strerror(failure));
}

Result<Descriptor> connect_to(std::string_view name, std::chrono::nanoseconds most) {
  using Clock = std::chrono::steady_clock;
  TUTTI_ASSIGN_OR_RETURN(const Address address, abstract_address(name));
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return system_error("cannot make a control socket");
  for (const auto end = Clock::now() + most;;) {
    // Those that wait for room are let in by turns, so other users who wait too keep this process out for a while only.
    limit_waits(socket.get(), std::max<std::chrono::nanoseconds>(end - Clock::now(), std::chrono::milliseconds(1)));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.name), address.bytes) == 0) break;
    if (errno == EINTR && Clock::now() < end) continue;
    if (errno == EAGAIN || errno == EINTR) {
      TUTTI_RETURN_IF_ERROR(check_holder(name));
      return error(Code::timeout,
                   "the process that listens at the abstract socket '{}' has accepted no process for {} s", name,
                   std::chrono::duration<double>(most).count());
    }
    if (errno != ECONNREFUSED) return system_error(fmt::format("cannot connect to the abstract socket '{}'", name));
    return error(Code::unavailable, "no process listens at the abstract socket '{}': {}", name, std::strerror(errno));
  }
  TUTTI_RETURN_IF_ERROR(check_peer(socket.get()).status());
  limit_waits(socket.get(), {});
  return socket;
}

Result<pid_t> check_peer(int socket) {
  ucred who = {};
  socklen_t bytes = sizeof(who);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) {
    return system_error("cannot find out which user is at the other end of a socket");
  }
  if (who.uid != ::geteuid()) return of_another_user(who.uid, who.pid);
  return who.pid;
}

void limit_waits(int socket, std::chrono::nanoseconds most) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(most);
  const timeval time = {.tv_sec = whole.count(),
                        .tv_usec = std::chrono::ceil<std::chrono::microseconds>(most - whole).count()};
  for (const int which : {SO_RCVTIMEO, SO_SNDTIMEO}) ::setsockopt(socket, SOL_SOCKET, which, &time, sizeof(time));
}

Status send_frame(int socket, const Frame& frame, std::span<const int> descriptors) {
  if (frame.type.size() > kMaxTypeBytes || frame.text.size() > kMaxTextBytes || descriptors.size() > kMaxDescriptors) {
    return error(Code::invalid_argument, "a message of {} + {} bytes is too long: at most {} + {}", frame.type.size(),
                 frame.text.size(), kMaxTypeBytes, kMaxTextBytes);
  }
  const std::string bytes = encode(frame);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control = {};
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    iovec part = {const_cast<char*>(bytes.data()) + sent, bytes.size() - sent};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (sent == 0 && !descriptors.empty()) {  // they travel with the first byte
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(descriptors.size_bytes());
      std::memcpy(CMSG_DATA(head), descriptors.data(), descriptors.size_bytes());
    }
    const ssize_t n = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(fmt::format("cannot send '{}' on the control connection", frame.type));
    sent += static_cast<std::size_t>(n);
  }
  return Status();
}

Result<Frame> receive_frame(int socket, FrameReader& reader, std::vector<Descriptor>& descriptors) {
  for (;;) {
    TUTTI_ASSIGN_OR_RETURN(std::optional<Frame> frame, reader.next());
    if (frame) return std::move(*frame);
    std::array<char, 65536> bytes;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control;
    iovec part = {bytes.data(), bytes.size()};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return error(Code::timeout, "nothing has come over the control connection");
    if (n < 0 && errno != ECONNRESET) return system_error("cannot read from the control connection");
    if (n <= 0) return error(Code::aborted, "the control connection was closed");
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int number = -1;
        std::memcpy(&number, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
        descriptors.emplace_back(number);
      }
    }
    reader.append(std::string_view(bytes.data(), static_cast<std::size_t>(n)));
  }
}

}  // namespace tutti
