#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "python/backend/collectives.h"

namespace trireme::backend {

/// Throw kInvalidArgument where tensors do not fit together.
[[noreturn]] void refuse_call(const std::string& problem);
void check_count(std::size_t given, const RankGroup& group, const char* what);
void check_same_dtype(const at::Tensor& a, const at::Tensor& b, const char* operation);
void check_numel(std::int64_t given, std::int64_t expected, const char* what);

/// Results that come to plain memory, and copies of it where a target is none.
class Incoming {
 public:
  std::span<std::byte> place(const at::Tensor& target) {
    at::Tensor memory = plain_like(target);
    if (!memory.is_same(target)) copies_.emplace_back(target, memory);
    kept_.push_back(memory);
    return bytes_of(memory);
  }

  void give_to(Call& call) {
    call.lent.insert(call.lent.end(), kept_.begin(), kept_.end());
    if (copies_.empty()) return;
    call.after = [copies = copies_] {
      for (const auto& [target, memory] : copies) target.copy_(memory);
    };
  }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;
  Tensors kept_;
};

/// Plain forms of tensors that are sent.
class Outgoing {
 public:
  std::span<const std::byte> bytes(const at::Tensor& source) {
    kept_.push_back(plain(source));
    return bytes_of(kept_.back());
  }

  void give_to(Call& call) { call.lent.insert(call.lent.end(), kept_.begin(), kept_.end()); }

 private:
  Tensors kept_;
};

}  // namespace trireme::backend
