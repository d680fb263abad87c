#include "trireme/evaluate/ranking/log_loss.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "trireme/base/error.h"

namespace trireme::evaluate {
namespace {

constexpr std::size_t kLanes = 16;
constexpr std::size_t kBlock = 4096;

template <typename T>
double loss_of(T probability, std::uint8_t label, std::size_t i) {
  const auto p = static_cast<double>(probability);
  if (!(p >= 0 && p <= 1)) {
    throw Error(ErrorKind::kInvalidArgument, "log loss: probability " + std::to_string(i) + " is " +
                                                 std::to_string(p) + ", expected 0 to 1");
  }
  if (label > 1) {
    throw Error(ErrorKind::kInvalidArgument, "log loss: label " + std::to_string(i) + " is " +
                                                 std::to_string(label) + ", expected 0 or 1");
  }
  constexpr T kEpsilon = std::numeric_limits<T>::epsilon();
  const T of_label = label == 1 ? probability : 1 - probability;
  return -std::log(static_cast<double>(std::clamp(of_label, kEpsilon, 1 - kEpsilon)));
}

template <typename T>
LogLoss sum_losses(std::span<const T> probabilities, std::span<const std::uint8_t> labels) {
  const std::size_t n = probabilities.size();
  if (labels.size() != n) {
    throw Error(ErrorKind::kInvalidArgument, "log loss: " + std::to_string(n) +
                                                 " probabilities, but " +
                                                 std::to_string(labels.size()) + " labels");
  }
  LogLoss all{.num_samples = static_cast<std::int64_t>(n)};
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    std::array<double, kLanes> lanes{};
    for (std::size_t i = begin; i < std::min(begin + kBlock, n); ++i) {
      lanes[i % kLanes] += loss_of(probabilities[i], labels[i], i);
      all.num_positives += labels[i];
    }
    for (std::size_t stride = 1; stride < kLanes; stride *= 2) {
      for (std::size_t lane = 0; lane < kLanes; lane += 2 * stride) {
        lanes[lane] += lanes[lane + stride];
      }
    }
    all.sum += lanes[0];
  }
  return all;
}

}  // namespace

LogLoss& LogLoss::operator+=(const LogLoss& other) {
  sum += other.sum;
  num_samples += other.num_samples;
  num_positives += other.num_positives;
  return *this;
}

double LogLoss::mean() const { return sum / static_cast<double>(num_samples); }

double LogLoss::normalized_entropy() const {
  const double p = static_cast<double>(num_positives) / static_cast<double>(num_samples);
  const auto part = [](double share) { return share > 0 ? -share * std::log(share) : 0; };
  return mean() / (part(p) + part(1 - p));
}

LogLoss log_loss(std::span<const double> probabilities, std::span<const std::uint8_t> labels) {
  return sum_losses(probabilities, labels);
}

LogLoss log_loss(std::span<const float> probabilities, std::span<const std::uint8_t> labels) {
  return sum_losses(probabilities, labels);
}

}  // namespace trireme::evaluate
