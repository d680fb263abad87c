#include "trireme/data/read_parts.h"

#include <atomic>

#include "trireme/error.h"

namespace trireme::data {
namespace {

std::atomic<ReadProfile*> current_profile = nullptr;
thread_local ReadTimer* innermost_timer = nullptr;

}  // namespace

ReadProfile::ReadProfile() {
  ReadProfile* none = nullptr;
  if (current_profile.compare_exchange_strong(none, this)) return;
  throw Error(ErrorKind::kInvalidArgument,
              "reading is being profiled already; end that profile first");
}

ReadProfile::~ReadProfile() { current_profile = nullptr; }

std::map<std::string, ReadPart> ReadProfile::parts() const {
  const std::scoped_lock lock(mutex_);
  return parts_;
}

void ReadProfile::add(const char* part, const ReadPart& more) {
  const std::scoped_lock lock(mutex_);
  ReadPart& sum = parts_[part];
  sum.time += more.time;
  sum.count += more.count;
  sum.bytes += more.bytes;
}

ReadTimer::ReadTimer(const char* part) : profile_(current_profile), part_(part) {
  if (profile_ == nullptr) return;
  around_ = innermost_timer;
  innermost_timer = this;
  begin_ = Clock::now();
}

ReadTimer::~ReadTimer() {
  if (profile_ == nullptr) return;
  const std::chrono::nanoseconds whole = Clock::now() - begin_;
  innermost_timer = around_;
  if (around_ != nullptr) around_->inside_ += whole;
  profile_->add(part_, {.time = whole - inside_, .count = 1, .bytes = bytes_});
}

}  // namespace trireme::data
