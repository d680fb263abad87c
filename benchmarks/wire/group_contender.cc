#include "benchmarks/wire/group_contender.h"

#include <thread>
#include <vector>

#include "trireme/error.h"
#include "trireme/wire/collectives/chunk.h"
#include "trireme/wire/collectives/eligible.h"

namespace trireme::bench {

std::optional<Prepared> GroupContender::prepare(const Case& one, const Buffers& buffers) {
  const std::function<transport::WorkPtr()> start = starter(one, buffers);
  if (!start || !can(one)) return std::nullopt;
  Prepared prepared{.run = [this, start] { wait(start()); },
                    .run_beside_sleep =
                        [this, start](std::chrono::microseconds sleep) {
                          const transport::WorkPtr work = start();
                          std::this_thread::sleep_for(sleep);
                          wait(work);
                        },
                    .result = buffers.recv};
  if (one.operation == Collective::kReduceScatter) {
    const auto part = collectives::chunk_of(one.count(), num_ranks(), rank());
    const std::size_t element = size_bytes(one.dtype);
    prepared.result = buffers.send.subspan(static_cast<std::size_t>(part.begin) * element,
                                           static_cast<std::size_t>(part.size()) * element);
    prepared.first = part.begin;
  } else if (buffers.recv.empty()) {
    prepared.result = buffers.send;
  }
  return prepared;
}

bool GroupContender::can(const Case& one) const {
  if (!forced_) return true;
  std::vector<int> hosts;
  for (const int rank : group_.ranks()) {
    hosts.push_back(group_.endpoint().local_peers().host_of(rank));
  }
  return collectives::is_eligible(forced_->algorithm,
                                  {.operation = one.operation,
                                   .dtype = one.dtype,
                                   .count = one.count(),
                                   .group_size = static_cast<std::uint32_t>(num_ranks()),
                                   .order = forced_->order},
                                  collectives::common_ranks_per_host(hosts));
}

std::function<transport::WorkPtr()> GroupContender::starter(const Case& one,
                                                            const Buffers& buffers) {
  const std::span<std::byte> send = buffers.send, recv = buffers.recv;
  const collectives::Elements elements(send, one.dtype);
  switch (one.operation) {
    case Collective::kAllReduce:
      return [this, elements] { return group_.all_reduce(elements); };
    case Collective::kReduceScatter:
      return [this, elements] { return group_.reduce_scatter(elements); };
    case Collective::kAllToAll:
      return [this, send, recv] { return group_.all_to_all(send, recv); };
    case Collective::kAllGather:
      return [this, send, recv] { return group_.all_gather(send, recv); };
    case Collective::kBroadcast:
      return [this, send] { return group_.broadcast(send, 0); };
    case Collective::kBarrier:
      return [this] { return group_.barrier(); };
    default:
      return nullptr;
  }
}

std::optional<std::span<std::byte>> GroupContender::registered(std::size_t bytes) {
  if (bytes == 0) return std::nullopt;
  const auto found = registered_.find(bytes);
  if (found != registered_.end()) return found->second;
  return registered_[bytes] = group_.allocate(bytes);
}

void GroupContender::barrier() { wait(group_.barrier()); }

void GroupContender::wait(const transport::WorkPtr& work) const {
  // A second more than the group's own deadline: the group knows who is missing and says so.
  if (work->wait_for(group_.deadline() + std::chrono::seconds(1))) return;
  throw Error(ErrorKind::kTimeout, "an operation of the benchmark has not ended in time");
}

}  // namespace trireme::bench
