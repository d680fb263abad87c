#include "trireme/wire/collectives/network.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "trireme/error.h"
#include "trireme/wire/collectives/eligible.h"
#include "trireme/wire/collectives/schedule/algorithms.h"
#include "trireme/wire/collectives/schedule/run.h"

namespace trireme::collectives {
namespace {

/// A quarter of a chunk, so that reducing overlaps receiving and an exchange the next one, unless
/// messages would become so short that they cost more than they carry.
std::int64_t segment_elements(const Call& call, std::int64_t count, Dtype dtype) {
  constexpr std::int64_t kMinBytes = 64 * 1024;
  constexpr std::int64_t kMaxBytes = 1024 * 1024;
  constexpr std::int64_t kAlignment = 64;
  const auto element_bytes = static_cast<std::int64_t>(size_bytes(dtype));
  const std::int64_t quarter = count * element_bytes / call.members().size() / 4;
  return std::clamp(quarter / kAlignment * kAlignment, kMinBytes, kMaxBytes) / element_bytes;
}

void require(bool is_so, const std::string& otherwise) {
  if (!is_so) throw Error(ErrorKind::kInvalidArgument, otherwise);
}

/// kInvalidArgument where the arguments are not what the description says.
void check_call(const Call& call, Operation operation, const Elements& data) {
  const Description& description = call.description();
  require(description.operation == operation && description.dtype == data.dtype &&
              description.count == data.count() && data.bytes.size() % size_bytes(data.dtype) == 0,
          std::string(to_text(operation)) + " of " + std::to_string(data.bytes.size()) +
              " bytes of " + std::string(to_text(data.dtype)) + " in a call of " +
              to_text(description));
  check_eligible(description.algorithm, description, call.members().ranks_per_host);
}

void check_root(const Call& call, int root) {
  require(root >= 0 && root < call.members().size() && root == call.description().root,
          "root " + std::to_string(root) + " in a call of " + to_text(call.description()));
}

void check_op(const Call& call, kernels::ReduceOp op) {
  require(op == call.description().reduce, "reduction by " + std::string(kernels::to_text(op)) +
                                               " in a call of " + to_text(call.description()));
}

void check_parts(const Call& call, std::span<const Chunk> parts, std::int64_t count) {
  std::vector<Chunk> sorted(parts.begin(), parts.end());
  std::erase_if(sorted, [](const Chunk& part) { return part.size() == 0; });
  std::ranges::sort(sorted, {}, &Chunk::begin);
  std::int64_t end = 0;
  bool is_fit = std::ssize(parts) == call.members().size();
  for (const Chunk& part : sorted) {
    is_fit = is_fit && part.begin >= end && part.size() > 0 && part.end <= count;
    end = part.end;
  }
  require(is_fit, "the parts of " + to_text(call.description()) +
                      " are one per rank, inside its data and apart from each other");
}

Setting setting_of(const Call& call, std::int64_t count, Dtype dtype) {
  return {.operation = call.description().operation,
          .algorithm = call.description().algorithm,
          .num_ranks = call.members().size(),
          .rank = call.members().group_rank,
          .count = count,
          .segment = segment_elements(call, count, dtype),
          .ranks_per_host = call.members().ranks_per_host};
}

/// Also in place of another operation: then the call's description is of that.
void run_barrier(Call& call) {
  Setting setting = setting_of(call, 1, Dtype::kU8);
  setting.operation = Operation::kBarrier;
  setting.algorithm = Algorithm::kTwoHop;
  run_schedule(call, make_schedule(setting), {.data = {call.token()}},
               {.dtype = Dtype::kU8, .op = kernels::ReduceOp::kOr});
}

/// One rank alone: nothing moves, and only a scaled sum changes anything.
void reduce_alone(Call& call, const Elements& data) {
  if (call.description().reduce != kernels::ReduceOp::kScaledSum) return;
  const std::vector<double> scales = call.scales();
  const std::array<std::byte*, 1> target = {data.bytes.data()};
  const std::array<const std::byte*, 1> source = {data.bytes.data()};
  kernels::combine({data.dtype, kernels::ReduceOp::kScaledSum, scales}, source, target,
                   data.count());
}

void run_on(Call& call, const Setting& setting, const Elements& data) {
  if (data.bytes.empty()) return run_barrier(call);
  if (call.members().size() == 1) return reduce_alone(call, data);
  run_schedule(call, make_schedule(setting), {.data = {data.bytes}},
               {.dtype = data.dtype, .op = call.description().reduce});
}

/// All parts as one: where all are of one size, they are those of one buffer.
template <typename Byte>
std::span<Byte> joined(const Call& call, std::span<const std::span<Byte>> parts) {
  const std::span<Byte> all(parts[0].data(), parts.size() * parts[0].size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    require(parts[i].data() == all.data() + i * parts[0].size() &&
                parts[i].size() == static_cast<std::size_t>(call.description().count),
            to_text(call.description()) + " takes equal parts that follow each other");
  }
  return all;
}

void exchange_on_two_levels(Call& call, std::span<const std::span<const std::byte>> send_parts,
                            std::span<const std::span<std::byte>> recv_parts) {
  check_eligible(Algorithm::kTwoLevel, call.description(), call.members().ranks_per_host);
  run_schedule(call, make_schedule(setting_of(call, call.description().count, Dtype::kU8)),
               {.data = {joined(call, recv_parts)}, .input = {joined(call, send_parts)}},
               {.dtype = Dtype::kU8});
}

}  // namespace

void network_all_reduce(Call& call, Elements data, kernels::ReduceOp op, Algorithm algorithm) {
  check_call(call, Operation::kAllReduce, data);
  check_op(call, op);
  require(algorithm == call.description().algorithm,
          std::string(to_text(algorithm)) + " in a call of " + to_text(call.description()));
  Setting setting = setting_of(call, data.count(), data.dtype);
  setting.num_reducers = call.members().num_reducers;
  run_on(call, setting, data);
}

void network_reduce(Call& call, Elements data, kernels::ReduceOp op, int root) {
  check_call(call, Operation::kReduce, data);
  check_op(call, op);
  check_root(call, root);
  Setting setting = setting_of(call, data.count(), data.dtype);
  setting.root = root;
  run_on(call, setting, data);
}

void network_reduce_scatter(Call& call, Elements data, kernels::ReduceOp op,
                            std::span<const Chunk> parts) {
  check_call(call, Operation::kReduceScatter, data);
  check_op(call, op);
  check_parts(call, parts, data.count());
  Setting setting = setting_of(call, data.count(), data.dtype);
  setting.parts.assign(parts.begin(), parts.end());
  run_on(call, setting, data);
}

void network_all_gather(Call& call, std::span<std::byte> all, std::span<const Chunk> parts) {
  const Elements data(all, Dtype::kU8);
  check_eligible(call.description().algorithm, call.description());
  check_parts(call, parts, data.count());
  Setting setting = setting_of(call, data.count(), data.dtype);
  setting.parts.assign(parts.begin(), parts.end());
  run_on(call, setting, data);
}

void network_broadcast(Call& call, std::span<std::byte> bytes, int root) {
  const Elements data(bytes, Dtype::kU8);
  check_eligible(call.description().algorithm, call.description());
  check_root(call, root);
  Setting setting = setting_of(call, data.count(), data.dtype);
  setting.root = root;
  run_on(call, setting, data);
}

void network_all_to_all(Call& call, std::span<const std::span<const std::byte>> send_parts,
                        std::span<const std::span<std::byte>> recv_parts) {
  const int own = call.members().group_rank;
  require(std::ssize(send_parts) == call.members().size() &&
              std::ssize(recv_parts) == call.members().size() &&
              send_parts[own].size() == recv_parts[own].size(),
          to_text(call.description()) +
              " takes a part per rank and direction, the own one of the same size in both");
  if (call.description().algorithm == Algorithm::kTwoLevel) {
    return exchange_on_two_levels(call, send_parts, recv_parts);
  }
  Setting setting = setting_of(call, 0, Dtype::kU8);
  for (const auto& part : send_parts) setting.send_elements.push_back(std::ssize(part));
  for (const auto& part : recv_parts) setting.recv_elements.push_back(std::ssize(part));
  run_schedule(call, make_schedule(setting),
               {.data = {recv_parts.begin(), recv_parts.end()},
                .input = {send_parts.begin(), send_parts.end()}},
               {.dtype = Dtype::kU8});
}

void network_barrier(Call& call) { run_barrier(call); }

}  // namespace trireme::collectives
