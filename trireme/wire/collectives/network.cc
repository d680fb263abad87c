#include "trireme/wire/collectives/network.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "trireme/error.h"
#include "trireme/wire/collectives/eligible.h"
#include "trireme/wire/collectives/schedule/run.h"

namespace trireme::collectives {
namespace {

void require(bool is_so, const std::string& otherwise) {
  if (!is_so) throw Error(ErrorKind::kInvalidArgument, otherwise);
}

/// Of no one buffer, but of parts of their own on each rank.
bool is_exchange(Collective operation) {
  return operation == Collective::kAllToAll || operation == Collective::kGather ||
         operation == Collective::kScatter;
}

bool has_parts(Collective operation) {
  return operation == Collective::kReduceScatter || operation == Collective::kAllGather;
}

// ---- What the memory must be

void check_data(const Call& call, const Elements& data) {
  const Description& description = call.description();
  require(description.dtype == data.dtype && description.count == data.count() &&
              data.bytes.size() % size_bytes(data.dtype) == 0,
          std::string(to_text(description.operation)) + " of " + std::to_string(data.bytes.size()) +
              " bytes of " + std::string(to_text(data.dtype)) + " in a call of " +
              to_text(description));
}

void check_root(const Call& call) {
  const int root = call.description().root;
  require(root >= 0 && root < call.members().size(),
          "root " + std::to_string(root) + " in a call of " + to_text(call.description()));
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

void check_exchange(const Call& call, const Request& request) {
  const int own = call.members().group_rank;
  require(std::ssize(request.sends) == call.members().size() &&
              std::ssize(request.recvs) == call.members().size() &&
              request.sends[own].size() == request.recvs[own].size(),
          to_text(call.description()) +
              " takes a part per rank and direction, the own one of the same size in both");
}

void check_request(const Call& call, const Request& request) {
  const Description& description = call.description();
  const Collective operation = description.operation;
  const bool has_data = !is_exchange(operation) && operation != Collective::kBarrier;
  if (has_data) check_data(call, request.data);
  check_eligible(description.algorithm, description, call.members().ranks_per_host);
  if (operation == Collective::kReduce || operation == Collective::kBroadcast) check_root(call);
  if (has_parts(operation)) check_parts(call, request.parts, request.data.count());
  if (is_exchange(operation)) check_exchange(call, request);
}

// ---- Schedules

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

CollectiveSetting setting_of(const Call& call, std::int64_t count, Dtype dtype) {
  const Members& members = call.members();
  return {.operation = call.description().operation,
          .algorithm = call.description().algorithm,
          .num_ranks = members.size(),
          .rank = members.group_rank,
          .count = count,
          .segment = segment_elements(call, count, dtype),
          .ranks_per_host = members.ranks_per_host};
}

/// Of operations on one buffer.
CollectiveSetting setting_of(const Call& call, const Request& request) {
  CollectiveSetting setting = setting_of(call, request.data.count(), request.data.dtype);
  const Description& description = call.description();
  if (has_parts(description.operation)) {
    setting.parts = request.parts;
  } else if (description.operation == Collective::kAllReduce) {
    setting.num_reducers = call.members().num_reducers;
  } else {
    setting.root = description.root;
  }
  return setting;
}

CollectiveSetting setting_of_exchange(const Call& call, const Request& request) {
  if (call.description().algorithm == Algorithm::kTwoLevel) {
    return setting_of(call, call.description().count, Dtype::kU8);
  }
  CollectiveSetting setting = setting_of(call, 0, Dtype::kU8);
  for (const auto& part : request.sends) setting.send_elements.push_back(std::ssize(part));
  for (const auto& part : request.recvs) setting.recv_elements.push_back(std::ssize(part));
  return setting;
}

// ---- What is done

/// This rank's bytes of an all_gather come to their place.
void place_own(const Call& call, const Request& request) {
  if (request.mine.empty()) return;
  const Elements own = request.data.part(request.parts[call.members().group_rank]);
  std::memmove(own.bytes.data(), request.mine.data(), request.mine.size());
}

/// The result of a reduce_scatter comes to its place, and the data is as it was: what is combined is
/// a copy.
void run_apart(Call& call, const Request& request, ScheduleCache& schedules) {
  std::vector<std::byte> copy(request.data.bytes.begin(), request.data.bytes.end());
  Request own = request;
  own.data.bytes = copy;
  own.result = {};
  run_over_network(call, own, schedules);
  const auto part = own.data.part(request.parts[call.members().group_rank]).bytes;
  std::memcpy(request.result.data(), part.data(), part.size());
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

/// All parts as one: where all are of one size, they are those of one buffer.
template <typename Byte>
std::span<Byte> joined(const Call& call, const std::vector<std::span<Byte>>& parts) {
  const std::span<Byte> all(parts[0].data(), parts.size() * parts[0].size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    require(parts[i].data() == all.data() + i * parts[0].size() &&
                parts[i].size() == static_cast<std::size_t>(call.description().count),
            to_text(call.description()) + " takes equal parts that follow each other");
  }
  return all;
}

ScheduleMemory memory_of_exchange(const Call& call, const Request& request) {
  if (call.description().algorithm != Algorithm::kTwoLevel) {
    return {.data = request.recvs, .input = request.sends};
  }
  return {.data = {joined(call, request.recvs)}, .input = {joined(call, request.sends)}};
}

}  // namespace

void run_over_network(Call& call, const Request& request, ScheduleCache& schedules) {
  check_request(call, request);
  const Description& description = call.description();
  if (is_exchange(description.operation)) {
    const ScheduleMemory memory = memory_of_exchange(call, request);
    return run_schedule(call, schedules.get(setting_of_exchange(call, request)), memory,
                        {.dtype = Dtype::kU8});
  }
  if (!request.result.empty()) return run_apart(call, request, schedules);
  place_own(call, request);
  if (request.data.bytes.empty()) return wait_for_all(call, schedules);
  if (call.members().size() == 1) return reduce_alone(call, request.data);
  run_schedule(call, schedules.get(setting_of(call, request)), {.data = {request.data.bytes}},
               {.dtype = description.dtype, .op = description.reduce});
}

void wait_for_all(Call& call, ScheduleCache& schedules) {
  CollectiveSetting setting = setting_of(call, 1, Dtype::kU8);
  setting.operation = Collective::kBarrier;
  const bool is_barrier = call.description().operation == Collective::kBarrier;
  setting.algorithm = is_barrier ? call.description().algorithm : Algorithm::kTwoHop;
  run_schedule(call, schedules.get(std::move(setting)), {.data = {call.token()}},
               {.dtype = Dtype::kU8, .op = kernels::ReduceOp::kOr});
}

}  // namespace trireme::collectives
