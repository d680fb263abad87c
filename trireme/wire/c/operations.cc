#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "trireme/wire/c/handles.h"

namespace trireme::c {
namespace {

using collectives::Elements;
using collectives::Group;
using collectives::scaled_sum;
using transport::WorkPtr;

std::span<std::byte> memory(void* data, std::int64_t bytes, const char* name) {
  if (bytes < 0) {
    refuse("the size of '" + std::string(name) + "' is " + std::to_string(bytes) + ", below 0");
  }
  if (bytes == 0) return {};
  return {&needed(static_cast<std::byte*>(data), name), static_cast<std::size_t>(bytes)};
}

std::span<const std::byte> memory(const void* data, std::int64_t bytes, const char* name) {
  return memory(const_cast<void*>(data), bytes, name);
}

Dtype dtype_of(TriremeDtype dtype) {
  switch (dtype) {
    case kTriremeF64:
      return Dtype::kF64;
    case kTriremeF32:
      return Dtype::kF32;
    case kTriremeF16:
      return Dtype::kF16;
    case kTriremeBf16:
      return Dtype::kBf16;
    case kTriremeI64:
      return Dtype::kI64;
    case kTriremeI32:
      return Dtype::kI32;
    case kTriremeU8:
      return Dtype::kU8;
    case kTriremeBool:
      return Dtype::kBool;
    default:
      refuse("there is no dtype " + std::to_string(dtype));
  }
}

kernels::ReduceOp reduction_of(TriremeReduction reduction) {
  switch (reduction) {
    case kTriremeSum:
      return kernels::ReduceOp::kSum;
    case kTriremeAverage:
      return kernels::ReduceOp::kAverage;
    case kTriremeProduct:
      return kernels::ReduceOp::kProduct;
    case kTriremeMin:
      return kernels::ReduceOp::kMin;
    case kTriremeMax:
      return kernels::ReduceOp::kMax;
    case kTriremeAnd:
      return kernels::ReduceOp::kAnd;
    case kTriremeOr:
      return kernels::ReduceOp::kOr;
    case kTriremeXor:
      return kernels::ReduceOp::kXor;
    default:
      refuse("there is no reduction " + std::to_string(reduction));
  }
}

Elements elements(void* data, std::int64_t count, TriremeDtype dtype) {
  const Dtype type = dtype_of(dtype);
  const auto size = static_cast<std::int64_t>(size_bytes(type));
  if (count > std::numeric_limits<std::int64_t>::max() / size) {
    refuse("'count' is " + std::to_string(count) + ": more than there is memory");
  }
  if (reinterpret_cast<std::uintptr_t>(data) % size_bytes(type) != 0) {
    refuse("'data' is not aligned to its elements of " + std::to_string(size) + " bytes");
  }
  return {memory(data, count * size, "data"), type};
}

/// One number per rank of the group, none below 0, whose sum is a size.
std::span<const std::int64_t> sizes(const Group& group, const std::int64_t* by_rank,
                                    const char* name) {
  const std::span all(&needed(by_rank, name), static_cast<std::size_t>(group.size()));
  std::int64_t sum = 0;
  for (const std::int64_t size : all) {
    if (size < 0) refuse("a number of '" + std::string(name) + "' is below 0");
    if (__builtin_add_overflow(sum, size, &sum)) {
      refuse("the sum of '" + std::string(name) + "' is more than there is memory");
    }
  }
  return all;
}

std::int64_t sum_of(std::span<const std::int64_t> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
}

/// `all` as one part per rank, one behind the other.
template <typename Byte>
std::vector<std::span<Byte>> parts(std::span<Byte> all, std::span<const std::int64_t> by_rank) {
  std::vector<std::span<Byte>> result;
  std::size_t begin = 0;
  for (const std::int64_t bytes : by_rank) {
    result.push_back(all.subspan(begin, static_cast<std::size_t>(bytes)));
    begin += static_cast<std::size_t>(bytes);
  }
  return result;
}

/// The parts of a root's buffer: `bytes` for each rank; none elsewhere.
template <typename Byte, typename Pointer>
std::vector<std::span<Byte>> root_parts(const Group& group, Pointer all, std::int64_t bytes,
                                        std::int32_t root) {
  if (group.group_rank() != root) return {};
  std::int64_t total = 0;
  if (__builtin_mul_overflow(bytes, static_cast<std::int64_t>(group.size()), &total)) {
    refuse("'bytes' is " + std::to_string(bytes) + ": more than there is memory");
  }
  const std::vector<std::int64_t> by_rank(group.size(), bytes);
  const std::span<Byte> whole = memory(all, total, "all");
  return parts<Byte>(whole, by_rank);
}

/// What the calls have in common.
struct Call {
  TriremeGroup* group;
  const char* operation;
  TriremeWork** work;
};

/// Waits for it where the caller wants no handle.
TriremeStatus give(const Call& call, std::unique_ptr<TriremeWork> handle) {
  if (call.work == nullptr) return trireme_wait(handle.get(), -1);
  *call.work = handle.release();
  return kTriremeOk;
}

/// Starts an operation.
TriremeStatus start(const Call& call, const std::function<WorkPtr(Group&)>& submit) {
  return guarded([&]() -> TriremeStatus {
    const auto& named = needed(call.group, "group").named;
    auto handle = std::make_unique<TriremeWork>(TriremeWork{named, nullptr, call.operation});
    handle->work = submit(*named->group);
    return give(call, std::move(handle));
  });
}

/// A message, as its function has it.
struct MessageCall {
  std::int32_t peer;
  std::span<std::byte> data;
  collectives::MessageOptions options;
};

MessageCall message(std::int32_t peer, void* data, std::int64_t count, TriremeDtype dtype,
                    std::uint64_t tag) {
  const Elements all = elements(data, count, dtype);
  return {peer, all.bytes, {.tag = tag, .dtype = all.dtype}};
}

TriremeStatus start_send(const Call& call, const std::function<MessageCall()>& parse) {
  return guarded([&]() -> TriremeStatus {
    const auto& named = needed(call.group, "group").named;
    const MessageCall message = parse();
    auto handle = std::make_unique<TriremeWork>(TriremeWork{named, nullptr, call.operation});
    handle->work = named->group->send(message.peer, message.data, message.options);
    handle->peers = {named->group->ranks()[static_cast<std::size_t>(message.peer)]};
    return give(call, std::move(handle));
  });
}

TriremeStatus start_recv(const Call& call, const std::function<MessageCall()>& parse) {
  return guarded([&]() -> TriremeStatus {
    const auto& named = needed(call.group, "group").named;
    const MessageCall message = parse();
    const bool is_any = message.peer == kTriremeAnySource;
    auto handle = std::make_unique<TriremeWork>(TriremeWork{named, nullptr, call.operation});
    handle->recv = named->group->recv(message.peer, message.data, message.options);
    handle->work = handle->recv;
    const std::vector<int>& ranks = named->group->ranks();
    handle->peers = is_any ? ranks : std::vector{ranks[static_cast<std::size_t>(message.peer)]};
    return give(call, std::move(handle));
  });
}

}  // namespace
}  // namespace trireme::c

namespace c = trireme::c;

extern "C" {

TriremeStatus trireme_all_reduce(TriremeGroup* group, void* data, int64_t count, TriremeDtype dtype,
                                 TriremeReduction reduction, TriremeWork** work) {
  return c::start({group, "all_reduce", work}, [&](c::Group& ranks) {
    return ranks.all_reduce(c::elements(data, count, dtype), c::reduction_of(reduction));
  });
}

TriremeStatus trireme_reduce(TriremeGroup* group, void* data, int64_t count, TriremeDtype dtype,
                             TriremeReduction reduction, int32_t root, TriremeWork** work) {
  return c::start({group, "reduce", work}, [&](c::Group& ranks) {
    return ranks.reduce(c::elements(data, count, dtype), root, c::reduction_of(reduction));
  });
}

TriremeStatus trireme_reduce_scatter(TriremeGroup* group, void* data, const int64_t* counts,
                                     TriremeDtype dtype, TriremeReduction reduction,
                                     TriremeWork** work) {
  return c::start({group, "reduce_scatter", work}, [&](c::Group& ranks) {
    const auto by_rank = c::sizes(ranks, counts, "counts");
    return ranks.reduce_scatter(c::elements(data, c::sum_of(by_rank), dtype), by_rank,
                                c::reduction_of(reduction));
  });
}

TriremeStatus trireme_all_reduce_scaled(TriremeGroup* group, void* data, int64_t count,
                                        TriremeDtype dtype, double scale, TriremeWork** work) {
  return c::start({group, "all_reduce", work}, [&](c::Group& ranks) {
    return ranks.all_reduce(c::elements(data, count, dtype), c::scaled_sum(scale));
  });
}

TriremeStatus trireme_reduce_scaled(TriremeGroup* group, void* data, int64_t count,
                                    TriremeDtype dtype, double scale, int32_t root,
                                    TriremeWork** work) {
  return c::start({group, "reduce", work}, [&](c::Group& ranks) {
    return ranks.reduce(c::elements(data, count, dtype), root, c::scaled_sum(scale));
  });
}

TriremeStatus trireme_reduce_scatter_scaled(TriremeGroup* group, void* data, const int64_t* counts,
                                            TriremeDtype dtype, double scale, TriremeWork** work) {
  return c::start({group, "reduce_scatter", work}, [&](c::Group& ranks) {
    const auto by_rank = c::sizes(ranks, counts, "counts");
    return ranks.reduce_scatter(c::elements(data, c::sum_of(by_rank), dtype), by_rank,
                                c::scaled_sum(scale));
  });
}

TriremeStatus trireme_all_gather(TriremeGroup* group, const void* mine, void* all,
                                 const int64_t* bytes_by_rank, TriremeWork** work) {
  return c::start({group, "all_gather", work}, [&](c::Group& ranks) {
    const auto by_rank = c::sizes(ranks, bytes_by_rank, "bytes_by_rank");
    return ranks.all_gather(c::memory(mine, by_rank[ranks.group_rank()], "mine"),
                            c::memory(all, c::sum_of(by_rank), "all"), by_rank);
  });
}

TriremeStatus trireme_broadcast(TriremeGroup* group, void* data, int64_t bytes, int32_t root,
                                TriremeWork** work) {
  return c::start({group, "broadcast", work}, [&](c::Group& ranks) {
    return ranks.broadcast(c::memory(data, bytes, "data"), root);
  });
}

TriremeStatus trireme_all_to_all(TriremeGroup* group, const void* send, const int64_t* send_bytes,
                                 void* recv, const int64_t* recv_bytes, TriremeWork** work) {
  return c::start({group, "all_to_all", work}, [&](c::Group& ranks) {
    const auto sends = c::sizes(ranks, send_bytes, "send_bytes");
    const auto recvs = c::sizes(ranks, recv_bytes, "recv_bytes");
    return ranks.all_to_all(c::parts(c::memory(send, c::sum_of(sends), "send"), sends),
                            c::parts(c::memory(recv, c::sum_of(recvs), "recv"), recvs));
  });
}

TriremeStatus trireme_gather(TriremeGroup* group, const void* mine, int64_t bytes, void* all,
                             int32_t root, TriremeWork** work) {
  return c::start({group, "gather", work}, [&](c::Group& ranks) {
    const auto own = c::memory(mine, bytes, "mine");
    return ranks.gather(own, c::root_parts<std::byte>(ranks, all, bytes, root), root);
  });
}

TriremeStatus trireme_scatter(TriremeGroup* group, const void* all, void* mine, int64_t bytes,
                              int32_t root, TriremeWork** work) {
  return c::start({group, "scatter", work}, [&](c::Group& ranks) {
    const auto own = c::memory(mine, bytes, "mine");
    return ranks.scatter(c::root_parts<const std::byte>(ranks, all, bytes, root), own, root);
  });
}

TriremeStatus trireme_barrier(TriremeGroup* group, TriremeWork** work) {
  return c::start({group, "barrier", work}, [](c::Group& ranks) { return ranks.barrier(); });
}

TriremeStatus trireme_send(TriremeGroup* group, int32_t peer, const void* data, int64_t count,
                           TriremeDtype dtype, uint64_t tag, TriremeWork** work) {
  return c::start_send({group, "send", work}, [&] {
    return c::message(peer, const_cast<void*>(data), count, dtype, tag);
  });
}

TriremeStatus trireme_recv(TriremeGroup* group, int32_t source, void* data, int64_t count,
                           TriremeDtype dtype, uint64_t tag, TriremeWork** work) {
  return c::start_recv({group, "recv", work},
                       [&] { return c::message(source, data, count, dtype, tag); });
}

TriremeStatus trireme_recv_up_to(TriremeGroup* group, int32_t source, void* data, int64_t max_count,
                                 TriremeDtype dtype, uint64_t tag, TriremeWork** work) {
  return c::start_recv({group, "recv", work}, [&] {
    c::MessageCall message = c::message(source, data, max_count, dtype, tag);
    message.options.may_be_shorter = true;
    return message;
  });
}

}  // extern "C"
