#pragma once

// Operations over the network by themselves, without a Group: any algorithm, type and reduction.

#include <functional>
#include <memory>
#include <utility>

#include "tests/wire/collectives/group_world.h"
#include "trireme/wire/collectives/network.h"

namespace trireme::collectives::test {

/// One rank of a group whose operations run in the calling thread.
class NetworkRank {
 public:
  NetworkRank(Endpoint& endpoint, std::vector<int> ranks, std::chrono::milliseconds deadline,
              int ranks_per_host)
      : members_{.endpoint = endpoint,
                 .ranks = std::move(ranks),
                 .group_rank = endpoint.rank(),
                 .name = "net",
                 .id = 9,
                 .deadline = deadline,
                 .ranks_per_host = ranks_per_host} {}

  int rank() const { return members_.group_rank; }
  int size() const { return members_.size(); }

  /// Runs the next operation as the group's thread does. Its description: without sequence and size.
  void call(Request request) {
    request.description.sequence = sequence_++;
    request.description.group_size = static_cast<std::uint32_t>(size());
    Call call(members_, request.description, scratch_,
              {.scale = request.scale, .deadline = request.deadline});
    try {
      run_over_network(call, request, schedules_);
    } catch (Error& error) {
      members_.endpoint.poison(error.add(call.context()));
      call.drain();
      throw;
    }
  }

  void all_reduce(Elements data, Description description) {
    description.operation = Collective::kAllReduce;
    description.dtype = data.dtype;
    description.count = data.count();
    call({.description = description, .data = data});
  }

  void barrier() { call({.description = {.operation = Collective::kBarrier}}); }

  int num_schedules_made() const { return num_made_; }

 private:
  const Members members_;
  Scratch scratch_;
  int num_made_ = 0;
  ScheduleCache schedules_{[this](const CollectiveSetting& setting) {
    ++num_made_;
    return make_schedule(setting);
  }};
  std::int64_t sequence_ = 0;
};

struct NetworkOptions {
  int ranks_per_host = 1;
  std::chrono::milliseconds deadline = std::chrono::seconds(20);
};

/// Runs `body` on all ranks; what each threw.
inline Errors run_network(Backend backend, int num_ranks,
                          const std::function<void(NetworkRank&)>& body,
                          const NetworkOptions& options = {}) {
  Endpoints endpoints = transport::test::make_world(backend, num_ranks);
  return transport::test::run_ranks(endpoints, [&](Endpoint& endpoint) {
    NetworkRank rank(endpoint, first_ranks(num_ranks), options.deadline, options.ranks_per_host);
    body(rank);
    endpoint.shutdown(std::chrono::seconds(20));
  });
}

}  // namespace trireme::collectives::test
