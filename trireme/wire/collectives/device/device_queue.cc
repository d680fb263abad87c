#include "trireme/wire/collectives/device/device_queue.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "trireme/base/cuda/memory.h"
#include "trireme/base/cuda/stream.h"
#include "trireme/wire/collectives/device/connect.h"
#include "trireme/wire/endpoint/watch.h"

namespace trireme::collectives {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// ---- Works

bool DeviceWork::is_done() const {
  queue_->advance();
  return state_.is_done();
}

bool DeviceWork::wait_for(milliseconds time) {
  constexpr microseconds kSpin{100};  // a small operation takes less
  constexpr microseconds kPause{20};
  const auto begin = std::chrono::steady_clock::now();
  const auto until = transport::later(time);
  for (;;) {
    queue_->advance();
    if (state_.wait_for(milliseconds(0))) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now >= until) return false;
    now - begin < kSpin ? std::this_thread::yield() : std::this_thread::sleep_for(kPause);
  }
}

// ---- Calls

DeviceQueue::DeviceQueue(const Members& members, DeviceParts parts)
    : members_(members),
      group_failure_(members.failure()),
      parts_(std::move(parts)),
      exchange_(members_),
      agreement_(members_) {
  thread_.emplace("group " + members_.name, [this] { serve(); });
}

/// A GPU's graph would repeat the stream's part and not ours.
void DeviceQueue::refuse_capture() const {
  if (parts_.caller == nullptr || !cuda::is_capturing(*parts_.caller)) return;
  throw Error(ErrorKind::kInvalidArgument,
              "the operations of a group cannot be captured in a CUDA graph; capture "
              "kernels::cuda::one_shot_all_reduce instead");
}

/// Engines, and agreement where it is asked for.
void DeviceQueue::prepare(const Description& description) {
  if (!is_connected_) {
    DeviceEngines engines = parts_.connect(exchange_);
    const std::lock_guard lock(engines_mutex_);
    engines_ = std::move(engines);
    is_connected_ = true;
  }
  if (parts_.checks_calls || description.hash) exchange_.compare(description);
}

/// Throws what ended the world, and kTimeout.
void DeviceQueue::checkpoint(const Job& job, Time deadline) const {
  if (group_failure_->is_set()) throw Error(*group_failure_->error());
  if (Clock::now() < deadline) return;
  const std::lock_guard lock(mutex_);
  throw late_error(agreement_.missing(job.description), job.patience);
}

/// This rank's bytes of an all_gather come to their place.
void DeviceQueue::place_own(const Request& request) {
  if (request.mine.empty()) return;
  const Elements own = request.data.part(request.parts[members_.group_rank]);
  cuda::copy_bytes(own.bytes, request.mine, *parts_.stream);
}

/// kInvalidArgument where none can do it: on all ranks alike, so that nothing is under way.
DeviceEngine& DeviceQueue::choose(const Request& request) {
  const std::lock_guard lock(engines_mutex_);
  try {
    return choose_engine(engines_.engines, request, engines_.why_no_other);
  } catch (Error& error) {
    const std::lock_guard flight_lock(mutex_);
    members_.flight->fail(request.description.sequence, Clock::now());
    error.add({.group = members_.name});
    throw;
  }
}

void DeviceQueue::enqueue(const Request& request, Job& job) {
  const std::lock_guard lock(engines_mutex_);
  if (group_failure_->is_set()) throw Error(*group_failure_->error());  // engines may have ended
  const cuda::CurrentDevice current(parts_.stream->device());
  if (parts_.caller != nullptr) {
    job.ready = parts_.make_event();
    job.ready->record(*parts_.caller);
    parts_.stream->run_after(*job.ready);
  }
  place_own(request);
  const Time deadline = transport::later(job.patience);
  job.engine->enqueue(request, *parts_.stream, [&] { checkpoint(job, deadline); });
  job.work->end_ = parts_.make_event();
  job.work->end_->record(*parts_.stream);
}

transport::WorkPtr DeviceQueue::submit(Request request) {
  refuse_capture();
  Description& description = request.description;
  description.sequence = num_submitted_++;
  description.group_size = static_cast<std::uint32_t>(members_.size());
  description.order = members_.order;
  Job job{.work = std::make_shared<DeviceWork>(shared_from_this(), group_failure_),
          .description = description,
          .scale = request.scale,
          .patience = request.deadline.value_or(members_.deadline)};
  const DeviceWorkPtr work = job.work;
  {
    const std::lock_guard lock(mutex_);
    members_.flight->call(description.sequence, request, Clock::now());
  }
  std::optional<Error> error = group_failure_->error();
  const auto attempt = [&error](const auto& step) {
    if (error) return;
    try {
      step();
    } catch (const Error& thrown) {
      error = thrown;
    }
  };
  attempt([&] { prepare(description); });
  if (!error) job.engine = &choose(request);
  attempt([&] { enqueue(request, job); });
  if (error) {
    error->add({.operation = std::string(to_text(description.operation)),
                .sequence = description.sequence});
    fail(*error);
  }
  std::unique_lock lock(mutex_);
  if (failure_) {
    lock.unlock();
    let_go(*work, Clock::now() + kLetGo);
    lock.lock();
    members_.flight->fail(description.sequence, Clock::now());
    work->state_.fail(*failure_);
    return work;
  }
  members_.flight->start(description.sequence, Clock::now());
  jobs_.push_back(std::move(job));
  changed_.notify_one();
  return work;
}

std::vector<int> DeviceQueue::missing() const {
  const std::lock_guard lock(mutex_);
  if (jobs_.empty() || !jobs_.front().since) return {};
  return agreement_.missing(jobs_.front().description);
}

// ---- How far it is

/// Under the mutex.
void DeviceQueue::finish_done() {
  while (!jobs_.empty() && jobs_.front().work->end_->is_done()) {
    Job& job = jobs_.front();
    if (!job.engine->is_sound()) return;  // looked at after the end, or it might come in between
    agreement_.retract();
    members_.flight->end(job.description.sequence, Clock::now(), {});
    job.work->state_.complete();
    jobs_.pop_front();
  }
}

/// Under the mutex: what ends the first operation before it is done.
std::optional<Error> DeviceQueue::problem() {
  finish_done();
  if (jobs_.empty()) return std::nullopt;
  if (group_failure_->is_set()) return group_failure_->error();
  Job& job = jobs_.front();
  const Time now = Clock::now();
  if (!job.since && (!job.ready || job.ready->is_done())) job.since = now;
  if (!job.since || now - *job.since < WaitNotes::kPatience) return std::nullopt;
  agreement_.look(job.description, job.scale, now);
  if (now - *job.since < job.patience) return std::nullopt;
  return late_error(agreement_.missing(job.description), job.patience);
}

/// Another rank's end shows first as trouble between the GPUs: then that is not the cause.
Error DeviceQueue::with_first_cause(const Error& error) const {
  constexpr std::chrono::seconds kNews{1};
  for (const auto limit = Clock::now() + kNews; Clock::now() < limit;) {
    if (const auto cause = group_failure_->error()) return *cause;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return error;
}

std::optional<Error> DeviceQueue::engine_problem() {
  const std::unique_lock lock(engines_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return std::nullopt;  // a call is under way, and looks itself
  for (const auto& engine : engines_.engines) {
    if (const auto error = engine->failure()) return with_first_cause(*error);
  }
  return std::nullopt;
}

void DeviceQueue::advance() {
  std::optional<Error> error;
  try {
    ErrorContext place;
    {
      const std::lock_guard lock(mutex_);
      if (jobs_.empty() || failure_) return;
      place = {.operation = std::string(to_text(jobs_.front().description.operation)),
               .sequence = jobs_.front().description.sequence};
      try {
        error = problem();
      } catch (const Error& thrown) {
        error = thrown;
      }
      if (!error && jobs_.empty()) return;
    }
    if (error && error->kind() == ErrorKind::kIo) error = with_first_cause(*error);
    if (!error) error = engine_problem();
    if (error) error->add(place);
  } catch (const Error& thrown) {
    error = thrown;
  } catch (const std::exception& thrown) {
    error = Error(ErrorKind::kResourceExhausted, "no memory for a collective", thrown);
  }
  if (error) fail(*error);
}

// ---- The end

/// Until the GPU touches the buffers no more. Of a GPU that has failed nothing is known.
void DeviceQueue::let_go(const DeviceWork& work, Time limit) {
  if (work.end() == nullptr) return;
  try {
    while (!work.end()->is_done() && Clock::now() < limit) {
      std::this_thread::sleep_for(microseconds(100));
    }
  } catch (const Error&) {
    return;
  }
}

void DeviceQueue::fail(Error error) {
  error.add({.rank = members_.endpoint.rank(), .group = members_.name});
  std::deque<Job> jobs;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = error;
    jobs = std::exchange(jobs_, {});
  }
  members_.fail(error);
  {
    const std::lock_guard lock(engines_mutex_);
    for (const auto& engine : engines_.engines) engine->abort();
  }
  const Time limit = Clock::now() + kLetGo;
  for (const Job& job : jobs) let_go(*job.work, limit);
  const std::lock_guard lock(mutex_);
  for (const Job& job : jobs) {
    members_.flight->fail(job.description.sequence, Clock::now());
    job.work->state_.fail(error);
  }
  members_.log_flight();
}

void DeviceQueue::serve() {
  constexpr microseconds kShortest{50};
  constexpr microseconds kLongest{1000};
  std::unique_lock lock(mutex_);
  microseconds pause = kShortest;
  for (;;) {
    if (jobs_.empty()) pause = kShortest;
    changed_.wait(lock, [this] { return is_closing_ || !jobs_.empty(); });
    if (is_closing_) return;
    const std::int64_t first = jobs_.front().description.sequence;
    lock.unlock();
    advance();
    std::this_thread::sleep_for(pause);
    lock.lock();
    const bool has_moved = jobs_.empty() || jobs_.front().description.sequence != first;
    pause = has_moved ? kShortest : std::min(pause * 2, kLongest);
  }
}

void DeviceQueue::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_one();
  thread_->join();
  advance();
  bool is_busy = false;
  {
    const std::lock_guard lock(mutex_);
    is_busy = !jobs_.empty();
  }
  if (is_busy) {
    fail(Error(ErrorKind::kCancelled, "the group was closed with operations under way"));
  }
  const std::lock_guard lock(engines_mutex_);
  if (group_failure_->is_set()) {  // then nobody comes to an orderly end
    for (const auto& engine : engines_.engines) engine->abort();
  }
  engines_.engines.clear();
  exchange_.close();
}

}  // namespace trireme::collectives
