#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

namespace trireme::evaluate {

/// Scores with their labels in 32 bits each, ascending, those below zero apart:
///
///     2 k + label     k: the float's bits, for those below zero all flipped, without the sign
///
/// so that of equal scores the negatives come first. -0 counts as 0.
class SortedScores {
 public:
  /// scores   destroyed.
  /// labels   as many.
  /// Errors   kInvalidArgument, naming the index of a score that is NaN or of a label that is
  ///          neither 0 nor 1; beyond 2^32 - 1 scores.
  SortedScores(std::span<float> scores, std::span<const std::uint8_t> labels);

  /// Of scores below zero, then of the others.
  const std::array<std::span<const std::uint32_t>, 2>& halves() const { return halves_; }

 private:
  std::array<std::span<const std::uint32_t>, 2> halves_;
  struct Free {
    void operator()(std::uint32_t* memory) const;
  };
  std::unique_ptr<std::uint32_t[], Free> memory_;
};

}  // namespace trireme::evaluate
