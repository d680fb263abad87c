#include "packs/ranking/metrics/log_loss.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "trireme/error.h"

namespace trireme::ranking {
namespace {

constexpr std::size_t kLanes = 16;
constexpr std::size_t kBlock = 4096;
constexpr std::size_t kBlocksOfPiece = 16;  // some 300 us: far more than it costs to wake a thread

template <typename T>
bool is_good(T probability, std::uint8_t label) {
  return probability >= 0 && probability <= 1 && label <= 1;
}

template <typename T>
[[noreturn]] void refuse(T probability, std::uint8_t label, std::size_t i) {
  const bool is_label = label > 1 && probability >= 0 && probability <= 1;
  throw Error(ErrorKind::kInvalidArgument,
              is_label ? "log loss: label " + std::to_string(i) + " is " + std::to_string(label) +
                             ", expected 0 or 1"
                       : "log loss: probability " + std::to_string(i) + " is " +
                             std::to_string(probability) + ", expected 0 to 1");
}

template <typename T>
double loss_of(T probability, std::uint8_t label) {
  constexpr T kEpsilon = std::numeric_limits<T>::epsilon();
  const T of_label = label == 1 ? probability : 1 - probability;
  return -std::log(static_cast<double>(std::clamp(of_label, kEpsilon, 1 - kEpsilon)));
}

/// Of a block of samples.
struct BlockLoss {
  double sum = 0;
  std::int64_t num_positives = 0;
  bool is_good = true;
};

template <typename T>
BlockLoss block_loss(const T* probabilities, const std::uint8_t* labels, std::size_t n) {
  BlockLoss block;
  std::array<double, kLanes> lanes{};
  for (std::size_t i = 0; i < n; ++i) {
    block.is_good &= is_good(probabilities[i], labels[i]);
    lanes[i % kLanes] += loss_of(probabilities[i], labels[i]);
    block.num_positives += labels[i];
  }
  for (std::size_t stride = 1; stride < kLanes; stride *= 2) {
    for (std::size_t lane = 0; lane < kLanes; lane += 2 * stride)
      lanes[lane] += lanes[lane + stride];
  }
  block.sum = lanes[0];
  return block;
}

template <typename T>
LogLoss sum_losses(std::span<const T> probabilities, std::span<const std::uint8_t> labels,
                   const kernels::Spread& spread) {
  const std::size_t n = probabilities.size();
  if (labels.size() != n) {
    throw Error(ErrorKind::kInvalidArgument, "log loss: " + std::to_string(n) +
                                                 " probabilities, but " +
                                                 std::to_string(labels.size()) + " labels");
  }
  std::vector<BlockLoss> blocks((n + kBlock - 1) / kBlock);
  const std::size_t num_pieces = (blocks.size() + kBlocksOfPiece - 1) / kBlocksOfPiece;
  spread(static_cast<std::int64_t>(num_pieces), [&](std::int64_t piece) {
    const std::size_t first = static_cast<std::size_t>(piece) * kBlocksOfPiece;
    for (std::size_t b = first; b < std::min(first + kBlocksOfPiece, blocks.size()); ++b) {
      const std::size_t begin = b * kBlock;
      blocks[b] = block_loss(&probabilities[begin], &labels[begin], std::min(kBlock, n - begin));
    }
  });
  LogLoss all{.num_samples = static_cast<std::int64_t>(n)};
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (std::size_t i = b * kBlock; !blocks[b].is_good && i < n; ++i) {
      if (!is_good(probabilities[i], labels[i])) refuse(probabilities[i], labels[i], i);
    }
    all.sum += blocks[b].sum;
    all.num_positives += blocks[b].num_positives;
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

LogLoss log_loss(std::span<const double> probabilities, std::span<const std::uint8_t> labels,
                 const kernels::Spread& spread) {
  return sum_losses(probabilities, labels, spread);
}

LogLoss log_loss(std::span<const float> probabilities, std::span<const std::uint8_t> labels,
                 const kernels::Spread& spread) {
  return sum_losses(probabilities, labels, spread);
}

}  // namespace trireme::ranking
