#include "trireme/wire/collectives/group.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "trireme/wire/collectives/call.h"
#include "trireme/wire/collectives/network.h"
#include "trireme/wire/transport/pending_work.h"
#include "trireme/wire/transport/thread.h"

namespace trireme::collectives {
namespace {

[[noreturn]] void refuse(const std::string& group, const std::string& problem) {
  Error error(ErrorKind::kInvalidArgument, problem);
  error.add({.group = group});
  throw error;
}

Members checked_members(transport::Endpoint& endpoint, std::vector<int> ranks,
                        GroupOptions options) {
  constexpr std::uint64_t kMaxId = (std::uint64_t{1} << 61) - 1;
  if (options.id > kMaxId) refuse(options.name, "the id of a group is below 2^61");
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  const auto own = std::find(ranks.begin(), ranks.end(), endpoint.rank());
  if (own == ranks.end() || sorted.front() < 0 || sorted.back() >= endpoint.world_size() ||
      std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    refuse(options.name, "the ranks of a group are different ranks of its world, this one (rank " +
                             std::to_string(endpoint.rank()) + " of " +
                             std::to_string(endpoint.world_size()) + ") among them");
  }
  const int group_rank = static_cast<int>(own - ranks.begin());
  return {endpoint,   std::move(ranks), group_rank, std::move(options.name),
          options.id, options.deadline};
}

}  // namespace

/// The queue of operations and the thread that runs them.
class Group::Engine {
 public:
  explicit Engine(Members members)
      : members_(std::move(members)), thread_("group " + members_.name, [this] { serve(); }) {}

  ~Engine() {
    if (stop()) {
      Error closed(ErrorKind::kCancelled, "the group was closed with operations under way");
      members_.endpoint.poison(closed.add({.group = members_.name}));
    }
    thread_.join();
  }

  const Members& members() const { return members_; }

  std::vector<int> missing() const {
    const std::lock_guard lock(mutex_);
    return call_ == nullptr ? std::vector<int>() : call_->missing();
  }

  /// description   without sequence and group size, which are filled in.
  transport::WorkPtr submit(Description description, std::function<void(Call&)> run) {
    auto work = std::make_shared<transport::PendingWork>(members_.endpoint.shared_failure());
    const std::lock_guard lock(mutex_);
    description.sequence = num_submitted_++;
    description.group_size = static_cast<std::uint32_t>(members_.size());
    jobs_.push_back({description, std::move(run), work});
    changed_.notify_all();
    return work;
  }

 private:
  struct Job {
    Description description;
    std::function<void(Call&)> run;
    transport::PendingWorkPtr work;
  };

  /// Returns whether operations are under way.
  bool stop() {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
    return is_busy_ || !jobs_.empty();
  }

  /// The next job; nothing once stopping and out of jobs.
  std::optional<Job> next_job() {
    std::unique_lock lock(mutex_);
    is_busy_ = false;
    changed_.wait(lock, [this] { return is_stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return std::nullopt;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    is_busy_ = true;
    return job;
  }

  void serve() {
    while (const std::optional<Job> job = next_job()) {
      if (!failure_) run(*job);
      finish(*job);
    }
  }

  void run(const Job& job) {
    Call call(members_, job.description, scratch_);
    show(&call);
    try {
      job.run(call);
    } catch (const Error& error) {
      fail(call, error);
    } catch (const std::exception& error) {
      fail(call, Error(ErrorKind::kResourceExhausted, "no memory for a collective", error));
    }
    show(nullptr);
  }

  void show(const Call* call) {
    const std::lock_guard lock(mutex_);
    call_ = call;
  }

  /// Tells everyone, and returns when nothing of the call is under way.
  void fail(Call& call, Error error) {
    failure_ = error.add(call.context());
    members_.endpoint.poison(error);
    call.drain();
  }

  void finish(const Job& job) {
    {
      const std::lock_guard lock(mutex_);  // a waiter may close the group as soon as it wakes
      is_busy_ = false;
    }
    failure_ ? job.work->fail(*failure_) : job.work->complete();
  }

  const Members members_;
  Scratch scratch_;               // confined to the thread
  std::optional<Error> failure_;  // confined to the thread
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::int64_t num_submitted_ = 0;
  const Call* call_ = nullptr;  ///< Under way.
  bool is_busy_ = false;
  bool is_stopping_ = false;
  transport::LibraryThread thread_;  // last: it uses the others
};

Group::Group(transport::Endpoint& endpoint, std::vector<int> ranks, GroupOptions options)
    : engine_(std::make_unique<Engine>(
          checked_members(endpoint, std::move(ranks), std::move(options)))) {}

Group::~Group() = default;

int Group::size() const { return engine_->members().size(); }
int Group::group_rank() const { return engine_->members().group_rank; }
const std::vector<int>& Group::ranks() const { return engine_->members().ranks; }
transport::Endpoint& Group::endpoint() const { return engine_->members().endpoint; }
std::chrono::milliseconds Group::deadline() const { return engine_->members().deadline; }
std::vector<int> Group::missing() const { return engine_->missing(); }

namespace {

constexpr kernels::ReduceOp kSum = kernels::ReduceOp::kSum;

std::vector<Chunk> chunks(const Call& call, std::int64_t count) {
  std::vector<Chunk> result;
  for (int i = 0; i < call.members().size(); ++i) {
    result.push_back(chunk_of(count, call.members().size(), i));
  }
  return result;
}

void reduce_scatter(Call& call, Elements data) {
  network_reduce_scatter(call, data, kSum, chunks(call, data.count()));
}

void all_gather(Call& call, std::span<const std::byte> mine, std::span<std::byte> all) {
  std::vector<Chunk> parts;
  for (int i = 0; i < call.members().size(); ++i) {
    parts.push_back({i * std::ssize(mine), (i + 1) * std::ssize(mine)});
  }
  const auto own = all.subspan(call.members().group_rank * mine.size(), mine.size());
  if (own.data() != mine.data()) std::copy(mine.begin(), mine.end(), own.begin());
  network_all_gather(call, all, parts);
}

template <typename T>
Description describe(Operation operation, std::span<T> data, int root = 0) {
  using Element = std::remove_const_t<T>;
  constexpr Dtype kDtype = std::is_same_v<Element, float>    ? Dtype::kF32
                           : std::is_same_v<Element, double> ? Dtype::kF64
                                                             : Dtype::kU8;
  return {.operation = operation,
          .dtype = kDtype,
          .count = static_cast<std::int64_t>(data.size()),
          .root = root};
}

}  // namespace

transport::WorkPtr Group::all_reduce(std::span<float> data) {
  return engine_->submit(describe(Operation::kAllReduce, data), [data](Call& call) {
    network_all_reduce(call, data, kSum, Algorithm::kTwoHop);
  });
}

transport::WorkPtr Group::all_reduce(std::span<double> data) {
  return engine_->submit(describe(Operation::kAllReduce, data), [data](Call& call) {
    network_all_reduce(call, data, kSum, Algorithm::kTwoHop);
  });
}

transport::WorkPtr Group::reduce_scatter(std::span<float> data) {
  return engine_->submit(describe(Operation::kReduceScatter, data),
                         [data](Call& call) { collectives::reduce_scatter(call, data); });
}

transport::WorkPtr Group::reduce_scatter(std::span<double> data) {
  return engine_->submit(describe(Operation::kReduceScatter, data),
                         [data](Call& call) { collectives::reduce_scatter(call, data); });
}

transport::WorkPtr Group::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  if (all.size() != mine.size() * ranks().size()) {
    refuse(engine_->members().name, "all_gather of " + std::to_string(mine.size()) +
                                        " bytes among " + std::to_string(size()) +
                                        " ranks needs memory for the product, got " +
                                        std::to_string(all.size()));
  }
  return engine_->submit(describe(Operation::kAllGather, mine),
                         [mine, all](Call& call) { collectives::all_gather(call, mine, all); });
}

transport::WorkPtr Group::broadcast(std::span<std::byte> data, int root_group_rank) {
  if (root_group_rank < 0 || root_group_rank >= size()) {
    refuse(engine_->members().name, "there is no group rank " + std::to_string(root_group_rank) +
                                        " among " + std::to_string(size()));
  }
  return engine_->submit(
      describe(Operation::kBroadcast, data, root_group_rank),
      [data, root_group_rank](Call& call) { network_broadcast(call, data, root_group_rank); });
}

transport::WorkPtr Group::barrier() {
  return engine_->submit({.operation = Operation::kBarrier},
                         [](Call& call) { network_barrier(call); });
}

transport::Awaited group_work(transport::Work& work, const Group& group) {
  return {.work = work,
          .endpoint = group.endpoint(),
          .missing = [&group] { return group.missing(); },
          .grace = std::chrono::seconds(1)};
}

}  // namespace trireme::collectives
