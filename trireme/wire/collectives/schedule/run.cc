#include "trireme/wire/collectives/schedule/run.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "trireme/error.h"
#include "trireme/kernels/reduce/parts.h"
#include "trireme/wire/collectives/schedule/algorithms.h"

namespace trireme::collectives {
namespace {

/// The parts of a place, found by element.
template <typename Byte>
class Parts {
 public:
  Parts(const std::vector<std::span<Byte>>& parts, std::size_t element_bytes)
      : parts_(parts), element_bytes_(element_bytes) {
    std::int64_t begin = 0;
    for (const auto& part : parts) {
      begins_.push_back(begin);
      begin += static_cast<std::int64_t>(part.size() / element_bytes);
    }
  }

  std::span<Byte> at(const Range& range) const {
    const auto behind = std::ranges::upper_bound(begins_, range.begin);
    if (behind != begins_.begin()) {
      const auto index = static_cast<std::size_t>(behind - begins_.begin() - 1);
      const std::size_t begin = bytes_of(range.begin - begins_[index]);
      const std::size_t size = bytes_of(range.size());
      if (begin + size <= parts_[index].size()) return parts_[index].subspan(begin, size);
    }
    throw Error(ErrorKind::kInvalidArgument,
                "a schedule uses " + to_text(range) + ", which its memory does not have");
  }

 private:
  std::size_t bytes_of(std::int64_t elements) const {
    return static_cast<std::size_t>(elements) * element_bytes_;
  }

  std::vector<std::span<Byte>> parts_;
  std::vector<std::int64_t> begins_;  ///< First elements.
  std::size_t element_bytes_;
};

/// The library's own memory, of the call.
struct OwnMemory {
  OwnMemory(Call& call, const CollectiveSchedule& schedule, std::size_t element_bytes,
            std::size_t partial_bytes) {
    constexpr std::size_t kLine = 64;
    const std::size_t size = static_cast<std::size_t>(schedule.scratch_elements) * element_bytes;
    const std::size_t begin = (size + kLine - 1) / kLine * kLine;  // of the partial results
    const std::size_t partial_size =
        static_cast<std::size_t>(schedule.partial_elements) * partial_bytes;
    const std::span<std::byte> all = call.scratch().at_least(begin + partial_size);
    scratch = all.first(size);
    partials = all.subspan(begin);
  }

  std::span<std::byte> scratch;
  std::span<std::byte> partials;
};

/// The state of a schedule under way. A step is waiting, ready, started or ended.
class Run {
 public:
  Run(Call& call, const CollectiveSchedule& schedule, const ScheduleMemory& memory,
      const kernels::ElementReduction& reduction)
      : call_(call),
        steps_(schedule.steps),
        reduction_(reduction),
        partial_dtype_(partial_dtype(reduction.dtype, reduction.op, call.description().order)),
        own_memory_(call, schedule, size_bytes(reduction.dtype), size_bytes(partial_dtype_)),
        data_(memory.data, size_bytes(reduction.dtype)),
        input_(memory.input, size_bytes(reduction.dtype)),
        scratch_({own_memory_.scratch}, size_bytes(reduction.dtype)),
        partials_({own_memory_.partials}, size_bytes(partial_dtype_)),
        followers_(steps_.size()),
        num_before_(steps_.size()),
        is_started_(steps_.size()),
        has_ended_(steps_.size()),
        num_left_(steps_.size()) {
    for (std::size_t i = 0; i < steps_.size(); ++i) prepare(i);
  }

  void run() {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (num_before_[i] == 0) make_ready(i);
    }
    while (num_left_ > 0) {
      if (computable_.empty()) {
        for (const std::size_t id : call_.wait(awaited())) end(id);
        continue;
      }
      const std::size_t next = *computable_.begin();
      computable_.erase(computable_.begin());
      compute(next);
      for (const std::size_t id : call_.take_ended()) end(id);
    }
  }

 private:
  /// Transfers of one peer and direction that have not started, in order.
  using Queues = std::map<int, std::deque<std::size_t>>;

  void prepare(std::size_t index) {
    const Step& step = steps_[index];
    num_before_[index] = step.after.size();
    for (const int before : step.after) followers_[before].push_back(index);
    if (step.kind == StepKind::kSend) sends_[step.peer].push_back(index);
    if (step.kind == StepKind::kRecv) recvs_[step.peer].push_back(index);
  }

  void make_ready(std::size_t index) {
    const Step& step = steps_[index];
    if (step.kind == StepKind::kReduce || step.kind == StepKind::kCopy) {
      computable_.insert(index);
      return;
    }
    auto& queue = (step.kind == StepKind::kSend ? sends_ : recvs_)[step.peer];
    while (!queue.empty() && num_before_[queue.front()] == 0) {
      start(queue.front());
      queue.pop_front();
    }
  }

  void start(std::size_t index) {
    const Step& step = steps_[index];
    is_started_[index] = true;
    if (step.kind == StepKind::kSend) {
      call_.send(step.peer, source(step.sources.front()), index);
    } else {
      call_.recv(step.peer, target(step.target), index);
    }
  }

  void end(std::size_t index) {
    has_ended_[index] = true;
    --num_left_;
    for (const std::size_t follower : followers_[index]) {
      if (--num_before_[follower] == 0) make_ready(follower);
    }
  }

  void compute(std::size_t index) {
    const Step& step = steps_[index];
    is_started_[index] = true;
    if (step.kind == StepKind::kCopy) {
      const std::span<std::byte> to = target(step.target);
      const std::span<const std::byte> from = source(step.sources.front());
      if (to.data() != from.data()) std::memmove(to.data(), from.data(), from.size());
    } else {
      reduce(step);
    }
    end(index);
  }

  void reduce(const Step& step) const {
    std::vector<const std::byte*> sources;
    for (const Range& range : step.sources) sources.push_back(source(range).data());
    const std::array<std::byte*, 1> targets = {target(step.target).data()};
    const std::int64_t count = step.target.size();
    if (step.sources.front().place == Place::kPartial) {
      return kernels::combine_partials(reduction_, partial_dtype_, call_.members().size(), sources,
                                       targets[0], count);
    }
    kernels::ElementReduction reduction = reduction_;
    std::vector<double> scales;
    if (reduction.op == kernels::ReduceOp::kScaledSum) {
      scales = call_.scales();  // by rank
      reduction.scales = std::span(scales).subspan(step.first_rank, sources.size());
    }
    if (step.target.place == Place::kPartial) {
      return kernels::combine_elements(reduction, partial_dtype_, sources, targets[0], count);
    }
    kernels::combine(reduction, sources, targets, count);
  }

  std::span<std::byte> target(const Range& range) const {
    if (range.place == Place::kPartial) return partials_.at(range);
    return range.place == Place::kScratch ? scratch_.at(range) : data_.at(range);
  }

  std::span<const std::byte> source(const Range& range) const {
    return range.place == Place::kInput ? input_.at(range) : target(range);
  }

  /// Whom the first step that has not started waits for; where all have, but those that await their
  /// turn, everybody.
  std::vector<int> awaited() {
    while (first_ < steps_.size() && (is_started_[first_] || awaits_turn(first_))) ++first_;
    std::set<int> peers;
    if (first_ < steps_.size()) {
      for (const int before : steps_[first_].after) add_awaited(before, peers);
    }
    if (first_ == steps_.size()) {
      for (std::size_t i = 0; i < steps_.size(); ++i) {
        if (is_started_[i]) add_awaited(i, peers);
      }
    }
    return {peers.begin(), peers.end()};
  }

  /// A send that nothing but another send holds up: its peer is not late.
  bool awaits_turn(std::size_t index) const {
    return steps_[index].kind == StepKind::kSend &&
           std::ranges::all_of(steps_[index].after, [this](int before) {
             return has_ended_[before] || steps_[before].kind == StepKind::kSend;
           });
  }

  void add_awaited(std::size_t index, std::set<int>& peers) const {
    if (!has_ended_[index] && steps_[index].peer >= 0) peers.insert(steps_[index].peer);
  }

  Call& call_;
  const std::vector<Step>& steps_;
  const kernels::ElementReduction reduction_;
  const Dtype partial_dtype_;
  const OwnMemory own_memory_;
  const Parts<std::byte> data_;
  const Parts<const std::byte> input_;
  const Parts<std::byte> scratch_;
  const Parts<std::byte> partials_;
  std::vector<std::vector<std::size_t>> followers_;  ///< Steps that are after a step.
  std::vector<std::size_t> num_before_;              ///< Steps not ended that a step is after.
  std::vector<bool> is_started_;
  std::vector<bool> has_ended_;
  std::size_t num_left_;              ///< Steps not ended.
  std::size_t first_ = 0;             ///< All before it have started.
  std::set<std::size_t> computable_;  ///< Ready reduces and copies.
  Queues sends_;
  Queues recvs_;
};

}  // namespace

void run_schedule(Call& call, const CollectiveSchedule& schedule, const ScheduleMemory& memory,
                  const kernels::ElementReduction& reduction) {
  Run(call, schedule, memory, reduction).run();
}

}  // namespace trireme::collectives
