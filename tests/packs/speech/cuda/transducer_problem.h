#pragma once

// A batch of lattices on the host, for tests, and what the processors' kernels make of it.

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "packs/speech/cuda/transducer_lattices.h"
#include "packs/speech/kernels/joint.h"
#include "packs/speech/kernels/loss.h"
#include "tests/kernels/random_numbers.h"
#include "trireme/kernels/half.h"

namespace trireme::speech::cuda {

/// Where nothing was written yet: an answer of no problem here.
template <typename T>
T unwritten() {
  if constexpr (std::is_same_v<T, kernels::Bf16>) {
    return kernels::to_bf16(-777);
  } else {
    return T{-777};
  }
}

/// Bf16 has no comparison.
template <typename T>
std::vector<float> as_floats(const std::vector<T>& x) {
  std::vector<float> floats;
  for (const T element : x) floats.push_back(kernels::to_f32(element));
  return floats;
}

struct GridBatch {
  explicit GridBatch(bool is_packed) : is_packed(is_packed) {}

  Lattices lattices() const {
    return {frames, labels, 21, 19,
            is_packed ? std::span<const std::int64_t>(offsets) : std::span<const std::int64_t>()};
  }
  DeviceLattices device_lattices() const {
    return {frames.data(),
            labels.data(),
            std::ssize(frames),
            21,
            19,
            is_packed ? offsets.data() : nullptr};
  }

  bool is_packed;
  std::vector<std::int32_t> frames = {7, 1, 4, 20, 21};
  std::vector<std::int32_t> labels = {3, 5, 0, 18, 19};
  std::vector<std::int64_t> offsets = packed_offsets(frames, labels);
};

template <typename T>
struct LossProblem {
  LossProblem(std::int64_t vocabulary, std::int64_t blank, bool is_packed)
      : batch(is_packed),
        vocabulary(vocabulary),
        blank(blank),
        labels(batch.frames.size() * 19, -5),
        logits(kernels::random_numbers<T>(batch.lattices().num_rows() * vocabulary, 1, 1)),
        scale{1, 0.5F, -2, 3, 0.1F} {
    for (std::size_t b = 0; b < batch.labels.size(); ++b) {
      for (std::int64_t u = 0; u < batch.labels[b]; ++u) {
        const auto label =
            static_cast<std::int32_t>((3 * u + static_cast<std::int64_t>(b)) % (vocabulary - 1));
        labels[b * 19 + u] = label + (label >= blank ? 1 : 0);
      }
    }
    logits[0] = T{};
  }

  /// By the processors' kernel.
  void solve(std::vector<float>& loss, std::vector<T>& gradient) const {
    const Lattices lattices = batch.lattices();
    std::vector<std::byte> workspace(transducer_workspace_bytes(lattices));
    transducer_loss_and_gradient(lattices, {labels, vocabulary, blank}, logits.data(), workspace,
                                 scale.data(), loss.data(), gradient.data());
  }

  GridBatch batch;
  std::int64_t vocabulary, blank;
  std::vector<std::int32_t> labels;
  std::vector<T> logits;
  std::vector<float> scale;
};

template <typename T>
struct JointProblem {
  JointProblem(std::int64_t width, double drop_probability, bool is_packed)
      : batch(is_packed),
        options{.width = width, .drop_probability = drop_probability, .seed = 0x123456789ABCDEF},
        num_rows(batch.lattices().num_rows()),
        f(kernels::random_numbers<T>(std::ssize(batch.frames) * 21 * width, 1, 1)),
        g(kernels::random_numbers<T>(std::ssize(batch.frames) * 20 * width, 2, 1)),
        dout(kernels::random_numbers<T>(num_rows * width, 3, 1)) {}

  GridBatch batch;
  JointSettings options;
  std::int64_t num_rows;
  std::vector<T> f, g, dout;
};

template <typename T>
struct JointResult {
  explicit JointResult(const JointProblem<T>& problem)
      : out(problem.dout.size(), unwritten<T>()),
        mask(problem.num_rows * joint_mask_bytes(problem.options.width), 0xA5),
        df(problem.f.size(), unwritten<float>()),
        dg(problem.g.size(), unwritten<float>()) {}

  /// By the processors' kernel.
  static JointResult of_host(const JointProblem<T>& p) {
    JointResult made(p);
    joint(p.batch.lattices(), p.options, p.f.data(), p.g.data(), made.out.data(), made.mask.data());
    joint_backward(p.batch.lattices(), p.options, p.dout.data(), made.mask.data(), made.df.data(),
                   made.dg.data());
    return made;
  }

  bool operator==(const JointResult& other) const {
    return as_floats(out) == as_floats(other.out) && mask == other.mask && df == other.df &&
           dg == other.dg;
  }

  std::vector<T> out;
  std::vector<std::uint8_t> mask;
  std::vector<float> df, dg;
};

}  // namespace trireme::speech::cuda
