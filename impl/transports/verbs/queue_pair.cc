// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/verbs/queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tutti::verbs {
namespace {

constexpr std::uint32_t kPacketNumbers = (1U << 24U) - 1;
/// 4.096 us * 2^16 is a quarter of a second. After seven of them in vain, 2 s, the peer counts as gone. The kernel says
/// sooner, through the connection beside it, that a process has died.
constexpr std::uint8_t kTimeout = 16;
constexpr std::uint8_t kRetries = 7;
constexpr std::uint8_t kNotReadyTimer = 12;  // never waited for: a write needs nothing posted by the peer
constexpr std::uint8_t kHops = 64;

std::string reason(int number) { return std::strerror(number); }

}  // namespace

Result<std::unique_ptr<Device>> Device::open(const Port& port) {
  std::unique_ptr<Device> device(new Device(port));
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  if (list == nullptr) return error(Code::unavailable, "no RDMA devices to be seen: {}", reason(errno));
  const std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)> all(list, &ibv_free_device_list);
  for (int i = 0; i < count && device->context_ == nullptr; ++i) {
    if (port.device == list[i]->name) device->context_ = ibv_open_device(list[i]);
  }
  if (device->context_ == nullptr) return error(Code::unavailable, "cannot open {}: {}", to_text(port), reason(errno));
  device->domain_ = ibv_alloc_pd(device->context_);
  if (device->domain_ == nullptr) return error(Code::io, "cannot use {}: {}", to_text(port), reason(errno));
  if (const int failure = ibv_query_port(device->context_, port.number, &device->attributes_); failure != 0) {
    return error(Code::io, "{} does not say how it is: {}", to_text(port), reason(failure));
  }
  return device;
}

Device::~Device() {
  if (domain_ != nullptr) ibv_dealloc_pd(domain_);
  if (context_ != nullptr) ibv_close_device(context_);
}

Result<std::unique_ptr<QueuePair>> QueuePair::make(const Device& device, std::span<std::byte> piece) {
  std::unique_ptr<QueuePair> made(new QueuePair(device));
  const std::string where = to_text(device.port_);
  made->memory_ =
      ibv_reg_mr(device.domain_, piece.data(), piece.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (made->memory_ == nullptr) {
    return error(Code::resource, "{} cannot register {} bytes: {}{}", where, piece.size(), reason(errno),
                 errno == ENOMEM ? "; `ulimit -l` says how much memory may be locked" : "");
  }
  made->done_ = ibv_create_cq(device.context_, kDepth + 1, nullptr, nullptr, 0);
  if (made->done_ == nullptr) return error(Code::resource, "{} has no completion queue: {}", where, reason(errno));
  ibv_qp_init_attr wanted = {};
  wanted.send_cq = wanted.recv_cq = made->done_;
  wanted.cap = {
      .max_send_wr = kDepth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = kInline};
  wanted.qp_type = IBV_QPT_RC;
  made->pair_ = ibv_create_qp(device.domain_, &wanted);
  if (made->pair_ == nullptr) {
    return error(Code::unavailable, "{} has no reliable connection of {} writes with {} bytes inline: {}", where,
                 static_cast<int>(kDepth), kInline, reason(errno));
  }
  // Any will do: packets of an earlier connection with this number are told from these.
  made->first_packet_ = (made->pair_->qp_num * 0x9e3779b9U) & kPacketNumbers;
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = device.port_.number;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  const int failure =
      ibv_modify_qp(made->pair_, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (failure != 0) return error(Code::io, "{} does not prepare a connection: {}", where, reason(failure));
  return made;
}

QueuePair::~QueuePair() {
  if (pair_ != nullptr) ibv_destroy_qp(pair_);
  if (done_ != nullptr) ibv_destroy_cq(done_);
  if (memory_ != nullptr) ibv_dereg_mr(memory_);
}

Hello QueuePair::hello() const {
  return {.memory = reinterpret_cast<std::uintptr_t>(memory_->addr),
          .bytes = memory_->length,
          .key = memory_->rkey,
          .queue_pair = pair_->qp_num,
          .first_packet = first_packet_,
          .lid = device_.attributes_.lid,
          .mtu = static_cast<std::uint8_t>(device_.attributes_.active_mtu),
          .is_ethernet = device_.port_.is_ethernet,
          .gid = device_.port_.gid};
}

Status QueuePair::connect(const Hello& peer) {
  const Hello mine = hello();
  if (peer.bytes != mine.bytes || peer.is_ethernet != mine.is_ethernet) {
    return error(Code::mismatch, "has registered {} bytes on {}, this rank {} on {}", peer.bytes,
                 peer.is_ethernet != 0 ? "Ethernet" : "InfiniBand", mine.bytes,
                 mine.is_ethernet != 0 ? "Ethernet" : "InfiniBand");
  }
  peer_memory_ = peer.memory;
  peer_key_ = peer.key;
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(std::min(peer.mtu, mine.mtu));
  attributes.dest_qp_num = peer.queue_pair;
  attributes.rq_psn = peer.first_packet;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = kNotReadyTimer;
  attributes.ah_attr.port_num = device_.port_.number;
  attributes.ah_attr.dlid = peer.lid;
  attributes.ah_attr.is_global = mine.is_ethernet;
  std::memcpy(attributes.ah_attr.grh.dgid.raw, peer.gid.data(), peer.gid.size());
  attributes.ah_attr.grh.sgid_index = device_.port_.gid_index;
  attributes.ah_attr.grh.hop_limit = kHops;
  int failure = ibv_modify_qp(pair_, &attributes,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (failure == 0) {
    attributes = {};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = kTimeout;
    attributes.retry_cnt = kRetries;
    attributes.rnr_retry = kRetries;
    attributes.sq_psn = first_packet_;
    attributes.max_rd_atomic = 1;
    failure = ibv_modify_qp(
        pair_, &attributes,
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  }
  if (failure == 0) return {};
  return error(Code::io, "is not connected from {} to {}: {}", to_text(device_.port_), to_text(peer.gid),
               reason(failure));
}

Result<std::size_t> QueuePair::post(std::span<const Write> writes) {
  constexpr std::size_t kMostAtOnce = 16;
  std::array<ibv_send_wr, kMostAtOnce> requests;
  std::array<ibv_sge, kMostAtOnce> parts;
  const std::size_t count = std::min({writes.size(), kMostAtOnce, static_cast<std::size_t>(kDepth - under_way_)});
  for (std::size_t i = 0; i < count; ++i) {
    const Write& write = writes[i];
    parts[i] = {.addr = reinterpret_cast<std::uintptr_t>(write.from), .length = write.bytes, .lkey = memory_->lkey};
    requests[i] = {};
    requests[i].next = i + 1 < count ? &requests[i + 1] : nullptr;
    requests[i].sg_list = &parts[i];
    requests[i].num_sge = 1;
    requests[i].opcode = IBV_WR_RDMA_WRITE;
    requests[i].wr.rdma.remote_addr = peer_memory_ + write.to;
    requests[i].wr.rdma.rkey = peer_key_;
    if (write.is_inline) requests[i].send_flags |= IBV_SEND_INLINE;
    ++unsignalled_;
    if (unsignalled_ <= kBetweenSignals) continue;
    requests[i].send_flags |= IBV_SEND_SIGNALED;
    requests[i].wr_id = static_cast<std::uint64_t>(unsignalled_);  // so many are done with it
    unsignalled_ = 0;
  }
  if (count == 0) return count;
  ibv_send_wr* refused = nullptr;
  if (const int failure = ibv_post_send(pair_, requests.data(), &refused); failure != 0) {
    return error(Code::io, "takes no write from {}: {}", to_text(device_.port_), reason(failure));
  }
  under_way_ += static_cast<int>(count);
  return count;
}

Status QueuePair::reap() {
  constexpr int kMostAtOnce = 16;
  std::array<ibv_wc, kMostAtOnce> done;
  for (;;) {
    const int count = ibv_poll_cq(done_, kMostAtOnce, done.data());
    if (count < 0) return error(Code::io, "cannot be written to from {} any more", to_text(device_.port_));
    for (const ibv_wc& one : std::span(done).first(static_cast<std::size_t>(count))) {
      if (one.status != IBV_WC_SUCCESS) {
        return error(Code::io, "takes no writes from {} any more: {}", to_text(device_.port_),
                     ibv_wc_status_str(one.status));
      }
      under_way_ -= static_cast<int>(one.wr_id);
    }
    if (count < kMostAtOnce) return {};
  }
}

}  // namespace tutti::verbs
