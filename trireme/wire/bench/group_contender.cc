#include "trireme/wire/bench/group_contender.h"

#include "trireme/base/error.h"
#include "trireme/wire/collectives/chunk.h"

namespace trireme::bench {
namespace {

template <typename T>
std::span<T> as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace

std::optional<Prepared> GroupContender::prepare(const Case& one, const Buffers& buffers) {
  Prepared prepared{.run = runner(one, buffers), .result = buffers.recv};
  if (!prepared.run) return std::nullopt;
  if (one.operation == Operation::kReduceScatter) {
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

std::function<void()> GroupContender::runner(const Case& one, const Buffers& buffers) {
  const std::span<std::byte> send = buffers.send, recv = buffers.recv;
  const bool is_f32 = one.dtype == Dtype::kF32;
  if (!is_f32 && one.dtype != Dtype::kF64) return nullptr;
  switch (one.operation) {
    case Operation::kAllReduce:
      if (is_f32) return [this, send] { wait(group_.all_reduce(as<float>(send))); };
      return [this, send] { wait(group_.all_reduce(as<double>(send))); };
    case Operation::kReduceScatter:
      if (is_f32) return [this, send] { wait(group_.reduce_scatter(as<float>(send))); };
      return [this, send] { wait(group_.reduce_scatter(as<double>(send))); };
    case Operation::kAllGather:
      return [this, send, recv] { wait(group_.all_gather(send, recv)); };
    case Operation::kBroadcast:
      return [this, send] { wait(group_.broadcast(send, 0)); };
    case Operation::kBarrier:
      return [this] { barrier(); };
    default:
      return nullptr;
  }
}

std::optional<std::span<std::byte>> GroupContender::registered(std::size_t) { return std::nullopt; }

void GroupContender::barrier() { wait(group_.barrier()); }

void GroupContender::wait(const transport::WorkPtr& work) const {
  // A second more than the group's own deadline: the group knows who is missing and says so.
  if (work->wait_for(group_.deadline() + std::chrono::seconds(1))) return;
  throw Error(ErrorKind::kTimeout, "an operation of the benchmark has not ended in time");
}

}  // namespace trireme::bench
