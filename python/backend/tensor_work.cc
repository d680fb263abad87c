#include "python/backend/tensor_work.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "python/backend/torch_errors.h"
#include "trireme/error.h"

namespace trireme::backend {
namespace {

std::optional<std::vector<at::Tensor>> for_profiler(const TensorWork::Origin& origin) {
  if (origin.inputs.empty()) return std::nullopt;
  return origin.inputs;
}

}  // namespace

void CallsUnderWay::add(const c10::intrusive_ptr<TensorWork>& work) {
  constexpr std::size_t kMany = 64;  // that nobody has waited for
  std::vector<c10::intrusive_ptr<TensorWork>> all;
  {
    const std::lock_guard lock(mutex_);
    works_.emplace(work.get(), work);
    if (works_.size() < kMany) return;
    for (const auto& [key, one] : works_) all.push_back(one);
  }
  for (const auto& one : all) one->isCompleted();  // those that have ended remove themselves
}

void CallsUnderWay::remove(TensorWork* work) {
  c10::intrusive_ptr<TensorWork> last;  // ends without the mutex
  const std::lock_guard lock(mutex_);
  const auto found = works_.find(work);
  if (found == works_.end()) return;
  last = std::move(found->second);
  works_.erase(found);
}

c10::intrusive_ptr<TensorWork> TensorWork::make(const std::shared_ptr<RankGroup>& group,
                                                const std::shared_ptr<CallsUnderWay>& under_way,
                                                Call call, Origin origin) {
  auto work = c10::make_intrusive<TensorWork>(group, under_way, std::move(call), std::move(origin));
  under_way->add(work);
  return work;
}

TensorWork::TensorWork(const std::shared_ptr<RankGroup>& group,
                       const std::shared_ptr<CallsUnderWay>& under_way, Call call, Origin origin)
    : c10d::Work(group->rank(), origin.type, origin.title.c_str(), for_profiler(origin)),
      group_(group),
      under_way_(under_way),
      ranks_(group->ranks()),
      timeout_(group->timeout()),
      origin_(std::move(origin)),
      call_(std::move(call)) {}

bool TensorWork::is_settled() const {
  const std::lock_guard lock(mutex_);
  return is_settled_;
}

bool TensorWork::isCompleted() {
  if (is_settled()) return true;
  const auto has_ended = [](const transport::WorkPtr& work) { return work->is_done(); };
  if (!std::ranges::all_of(call_.works, has_ended)) return false;
  settle();
  return true;
}

bool TensorWork::isSuccess() const {
  const std::lock_guard lock(mutex_);
  return is_settled_ && !failure_ && !other_error_;
}

std::exception_ptr TensorWork::exception() const {
  const std::lock_guard lock(mutex_);
  return error_at(origin_.line);
}

/// Nothing where the call has ended well, or not yet. Under the mutex, or once it is settled.
std::exception_ptr TensorWork::error_at(const CallLine& line) const {
  return failure_ ? operation_failed(*failure_, line) : other_error_;
}

int TensorWork::sourceRank() const {
  if (!call_.recv) TORCH_CHECK(false, "only a recv has a source rank");
  const auto found = std::ranges::find(ranks_, call_.recv->received().source);
  return static_cast<int>(found - ranks_.begin());
}

std::vector<at::Tensor> TensorWork::result() { return call_.results; }

/// Their errors come when they are settled.
void TensorWork::wait_for_works(std::chrono::milliseconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  for (const transport::WorkPtr& work : call_.works) {
    const auto left = std::max(
        std::chrono::milliseconds(0),
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()));
    try {
      if (work->wait_for(left)) continue;
    } catch (const Error&) {
      continue;
    }
    throw_refusal(Error(ErrorKind::kTimeout, origin_.title + " has not ended within the " +
                                                 std::to_string(timeout.count()) +
                                                 " ms of this wait; it goes on"),
                  origin_.line.line == 0 ? call_line() : origin_.line);
  }
}

bool TensorWork::wait(std::chrono::milliseconds timeout) {
  if (timeout > kNoTimeout && !is_settled()) wait_for_works(timeout);
  settle();
  if (!isSuccess()) {
    const CallLine line = origin_.line.line == 0 ? call_line() : origin_.line;
    std::rethrow_exception(error_at(line));
  }
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(mutex_);
    future = future_;
  }
  if (future) future->wait();  // another thread may be about to complete it
  return true;
}

/// Waits for the works, and does what comes after them.
void TensorWork::finish_call() {
  try {
    for (const transport::WorkPtr& work : call_.works) {
      work->wait_for(std::chrono::milliseconds::max());
    }
    const at::AutoDispatchBelowAutograd below;
    const at::NoGradGuard no_grad;
    if (call_.after) call_.after();
  } catch (const Error& error) {
    failure_ = error;
  } catch (...) {
    other_error_ = std::current_exception();
  }
}

/// Once; others that call it meanwhile wait until it is done.
void TensorWork::settle() {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(mutex_);
    if (is_settled_) return;
    finish_call();
    is_settled_ = true;
    call_.after = nullptr;
    call_.lent.clear();
    future = future_;
  }
  if (recordFunctionEndCallback_) {
    recordFunctionEndCallback_();
    recordFunctionEndCallback_ = nullptr;
  }
  if (const auto under_way = under_way_.lock()) under_way->remove(this);
  if (!future) return;
  // Without the mutex: its callbacks may ask for this work.
  if (const auto error = error_at(origin_.line)) return future->setError(error);
  future->markCompleted(at::IValue(call_.results));
}

c10::intrusive_ptr<c10::ivalue::Future> TensorWork::getFuture() {
  {
    const std::lock_guard lock(mutex_);
    if (future_) return future_;
    future_ =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    if (is_settled_) {
      if (const auto error = error_at(origin_.line)) {
        future_->setError(error);
      } else {
        future_->markCompleted(at::IValue(call_.results));
      }
      return future_;
    }
  }
  const auto self = c10::intrusive_ptr<TensorWork>::unsafe_reclaim_from_nonowning(this);
  if (const std::shared_ptr<RankGroup> group = group_.lock()) {
    group->ended_works().when_ended(call_.works, [self] { self->settle(); });
  } else {
    settle();  // its works ended with the group
  }
  return future_;
}

}  // namespace trireme::backend
