// SPDX-License-Identifier: Apache-2.0
// A double of libibverbs for tests: two devices, double0 and double1, which carry out writes of reliable connections by
// process_vm_writev, and nothing else. So ranks may be threads or processes of this machine, and a peer that has died
// does not answer. TUTTI_DOUBLE_DEVICES: how many devices there are.
#include "suites/transports/double_ibverbs.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <infiniband/verbs.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

#undef ibv_query_port
#undef ibv_reg_mr

namespace {

constexpr int kMostDevices = 8;
constexpr int kPidShift = 10;  // below it: which of the process's connections

std::atomic<bool> stalls{false};
std::atomic<int> writes_left{-1};
std::atomic<int> objects{0}, wrong_calls{0};

int wrong(int number = EINVAL) {
  ++wrong_calls;
  return errno = number;
}

struct Pending {
  ibv_wc done{};
  bool is_signalled = false;
  std::vector<char> copy;
  const void* from = nullptr;
  std::size_t bytes = 0;
  std::uint64_t to = 0;
  std::uint32_t key = 0;
};

struct Queue : ibv_cq {
  std::deque<ibv_wc> done;
};

struct Domain : ibv_pd {
  int users = 0;
};

struct Pair : ibv_qp {
  std::uint32_t peer = 0;
  std::uint32_t most_inline = 0, depth = 0;
  std::size_t under_way = 0;  // that have not told that they are done
  std::deque<Pending> pending;
};

struct Registry {
  std::mutex mutex;
  std::map<std::uint32_t, Pair*> pairs;
  std::map<std::uint32_t, ibv_mr*> memories;
  std::uint32_t next_pair = 0, next_key = 100;
};
Registry& registry() {
  static Registry all;
  return all;
}

bool is_of_this_process(std::uint32_t pair) { return pair >> kPidShift == static_cast<std::uint32_t>(getpid()); }

/// Requires: the registry's lock.
ibv_wc_status write(const Pair& pair, const Pending& one) {
  if (writes_left == 0) return IBV_WC_RETRY_EXC_ERR;
  if (writes_left > 0) --writes_left;
  if (is_of_this_process(pair.peer)) {
    const auto peer = registry().pairs.find(pair.peer);
    if (peer == registry().pairs.end() || peer->second->state < IBV_QPS_RTR) return IBV_WC_RETRY_EXC_ERR;
    const auto memory = registry().memories.find(one.key);
    if (memory == registry().memories.end()) return IBV_WC_REM_ACCESS_ERR;
    const auto begin = reinterpret_cast<std::uintptr_t>(memory->second->addr);
    if (one.to < begin || one.to + one.bytes > begin + memory->second->length) return IBV_WC_REM_ACCESS_ERR;
  }
  const iovec from{.iov_base = one.copy.empty() ? const_cast<void*>(one.from) : const_cast<char*>(one.copy.data()),
                   .iov_len = one.bytes};
  const iovec to{.iov_base = reinterpret_cast<void*>(one.to), .iov_len = one.bytes};
  const auto pid = static_cast<pid_t>(pair.peer >> kPidShift);
  const ssize_t written = process_vm_writev(pid, &from, 1, &to, 1, 0);
  return written == static_cast<ssize_t>(one.bytes) ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR;
}

/// Carries out what is on its way, in its order; after a failure nothing more.
void go_on(Pair& pair) {
  const std::lock_guard lock(registry().mutex);
  auto& queue = static_cast<Queue&>(*pair.send_cq);
  while (!pair.pending.empty() && !stalls) {
    Pending& one = pair.pending.front();
    one.done.status = pair.state == IBV_QPS_ERR ? IBV_WC_WR_FLUSH_ERR : write(pair, one);
    if (one.done.status != IBV_WC_SUCCESS) pair.state = IBV_QPS_ERR;
    if (one.is_signalled || one.done.status != IBV_WC_SUCCESS) queue.done.push_back(one.done);
    pair.pending.pop_front();
  }
}

int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** refused) {
  auto& pair = static_cast<Pair&>(*qp);
  for (ibv_send_wr* one = first; one != nullptr; one = one->next) {
    *refused = one;
    const bool is_inline = (one->send_flags & IBV_SEND_INLINE) != 0;
    const ibv_sge& part = *one->sg_list;
    if (pair.state != IBV_QPS_RTS && pair.state != IBV_QPS_ERR) return wrong();
    if (one->opcode != IBV_WR_RDMA_WRITE || one->num_sge != 1) return wrong();
    if (is_inline && part.length > pair.most_inline) return wrong();
    if (pair.under_way == pair.depth) return wrong(ENOMEM);
    ++pair.under_way;
    Pending pending{.from = reinterpret_cast<const void*>(part.addr),
                    .bytes = part.length,
                    .to = one->wr.rdma.remote_addr,
                    .key = one->wr.rdma.rkey};
    pending.is_signalled = (one->send_flags & IBV_SEND_SIGNALED) != 0;
    pending.done.wr_id = one->wr_id;
    pending.done.qp_num = qp->qp_num;
    const auto* const from = static_cast<const char*>(pending.from);
    if (is_inline) pending.copy.assign(from, from + part.length);
    pair.pending.push_back(std::move(pending));
  }
  go_on(pair);
  return 0;
}

int poll_cq(ibv_cq* cq, int most, ibv_wc* to) {
  auto& queue = static_cast<Queue&>(*cq);
  std::vector<Pair*> mine;
  {
    const std::lock_guard lock(registry().mutex);
    for (const auto& [number, pair] : registry().pairs) {
      if (pair->send_cq == cq) mine.push_back(pair);
    }
  }
  for (Pair* const pair : mine) go_on(*pair);
  int count = 0;
  for (; count < most && !queue.done.empty(); ++count) {
    to[count] = queue.done.front();
    queue.done.pop_front();
    for (Pair* const pair : mine) {
      if (to[count].status == IBV_WC_SUCCESS)
        pair->under_way -= std::min<std::size_t>(pair->under_way, to[count].wr_id);
    }
  }
  return count;
}

std::array<ibv_device, kMostDevices> devices{};

int count_of_devices() {
  const char* const wanted = std::getenv("TUTTI_DOUBLE_DEVICES");
  return wanted == nullptr ? 2 : std::clamp(std::atoi(wanted), 0, kMostDevices);
}

/// fe80::1 and 10.78.0.1 for the first device, each of RoCE v2, and the latter also of RoCE v1.
ibv_gid_entry gid_entry(const ibv_device& device, int index) {
  ibv_gid_entry entry{.gid_index = static_cast<std::uint32_t>(index), .port_num = 1};
  const auto number = static_cast<std::uint8_t>(device.name[std::strlen("double")] - '0' + 1);
  entry.gid_type = index == 1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
  std::uint8_t* const raw = entry.gid.raw;
  if (index == 0) {
    raw[0] = 0xfe;
    raw[1] = 0x80;
  } else {
    raw[10] = raw[11] = 0xff;
    raw[12] = 10;
    raw[13] = 78;
  }
  raw[15] = number;
  return entry;
}

}  // namespace

namespace tutti::doubles {
void stall(bool is_stalled) { stalls = is_stalled; }
void break_after(int writes) { writes_left = writes; }
int open_objects() { return objects; }
int mistakes() { return wrong_calls; }
}  // namespace tutti::doubles

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  static std::once_flag named;
  std::call_once(named, [] {  // others may be reading the names of an earlier list
    for (std::size_t i = 0; i < devices.size(); ++i) {
      std::snprintf(devices[i].name, sizeof devices[i].name, "double%zu", i);
    }
  });
  *count = count_of_devices();
  auto** const list = new ibv_device* [static_cast<std::size_t>(*count) + 1] {};
  for (int i = 0; i < *count; ++i) {
    ibv_device& device = devices[static_cast<std::size_t>(i)];
    list[i] = &device;
  }
  ++objects;
  return list;
}

void ibv_free_device_list(ibv_device** list) {
  delete[] list;
  --objects;
}

ibv_context* ibv_open_device(ibv_device* device) {
  auto* const context = new ibv_context{};
  context->device = device;
  context->ops.post_send = post_send;
  context->ops.poll_cq = poll_cq;
  ++objects;
  return context;
}

int ibv_close_device(ibv_context* context) {
  delete context;
  --objects;
  return 0;
}

int ibv_query_port(ibv_context*, std::uint8_t port, _compat_ibv_port_attr* to) {
  if (port != 1) return wrong();
  auto& attributes = reinterpret_cast<ibv_port_attr&>(*to);
  attributes.state = IBV_PORT_ACTIVE;
  attributes.active_mtu = IBV_MTU_1024;
  attributes.link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t most, std::uint32_t,
                             std::size_t) {
  const std::size_t count = std::min<std::size_t>(most, 3);
  for (std::size_t i = 0; i < count; ++i) entries[i] = gid_entry(*context->device, static_cast<int>(i));
  return static_cast<ssize_t>(count);
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto* const domain = new Domain{};
  domain->context = context;
  ++objects;
  return domain;
}

int ibv_dealloc_pd(ibv_pd* pd) {
  auto* const domain = static_cast<Domain*>(pd);
  if (domain->users > 0) return wrong(EBUSY);
  delete domain;
  --objects;
  return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t bytes, int) {
  const std::lock_guard lock(registry().mutex);
  auto* const memory = new ibv_mr{};
  memory->context = pd->context;
  memory->pd = pd;
  memory->addr = address;
  memory->length = bytes;
  memory->lkey = memory->rkey = registry().next_key++;
  registry().memories[memory->rkey] = memory;
  ++static_cast<Domain*>(pd)->users;
  ++objects;
  return memory;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t bytes, std::uint64_t, unsigned) {
  return ibv_reg_mr(pd, address, bytes, 0);
}

int ibv_dereg_mr(ibv_mr* memory) {
  const std::lock_guard lock(registry().mutex);
  registry().memories.erase(memory->rkey);
  --static_cast<Domain*>(memory->pd)->users;
  delete memory;
  --objects;
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int, void*, ibv_comp_channel*, int) {
  auto* const queue = new Queue{};
  queue->context = context;
  ++objects;
  return queue;
}

int ibv_destroy_cq(ibv_cq* cq) {
  delete static_cast<Queue*>(cq);
  --objects;
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* wanted) {
  const std::lock_guard lock(registry().mutex);
  auto* const pair = new Pair{};
  pair->context = pd->context;
  pair->pd = pd;
  pair->send_cq = wanted->send_cq;
  pair->qp_num = (static_cast<std::uint32_t>(getpid()) << kPidShift) | (registry().next_pair++ % (1U << kPidShift));
  pair->most_inline = wanted->cap.max_inline_data;
  pair->depth = wanted->cap.max_send_wr;
  registry().pairs[pair->qp_num] = pair;
  ++static_cast<Domain*>(pd)->users;
  ++objects;
  return pair;
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* wanted, int) {
  const std::lock_guard lock(registry().mutex);
  auto& pair = static_cast<Pair&>(*qp);
  if (wanted->qp_state != static_cast<ibv_qp_state>(pair.state + 1)) return wrong();
  if (wanted->qp_state == IBV_QPS_RTR) {
    if (wanted->ah_attr.is_global == 0 || wanted->ah_attr.grh.sgid_index != 2) return wrong();
    pair.peer = wanted->dest_qp_num;
  }
  pair.state = wanted->qp_state;
  return 0;
}

int ibv_destroy_qp(ibv_qp* qp) {
  const std::lock_guard lock(registry().mutex);
  registry().pairs.erase(qp->qp_num);
  --static_cast<Domain*>(qp->pd)->users;
  delete static_cast<Pair*>(qp);
  --objects;
  return 0;
}

const char* ibv_wc_status_str(ibv_wc_status status) {
  return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded" : "remote access error";
}

}  // extern "C"
