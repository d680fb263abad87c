#include "trireme/data/read_parts.h"

#include <string_view>
#include <utility>

namespace trireme::data {
namespace {

thread_local ReadParts* counted_parts = nullptr;
thread_local ReadTimer* innermost_timer = nullptr;

}  // namespace

ReadParts::ByName ReadParts::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(parts_, {});
}

void ReadParts::add(const char* part, const ReadPart& more) {
  const std::scoped_lock lock(mutex_);
  auto sum = parts_.find(std::string_view(part));
  if (sum == parts_.end()) sum = parts_.emplace(part, ReadPart{}).first;
  sum->second.time += more.time;
  sum->second.count += more.count;
  sum->second.bytes += more.bytes;
}

CountedReading::CountedReading(ReadParts* parts) : before_(std::exchange(counted_parts, parts)) {}

CountedReading::~CountedReading() { counted_parts = before_; }

void count_part(const char* part, const ReadPart& more) {
  if (counted_parts != nullptr) counted_parts->add(part, more);
}

ReadTimer::ReadTimer(const char* part) : parts_(counted_parts), part_(part) {
  if (parts_ == nullptr) return;
  around_ = innermost_timer;
  innermost_timer = this;
  begin_ = Clock::now();
}

ReadTimer::~ReadTimer() {
  if (parts_ == nullptr) return;
  const std::chrono::nanoseconds whole = Clock::now() - begin_;
  innermost_timer = around_;
  if (around_ != nullptr) around_->inside_ += whole;
  parts_->add(part_, {.time = whole - inside_, .count = 1, .bytes = bytes_});
}

}  // namespace trireme::data
