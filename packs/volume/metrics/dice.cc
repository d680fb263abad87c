#include "packs/volume/metrics/dice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "trireme/error.h"
#include "trireme/kernels/simd.h"

namespace trireme::volume {
namespace {

using volume::VolumeShape;

constexpr std::int64_t kRun = 64;    // voxels that are looked at together
constexpr std::int64_t kSums = 512;  // of each kind: f64 that stay in the first cache
constexpr std::int64_t kPart = std::int64_t{1} << 18;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::kInvalidArgument, "dice: " + what);
}

template <typename T>
void check_view(const std::string& name, const VolumeView<T>& view, std::int64_t num_values) {
  check_shape("dice: " + name, view.shape);
  const std::int64_t wanted = num_values * view.shape.count();
  if (std::ssize(view.values) == wanted) return;
  refuse(name + " has " + std::to_string(view.values.size()) + " values, expected " +
         std::to_string(wanted) + " for shape " + to_text(view.shape));
}

void check_equal(const VolumeShape& predicted, const VolumeShape& expected) {
  if (predicted == expected) return;
  refuse("predicted has shape " + to_text(predicted) + ", expected has " + to_text(expected));
}

void check_classes(std::int64_t num_classes, std::int64_t most) {
  if (num_classes >= 1 && num_classes <= most) return;
  refuse(std::to_string(num_classes) + " classes, expected 1 to " + std::to_string(most));
}

/// Throws where a label is out of range.
template <typename Label>
void check_labels(const std::string& name, const VolumeView<Label>& view,
                  std::int64_t num_classes) {
  for (std::size_t i = 0; i < view.values.size(); ++i) {
    const auto label = static_cast<std::int64_t>(view.values[i]);
    if (label >= 0 && label < num_classes) continue;
    refuse(name + " has label " + std::to_string(label) + " at " +
           to_text(view.shape.voxel_at(static_cast<std::int64_t>(i))) + ", expected 0 to " +
           std::to_string(num_classes - 1));
  }
}

/// Counts by label, and one more for those out of range.
template <typename Label>
class Counter {
 public:
  explicit Counter(std::int64_t num_classes) : counts_(num_classes + 1) {}

  void add(const Label* predicted, const Label* expected, std::int64_t n) {
    std::int64_t i = 0;
    for (; i + kRun <= n; i += kRun) {
      if (is_run(predicted + i, expected + i)) {
        add_one(predicted[i], expected[i], kRun);
      } else {
        add_each(predicted + i, expected + i, kRun);
      }
    }
    add_each(predicted + i, expected + i, n - i);
  }

  Counter& operator+=(const Counter& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    return *this;
  }

  bool is_good() const { return counts_.back() == DiceCounts{}; }

  std::vector<DiceCounts> counts() && {
    counts_.pop_back();
    return std::move(counts_);
  }

 private:
  /// Whether all of `kRun` are equal, in each volume.
  static bool is_run(const Label* predicted, const Label* expected) {
    Label differs = 0;
    for (std::int64_t i = 0; i < kRun; ++i) {
      differs |= (predicted[i] ^ predicted[0]) | (expected[i] ^ expected[0]);
    }
    return differs == 0;
  }

  void add_each(const Label* predicted, const Label* expected, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) add_one(predicted[i], expected[i], 1);
  }

  void add_one(Label predicted, Label expected, std::uint64_t n) {
    at(predicted).predicted += n;
    at(expected).expected += n;
    at(expected).both += predicted == expected ? n : 0;
  }

  DiceCounts& at(Label label) {
    const auto index = static_cast<std::uint32_t>(label);  // a negative one is beyond all
    return counts_[std::min<std::size_t>(index, counts_.size() - 1)];
  }

  std::vector<DiceCounts> counts_;
};

template <typename Label>
std::vector<DiceCounts> count(std::int64_t num_classes, const VolumeView<Label>& predicted,
                              const VolumeView<Label>& expected, const kernels::Spread& spread) {
  check_classes(num_classes, std::int64_t{1} << 20);
  check_view("predicted", predicted, 1);
  check_view("expected", expected, 1);
  check_equal(predicted.shape, expected.shape);
  const std::int64_t num_voxels = predicted.shape.count();
  // Counts of a part cost memory and time of their own.
  const std::int64_t part = std::max(kPart, 16 * num_classes);
  std::vector<Counter<Label>> counters((num_voxels + part - 1) / part, Counter<Label>(num_classes));
  spread(std::ssize(counters), [&](std::int64_t i) {
    const std::int64_t begin = i * part;
    counters[i].add(predicted.values.data() + begin, expected.values.data() + begin,
                    std::min(part, num_voxels - begin));
  });
  for (std::size_t i = 1; i < counters.size(); ++i) counters[0] += counters[i];
  if (!counters[0].is_good()) {
    check_labels("predicted", predicted, num_classes);
    check_labels("expected", expected, num_classes);
  }
  return std::move(counters[0]).counts();
}

// ---- sums of probabilities

/// kSums of each kind.
struct Sums {
  std::array<double, kSums> both = {}, predicted = {}, squares = {};
};

TRIREME_INLINE_LOOP std::int64_t add_row_loop(const float* __restrict p,
                                              const std::uint8_t* __restrict labels,
                                              std::uint8_t label, std::int64_t n,
                                              Sums& __restrict sums) {
  std::int32_t expected = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float here = labels[i] == label ? p[i] : 0.0F;
    const auto wide = static_cast<double>(p[i]);
    expected += labels[i] == label;
    sums.both[i] += static_cast<double>(here);
    sums.predicted[i] += wide;
    sums.squares[i] += wide * wide;
  }
  return expected;
}

using AddRow = std::int64_t (*)(const float*, const std::uint8_t*, std::uint8_t, std::int64_t,
                                Sums&);

std::int64_t add_row_portable(const float* p, const std::uint8_t* labels, std::uint8_t label,
                              std::int64_t n, Sums& sums) {
  return add_row_loop(p, labels, label, n, sums);
}

TRIREME_AVX2 std::int64_t add_row_avx2(const float* p, const std::uint8_t* labels,
                                       std::uint8_t label, std::int64_t n, Sums& sums) {
  return add_row_loop(p, labels, label, n, sums);
}

TRIREME_AVX512 std::int64_t add_row_avx512(const float* p, const std::uint8_t* labels,
                                           std::uint8_t label, std::int64_t n, Sums& sums) {
  return add_row_loop(p, labels, label, n, sums);
}

AddRow add_row() {
  if (kernels::has_avx512()) return add_row_avx512;
  if (kernels::has_avx2()) return add_row_avx2;
  return add_row_portable;
}

double tree(std::array<double, kSums>& sums) {
  for (std::int64_t stride = 1; stride < kSums; stride *= 2) {
    for (std::int64_t i = 0; i < kSums; i += 2 * stride) sums[i] += sums[i + stride];
  }
  return sums[0];
}

SoftDiceSums sums_of_part(const float* p, const std::uint8_t* labels, std::uint8_t label,
                          std::int64_t n) {
  Sums sums;
  std::int64_t expected = 0;
  const AddRow add = add_row();
  for (std::int64_t i = 0; i < n; i += kSums) {
    expected += add(p + i, labels + i, label, std::min(kSums, n - i), sums);
  }
  return {tree(sums.both), tree(sums.predicted), tree(sums.squares), static_cast<double>(expected)};
}

void check_sums(const std::vector<SoftDiceSums>& sums, const VolumeView<float>& probabilities,
                const VolumeView<std::uint8_t>& expected) {
  const std::int64_t num_classes = std::ssize(sums), count = expected.shape.count();
  double num_labels = 0;
  for (std::int64_t c = 0; c < num_classes; ++c) {
    num_labels += sums[c].expected;
    if (std::isfinite(sums[c].predicted)) continue;
    const float* begin = probabilities.values.data() + c * count;
    const float* bad =
        std::find_if_not(begin, begin + count, [](float p) { return std::isfinite(p); });
    refuse("the probability of class " + std::to_string(c) + " at " +
           to_text(expected.shape.voxel_at(bad - begin)) + " is " + std::to_string(*bad));
  }
  if (num_labels != static_cast<double>(count)) check_labels("expected", expected, num_classes);
}

}  // namespace

DiceCounts& DiceCounts::operator+=(const DiceCounts& other) {
  both += other.both;
  predicted += other.predicted;
  expected += other.expected;
  return *this;
}

double DiceCounts::dice(double smoothing) const {
  return (2 * static_cast<double>(both) + smoothing) /
         (static_cast<double>(predicted + expected) + smoothing);
}

double DiceCounts::iou() const {
  return static_cast<double>(both) / static_cast<double>(predicted + expected - both);
}

double mean_dice(std::span<const DiceCounts> classes, double smoothing) {
  double sum = 0;
  int num_present = 0;
  for (const DiceCounts& counts : classes) {
    const double dice = counts.dice(smoothing);
    if (std::isnan(dice)) continue;
    sum += dice;
    ++num_present;
  }
  return sum / num_present;
}

std::vector<DiceCounts> dice_counts(std::int64_t num_classes,
                                    const VolumeView<std::uint8_t>& predicted,
                                    const VolumeView<std::uint8_t>& expected,
                                    const kernels::Spread& spread) {
  return count(num_classes, predicted, expected, spread);
}

std::vector<DiceCounts> dice_counts(std::int64_t num_classes,
                                    const VolumeView<std::int32_t>& predicted,
                                    const VolumeView<std::int32_t>& expected,
                                    const kernels::Spread& spread) {
  return count(num_classes, predicted, expected, spread);
}

SoftDiceSums& SoftDiceSums::operator+=(const SoftDiceSums& other) {
  both += other.both;
  predicted += other.predicted;
  squares += other.squares;
  expected += other.expected;
  return *this;
}

double SoftDiceSums::dice(double smoothing) const {
  return (2 * both + smoothing) / (predicted + expected + smoothing);
}

double SoftDiceSums::dice_of_squares(double smoothing) const {
  return (2 * both + smoothing) / (squares + expected + smoothing);
}

std::vector<SoftDiceSums> soft_dice_sums(std::int64_t num_classes,
                                         const VolumeView<float>& probabilities,
                                         const VolumeView<std::uint8_t>& expected,
                                         const kernels::Spread& spread) {
  check_classes(num_classes, 256);
  check_view("predicted", probabilities, num_classes);
  check_view("expected", expected, 1);
  check_equal(probabilities.shape, expected.shape);
  const std::int64_t count = expected.shape.count();
  const std::int64_t num_parts = (count + kPart - 1) / kPart;
  std::vector<SoftDiceSums> parts(num_parts * num_classes);
  spread(std::ssize(parts), [&](std::int64_t i) {
    const std::int64_t begin = i / num_classes * kPart, label = i % num_classes;
    parts[i] = sums_of_part(probabilities.values.data() + label * count + begin,
                            expected.values.data() + begin, static_cast<std::uint8_t>(label),
                            std::min(kPart, count - begin));
  });
  std::vector<SoftDiceSums> sums(num_classes);
  for (std::size_t i = 0; i < parts.size(); ++i) sums[i % num_classes] += parts[i];
  check_sums(sums, probabilities, expected);
  return sums;
}

}  // namespace trireme::volume
