#pragma once

#include <functional>
#include <queue>
#include <vector>

namespace trireme::simulate {

/// Numbers from 0 on, each at most once; the least comes first.
class NumberQueue {
 public:
  /// bound   above all numbers.
  explicit NumberQueue(std::size_t bound) : is_in_(bound) {}

  bool empty() const { return numbers_.empty(); }

  void add(int number) {
    if (is_in_[number]) return;
    is_in_[number] = true;
    numbers_.push(number);
  }

  /// Not of an empty queue.
  int take() {
    const int number = numbers_.top();
    numbers_.pop();
    is_in_[number] = false;
    return number;
  }

 private:
  std::priority_queue<int, std::vector<int>, std::greater<>> numbers_;
  std::vector<bool> is_in_;
};

}  // namespace trireme::simulate
